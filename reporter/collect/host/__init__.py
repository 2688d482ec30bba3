"""The gatherer `host`: what a machine is, as `facts.json` of the published schema `facts.v1`.

Pure Python: only files below `GATHER_HOST_ROOT` are read, nothing that lies there is executed, and
what cannot be known is left out.
"""
