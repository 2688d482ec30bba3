"""What every program's metrics share: a registry of its own, and pages that show one moment.

Which families a program has is not known here.
"""

import sys
import threading
from collections.abc import Callable, Iterable
from typing import NamedTuple

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Info,
    disable_created_metrics,
)
from prometheus_client.exposition import choose_encoder

# One more series for each histogram and label, which nobody asks for.
disable_created_metrics()  # type: ignore[no-untyped-call]


class Page(NamedTuple):
    """One rendered scrape; `final` says whether it shows a final verdict."""

    body: bytes
    content_type: str
    final: bool


class Families:
    """The families of one program, whose names begin with `prefix`.

    Whoever changes more than one value at a time holds `lock`: so a page shows the facts of one
    moment.
    """

    def __init__(self, prefix: str) -> None:
        self.lock = threading.RLock()
        self._prefix, self._registry = prefix, CollectorRegistry(auto_describe=False)
        self._known: set[Gauge | Counter] = set()
        self._refresh: Callable[[], object] = lambda: None

    def daemon(self, name: str, version: str, dropped_logs: Callable[[], int]) -> None:
        """Add what every daemon shows. `dropped_logs` returns how many log events are lost."""
        build = Info(f"{self._prefix}build", f"Version of this {name}.", registry=self._registry)
        build.info({"version": version, "python": ".".join(map(str, sys.version_info[:3]))})
        dropped = self.total(
            "log_events_dropped", "Log events dropped because standard output was blocked."
        )
        self._refresh = lambda: self.know(dropped, dropped_logs())

    def gauge(self, name: str, text: str, *labels: str) -> Gauge:
        """Return a gauge that is 0 from the beginning; one with labels has no series yet."""
        return Gauge(f"{self._prefix}{name}", text, labels, registry=self._registry)

    def counter(self, name: str, text: str, *labels: str, values: Iterable[str] = ()) -> Counter:
        """Return a counter; each of the `values` of its label is 0 from the beginning."""
        made = Counter(f"{self._prefix}{name}", text, labels, registry=self._registry)
        for value in values:
            made.labels(value)
        return made

    def histogram(
        self, name: str, text: str, *labels: str, buckets: tuple[float, ...]
    ) -> Histogram:
        """Return a histogram."""
        made = f"{self._prefix}{name}"
        return Histogram(made, text, labels, buckets=buckets, registry=self._registry)

    def fact(self, name: str, text: str) -> Gauge:
        """Return a gauge that has no series until `know` sets it."""
        return Gauge(f"{self._prefix}{name}", text, registry=None)

    def total(self, name: str, text: str) -> Counter:
        """Return a counter whose value somebody else counts; no series until `know` sets it."""
        return Counter(f"{self._prefix}{name}", text, registry=None)

    def know(self, family: Gauge | Counter, value: float | None) -> None:
        """Set a fact or a total. None: it is not known, and must not look like 0."""
        with self.lock:
            if (value is not None) != (family in self._known):
                change = self._registry.register if value is not None else self._registry.unregister
                change(family)
                self._known ^= {family}
            if value is None:
                return
            if isinstance(family, Gauge):
                family.set(value)
            else:
                family.reset()
                family.inc(value)

    def render(self, accept: str) -> tuple[bytes, str]:
        """Return body and content type in the format that the `Accept` header prefers."""
        try:
            # It repeats the version that it was asked for in the content type.
            plain = accept.isascii() and accept.isprintable()
            encode, content_type = choose_encoder(accept if plain else "")
        except TypeError:  # it compares a version that is no number with one
            encode, content_type = choose_encoder("")
        with self.lock:
            self._refresh()
            return encode(self._registry), content_type
