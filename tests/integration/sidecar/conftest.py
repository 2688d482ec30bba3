"""What the tests of a linked sidecar need."""

from tests.blackbox.sidecar.conftest import aggregator

__all__ = ["aggregator"]
