"""A listener on loopback, with the aggregator's own limits where a test says nothing else."""

from typing import Any

from reporter.aggregator.http import Listener
from reporter.aggregator.http.listener import Handler
from reporter.settings.aggregator_limits import Limits


def limited(**limits: Any) -> Limits:
    """The aggregator's limits but for these, which may be fractions of a second."""
    return Limits.model_construct(**limits)


def listening(handler: Handler, observer: Any, **given: Any) -> Listener:
    """A listener that has not started."""
    usual = {
        "ssl_context": None,
        "host": "127.0.0.1",
        "port": 0,
        "limits": limited(),
        "connections": 3_000,
        "keep_alive": 45.0,
        "waiting_handshakes": 1_000,
    }
    return Listener(handler, observer=observer, **{**usual, **given})
