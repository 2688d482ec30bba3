"""Making certificates."""
