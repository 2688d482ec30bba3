"""The gatherer `logs`: the newest lines of the host's own logs, not of containers, compressed."""
