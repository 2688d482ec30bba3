"""What the listeners tell, to the log and the metrics: requests, handshakes, surprises."""

from __future__ import annotations

from collections.abc import Callable

from reporter.aggregator.metrics import Metrics
from reporter.common import log
from reporter.common.log import RateLimitedLog

_SHOWN = 256  # characters of what a stranger asked for; its sender may choose thousands


class Traffic:
    """Counts everything and logs what somebody should look at, once a minute each.

    `clock` is monotonic.
    """

    def __init__(self, metrics: Metrics, clock: Callable[[], float]) -> None:
        self._metrics, self._clock = metrics, clock
        self._rate_limited = RateLimitedLog()
        self._log = log.get()

    def request(self, route: str, code: int, seconds: float, received: int) -> None:
        """Count an answered request."""
        route = str(route)  # may be an enum's member, which shows its own name in the log
        self._metrics.observe_request(route, code, seconds=seconds, size=received)
        if code >= 500:
            self._say("Request failed", about=(route, code), route=route, code=code)

    def refused(self, what: str, why: str, peer: str, certificate: str) -> None:
        """Log a worker that was refused."""
        self._say(
            "Request refused",
            about=(certificate, why),
            request=what[:_SHOWN],
            why=why,
            peer=peer,
            certificate=certificate,
        )

    def tls_failure(self, reason: str, peer: str, text: str) -> None:
        """Count a failed handshake."""
        self._metrics.observe_tls_failure(reason)
        self._say("TLS handshake failed", about=peer, peer=peer, reason=reason, text=text)

    def unexpected(self, where: str, error: BaseException) -> None:
        """Log what should not happen, with its trace."""
        self._rate_limited.say(
            self._clock(),
            self._log.error,
            "Unexpected error",
            about=(where, type(error)),
            where=where,
            exc_info=error,
        )

    def _say(self, event: str, *, about: object, **fields: object) -> None:
        self._rate_limited.say(self._clock(), self._log.warning, event, about=about, **fields)
