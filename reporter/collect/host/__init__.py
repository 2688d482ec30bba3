"""The facts of a machine, and those of several beside each other."""
