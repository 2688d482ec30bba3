"""A snapshot of the cluster: what is collected, where it lies, what is blanked, what is said."""
