"""Whether the aggregator is alive and ready, and what it looks like now for a scrape."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Protocol

from reporter.aggregator.certificates.run import Authority
from reporter.aggregator.metrics import Now
from reporter.ledger import Store
from reporter.ledger.layout import Layout
from reporter.run import heartbeats as beats
from reporter.run.heartbeats import Beat
from reporter.run.state import Snapshot, final, run_result_status, run_status

STALLED = 30.0
"""Seconds without a tick after which the event loop counts as stuck; one is due each second."""


class Listening(Protocol):
    """What is asked of the workers' listener."""

    @property
    def connections(self) -> int:
        """How many are open."""

    @property
    def listening(self) -> bool:
        """Whether workers can connect."""


class Health:
    """Answers for the probes and the metrics. `clock` is monotonic, `wall` Unix time."""

    def __init__(
        self,
        store: Store,
        layout: Layout,
        authority: Authority,
        listener: Listening,
        *,
        reserve: int,
        uploads: Callable[[], int],
        clock: Callable[[], float],
        wall: Callable[[], float],
    ) -> None:
        self._store, self._layout, self._authority = store, layout, authority
        self._listener, self._reserve, self._uploads = listener, reserve, uploads
        self._clock, self._wall = clock, wall
        self.ticked = clock()
        """Monotonic time of the last tick."""
        self.done_listening = False
        """Whether the workers' listener was closed on purpose, after the run."""

    @property
    def alive(self) -> bool:
        """Whether our own loop has ticked lately."""
        return self._clock() - self.ticked < STALLED

    def checks(self) -> dict[str, str | None]:
        """Name what must work, each with its problem or nothing."""
        over = self.done_listening
        listening = over or self._listener.listening
        expired = not over and self._authority.expired(self._wall())
        return {
            "worker-listener": None if listening else "workers cannot connect",
            "store": None if self._store.writable else "not writable",
            "disk": self._disk_problem(),
            "certificates": "expired" if expired else None,
        }

    def now(self) -> Now:
        """Return what is the case, for a scrape."""
        snapshot = self._store.snapshot()
        counts: Counter[tuple[str, str]] = Counter()
        judged: Counter[tuple[str, str]] = Counter()
        for kind, many in snapshot.tally.items():
            counts[kind.plugin, str(kind.state)] += many
            if kind.verdict:
                judged[kind.plugin, kind.verdict] += many
        return Now(
            entries=counts,
            results=judged,
            heartbeat_age=_ages(snapshot, self._clock()),
            expiry={"run": self._authority.expires_at},
            status=str(run_status(snapshot)),
            result_status=run_result_status(snapshot),
            final=final(snapshot),
            revision=snapshot.revision,
            connections=self._listener.connections,
            uploads=self._uploads(),
            store_writable=self._store.writable,
            disk_free=self._free(),
        )

    def _disk_problem(self) -> str | None:
        free = self._free()
        if free is None:
            return "unreadable"
        return None if free > self._reserve else "below the reserve"

    def _free(self) -> int | None:
        try:
            return self._layout.free()
        except OSError:
            return None


def _ages(snapshot: Snapshot, mono: float) -> dict[str, float]:
    """Return by plugin the age of the most silent worker that is awaited and was heard once."""
    oldest: dict[str, Beat] = {}
    for key, beat in snapshot.beats.items():
        known = oldest.get(key.plugin)
        # Compared first: of many workers nearly all are not the one.
        older = known is None or (beat.heard_at or 0.0) < (known.heard_at or 0.0)
        if older and not snapshot.entries[key].terminal:
            oldest[key.plugin] = beat
    ages = {plugin: beats.age(beat, mono) for plugin, beat in oldest.items()}
    return {plugin: age for plugin, age in ages.items() if age is not None}
