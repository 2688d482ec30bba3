"""Whether the aggregator is alive and ready, and what it looks like now for a scrape."""

from __future__ import annotations

from reporter.aggregator.certificates.run import Authority
from reporter.aggregator.context import Context
from reporter.aggregator.intake import Uploads
from reporter.aggregator.server.listener import Listener
from reporter.common.metrics import Page

STALLED = 30.0
"""Seconds without a tick after which the event loop counts as stuck; one is due each second."""


class Health:
    """Answers for the probes and the metrics, at once and without run data."""

    def __init__(
        self, context: Context, authority: Authority, workers: Listener, uploads: Uploads
    ) -> None:
        self._context, self._authority = context, authority
        self._listener, self._uploads = workers, uploads
        self.ticked = context.clock()
        """Monotonic time of the last tick."""
        self.done_listening = False
        """Whether the workers' listener was closed on purpose, after the run."""

    @property
    def alive(self) -> bool:
        """Whether our own loop has ticked lately."""
        return self._context.clock() - self.ticked < STALLED

    def checks(self) -> dict[str, str | None]:
        """Name what must work, each with its problem or nothing."""
        free, reserve = self._free(), self._context.settings.disk_reserve_bytes
        full = "unreadable" if free is None else None if free > reserve else "below the reserve"
        listening = self.done_listening or self._listener.listening
        expired = not self.done_listening and self._authority.expired(self._context.wall())
        return {
            "worker-listener": None if listening else "workers cannot connect",
            "store": None if self._context.store.writable else "not writable",
            "disk": full,
            "certificates": "expired" if expired else None,
        }

    def scrape(self, accept: str) -> Page:
        """Render the metrics, for an `Accept` header."""
        context = self._context
        return context.metrics.render(
            accept,
            context.store.snapshot(),
            mono=context.clock(),
            expires_at=self._authority.expires_at,
            connections=self._listener.connections,
            uploads=self._uploads.active,
            store_writable=context.store.writable,
            disk_free_bytes=self._free(),
        )

    def _free(self) -> int | None:
        try:
            return self._context.layout.free()
        except OSError:
            return None
