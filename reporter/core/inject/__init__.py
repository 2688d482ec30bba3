"""Adding the reporter to Jobs that people have, and taking it out again: values and decisions.

What is added, and why a Job cannot have it, is known here; the text of manifests is not.
"""
