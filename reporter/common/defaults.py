"""Defaults of the reporter's settings that others need, too. Imported before anything heavy."""

REPORTER = "status-reporter"
"""The reporter's container, and who an Event of ours is from."""
RESULTS_PATH = "/results/adapter-result.json"
WAIT_SECONDS = 300
