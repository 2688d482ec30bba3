"""A listener on loopback, with the aggregator's own limits where a test says nothing else."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any
from unittest.mock import patch

from reporter.aggregator import limits
from reporter.aggregator.server.listener import Handler, Listener


def constants(**values: float) -> AbstractContextManager[Any]:
    """Let the aggregator's constant limits be these until the end of the block."""
    return patch.multiple(limits, **values) if values else nullcontext()


def listening(handler: Handler, observer: Any, **given: Any) -> Listener:
    """A listener that has not started."""
    usual = {
        "ssl_context": None,
        "host": "127.0.0.1",
        "port": 0,
        "connections": 3_000,
        "keep_alive": 45.0,
        "waiting_handshakes": 1_000,
    }
    return Listener(handler, observer=observer, **{**usual, **given})
