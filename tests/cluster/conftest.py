"""Somebody who uses the cluster that `make cluster` gives to people, as fixtures."""

from tests.blackbox.cluster.conftest import person, run, second

__all__ = ["person", "run", "second"]
