"""Status reporter: what became of a Kubernetes Job's container, as one condition on the Job."""

__version__ = "0.1.0"
