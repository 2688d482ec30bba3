"""The aggregator: collects results, progress and heartbeats of many workers of one run."""

GOOD, FAILED, USAGE, UNFINISHED = 0, 1, 2, 4
"""Exit codes; the last one is for a Job, which is to start another aggregator."""
