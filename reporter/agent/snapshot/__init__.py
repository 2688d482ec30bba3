"""`status-agent snapshot`: the objects of the cluster as files."""

from reporter.agent.snapshot.task import DESCRIPTION, arguments, collect

__all__ = ["DESCRIPTION", "arguments", "collect"]
