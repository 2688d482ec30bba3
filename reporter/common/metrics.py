"""What every program's metrics share: a registry of its own, and pages that show one moment.

Which families a program has is not known here.
"""

import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
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
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily

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
        self._facts: dict[str, tuple[type[GaugeMetricFamily | CounterMetricFamily], str]] = {}
        self._known: dict[str, float | None] = {}
        self._refresh: Callable[[], object] = lambda: None
        self._registry.register(self)

    def collect(self) -> Iterator[GaugeMetricFamily | CounterMetricFamily]:
        """Yield the facts and totals that are known, as the registry asks."""
        for name, (family, text) in self._facts.items():
            if (value := self._known.get(name)) is not None:
                yield family(f"{self._prefix}{name}", text, value=value)

    def daemon(self, name: str, version: str, dropped_logs: Callable[[], int]) -> None:
        """Add what every daemon shows. `dropped_logs` returns how many log events are lost."""
        build = Info(f"{self._prefix}build", f"Version of this {name}.", registry=self._registry)
        build.info({"version": version, "python": ".".join(map(str, sys.version_info[:3]))})
        self.total("log_events_dropped", "Log events dropped because standard output was blocked.")
        self._refresh = lambda: self.know(log_events_dropped=dropped_logs())

    def facts(self, texts: Mapping[str, str]) -> None:
        """Declare gauges, by name, that have no series until `know` sets them."""
        for name, text in texts.items():
            self._facts[name] = GaugeMetricFamily, text

    def total(self, name: str, text: str) -> None:
        """Declare a counter whose value somebody else counts; no series until `know` sets it."""
        self._facts[name] = CounterMetricFamily, text

    def know(self, **values: float | None) -> None:
        """Set facts and totals. None: it is not known, and must not look like 0."""
        with self.lock:
            self._known.update(values)

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
