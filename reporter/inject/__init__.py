"""Adding the reporter to Jobs that people have, and taking it out again: values and decisions.

The additions, and the reasons why a Job cannot have them, are known here; the text of manifests is
not.
"""
