"""Defaults of the reporter's settings that others need, too. Imported before anything heavy."""

from typing import Final

REPORTER: Final = "status-reporter"
"""The reporter's container, and who an Event of ours is from."""
RESULTS_PATH: Final = "/results/adapter-result.json"
WAIT_SECONDS: Final = 300
