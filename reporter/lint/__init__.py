"""Checks of Job manifests; `rules` has the table."""
