"""The daemon next to the adapter: look, decide, publish."""
