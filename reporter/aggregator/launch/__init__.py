"""The launcher: it creates what a run starts in the cluster, watches it, and removes it.

`core.launch` decides what to do; here it is looked at and carried out.
"""
