"""The aggregator's metrics.

Events are counted by plain methods; what is the case now is given by `Now`, asked for at each
scrape. A fact that is not known has no series. Names of the plan's plugins are the only label
values from outside the program: scrapes need no credentials, so nodes and texts are left out.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from prometheus_client import Histogram
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    InfoMetricFamily,
    Metric,
)

from reporter.common.metrics import Page, Renderer

ROUTES = ("results", "progress", "heartbeat", "status", "poll", "probe", "metrics", "other")
STATES = ("running", "complete", "failed", "timed_out")
TLS_FAILURES = ("certificate", "timeout", "closed", "protocol", "other")
STATUSES = ("running", "post-processing", "complete", "failed")
RESULTS = ("passed", "failed", "unknown")
_PREFIX = "status_aggregator_"
_REQUEST_BUCKETS = (0.005, 0.025, 0.1, 0.25, 1.0, 5.0, 30.0)
_STORE_BUCKETS = (0.001, 0.005, 0.025, 0.1, 0.5, 2.0)


@dataclass(frozen=True, slots=True)
class Now:
    """What is the case at one moment.

    `entries` counts by (plugin, state), `results` the judged ones by (plugin, verdict);
    `result_status` is the verdict on the run, empty while there is none. `heartbeat_age` is, by
    plugin, how many seconds ago the most silent worker was heard whose entry still runs; `expiry`
    gives by certificate the Unix time at which it ends.
    """

    entries: Mapping[tuple[str, str], int] = field(default_factory=dict)
    results: Mapping[tuple[str, str], int] = field(default_factory=dict)
    heartbeat_age: Mapping[str, float] = field(default_factory=dict)
    expiry: Mapping[str, float] = field(default_factory=dict)
    status: str = "running"
    result_status: str = ""
    final: bool = False
    revision: int = 0
    connections: int = 0
    uploads: int = 0
    store_writable: bool = True
    disk_free: int | None = None


class Metrics:
    """The aggregator's metrics. Every method may be called from any thread.

    `now` is asked at each scrape, `dropped_logs` returns the number of log events lost so far.
    """

    def __init__(
        self, version: str, now: Callable[[], Now], dropped_logs: Callable[[], int] = lambda: 0
    ) -> None:
        self._version, self._now, self._dropped_logs = version, now, dropped_logs
        self._renderer = Renderer(self)
        self._lock = self._renderer.lock
        self._requests: Counter[tuple[str, int]] = Counter()
        self._durations = Histogram(
            _PREFIX + "request_duration_seconds",
            "Time from the headers of a request to its response, including its body.",
            ["route"],
            buckets=_REQUEST_BUCKETS,
            registry=None,
        )
        for route in ROUTES:
            self._durations.labels(route)
        self._bytes = dict.fromkeys(("results", "progress"), 0)
        self._tls = dict.fromkeys(TLS_FAILURES, 0)
        self._commits = Histogram(
            _PREFIX + "store_commit_duration_seconds",
            "Duration of a store transaction, including fsync.",
            buckets=_STORE_BUCKETS,
            registry=None,
        )
        self._counts = dict.fromkeys(_COUNTERS, 0)
        self._shown = Now()

    def observe_request(self, route: str, code: int, *, seconds: float, size: int = 0) -> None:
        """Count one answered request; `size` is how many bytes of body were read."""
        route = route if route in ROUTES else "other"
        with self._lock:
            self._requests[route, code] += 1
            self._durations.labels(route).observe(seconds)
            if route in self._bytes:
                self._bytes[route] += size

    def observe_tls_failure(self, reason: str) -> None:
        """Count one handshake that failed; `reason` is one of TLS_FAILURES."""
        with self._lock:
            self._tls[reason if reason in TLS_FAILURES else "other"] += 1

    def observe_commit(self, seconds: float, operations: int) -> None:
        """Count one transaction of the store and the operations in it."""
        with self._lock:
            self._commits.observe(seconds)
            self._counts["store_operations"] += operations

    def count(self, name: str, by: int = 1) -> None:
        """Count what has no labels: `lost_results`, `annotation_failures`, ..."""
        with self._lock:
            self._counts[name] += by

    def render(self, accept: str = "") -> Page:
        """Render all series in the format that the `Accept` header prefers."""
        with self._lock:
            self._shown = self._now()
            return Page(*self._renderer.render(accept), self._shown.final)

    def collect(self) -> Iterator[Metric]:
        """Yield every family for the registry. Only `render` may call this: it holds the lock."""
        build = {"version": self._version, "python": ".".join(map(str, sys.version_info[:3]))}
        yield InfoMetricFamily(_PREFIX + "build", "Version of this aggregator.", value=build)
        yield from self._happened()
        yield from _current(self._shown)

    def _happened(self) -> Iterator[Metric]:
        requests = _counter("requests", "Requests answered, by status code.", "route", "code")
        for (route, code), count in sorted(self._requests.items()):
            requests.add_metric([route, str(code)], float(count))
        yield requests
        yield from self._durations.collect()
        received = _counter("received_bytes", "Bytes of request bodies received.", "route")
        for route, count in self._bytes.items():
            received.add_metric([route], float(count))
        yield received
        failures = _counter("tls_failures", "Failed TLS handshakes.", "reason")
        for reason, count in self._tls.items():
            failures.add_metric([reason], float(count))
        yield failures
        yield from self._commits.collect()
        for name, text in _COUNTERS.items():
            yield CounterMetricFamily(_PREFIX + name, text, value=float(self._counts[name]))
        yield CounterMetricFamily(
            _PREFIX + "log_events_dropped",
            "Log events dropped because standard output was blocked.",
            value=float(self._dropped_logs()),
        )


def _current(now: Now) -> Iterator[Metric]:
    status = _gauge("run_status", "1 for the current status of the run.", "status")
    for name in STATUSES:
        status.add_metric([name], float(name == now.status))
    yield status
    entries = _gauge("entries", "Expected results by state.", "plugin", "state")
    for plugin in sorted({plugin for plugin, _ in now.entries}):
        for state in STATES:
            entries.add_metric([plugin, state], float(now.entries.get((plugin, state), 0)))
    yield entries
    verdict = _gauge("run_result", "1 for the verdict on the run, once it is known.", "result")
    results = _gauge("results", "Results with a verdict, by verdict.", "plugin", "result")
    for name in RESULTS:
        verdict.add_metric([name], float(name == now.result_status))
        for plugin in sorted({plugin for plugin, _ in now.entries}):
            results.add_metric([plugin, name], float(now.results.get((plugin, name), 0)))
    yield verdict
    yield results
    ages = _gauge(
        "last_heartbeat_age_seconds",
        "Longest time since the last contact with a worker whose result is pending.",
        "plugin",
    )
    for plugin, age in sorted(now.heartbeat_age.items()):
        ages.add_metric([plugin], age)
    yield ages
    expiry = _gauge(
        "certificate_expiry_timestamp_seconds", "Expiry time of a certificate.", "certificate"
    )
    for certificate, moment in sorted(now.expiry.items()):
        expiry.add_metric([certificate], moment)
    yield expiry
    values: dict[str, tuple[str, float | None]] = {
        "run_final": ("1 once the run is over: packed, or packing it has failed.", now.final),
        "revision": ("Revision of the run status.", now.revision),
        "connections": ("Open worker connections.", now.connections),
        "uploads": ("Results being received.", now.uploads),
        "store_writable": ("1 while the store accepts writes.", now.store_writable),
        "disk_free_bytes": ("Free disk space for results.", now.disk_free),
    }
    for name, (text, value) in values.items():
        if value is not None:
            yield GaugeMetricFamily(_PREFIX + name, text, value=float(value))


_COUNTERS = {
    "store_operations": "Operations committed by the store.",
    "lost_results": "Stored results found missing or corrupted.",
    "annotation_failures": "Failed writes of the status annotation.",
    "package_failures": "Failed attempts to create the tarball.",
}


def _counter(name: str, text: str, *labels: str) -> CounterMetricFamily:
    return CounterMetricFamily(_PREFIX + name, text, labels=list(labels))


def _gauge(name: str, text: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(_PREFIX + name, text, labels=list(labels))
