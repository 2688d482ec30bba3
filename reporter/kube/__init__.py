"""The only access to the Kubernetes API, and the only place of the kubernetes package."""
