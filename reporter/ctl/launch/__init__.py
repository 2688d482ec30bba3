"""What `run`, `logs` and `delete` do in the cluster: survey, check, create, find, remove."""
