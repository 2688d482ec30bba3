"""The launcher: it creates what a run starts in the cluster, watches it, and removes it.

What to do is decided in `core.launch`; here it is looked at and carried out.
"""
