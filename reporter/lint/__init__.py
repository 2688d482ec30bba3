"""Checks of Job manifests; `setup_rules` and `pod_rules` have the rules."""
