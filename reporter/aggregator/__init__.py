"""The aggregator: collects results, progress and heartbeats of many workers of one run."""
