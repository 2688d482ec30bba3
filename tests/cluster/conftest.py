"""Somebody who uses the cluster that `make cluster` gives to people, as fixtures."""

from tests.blackbox.cluster.conftest import person, run

__all__ = ["person", "run"]
