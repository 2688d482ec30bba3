"""The aggregator's metrics.

Events are counted by plain methods; what is the case now is given by `Now`, asked for at each
scrape. A fact that is not known has no series. Names of the plan's plugins are the only label
values from outside the program: scrapes need no credentials, so nodes and texts are left out.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from reporter.common.metrics import Families, Page

ROUTES = ("results", "progress", "heartbeat", "status", "poll", "probe", "metrics", "other")
WITH_BODIES = ("results", "progress")
STATES = ("running", "complete", "failed", "timed_out")
TLS_FAILURES = ("certificate", "timeout", "closed", "protocol", "other")
STATUSES = ("running", "post-processing", "complete", "failed")
RESULTS = ("passed", "failed", "unknown")


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
        self._now = now
        own = self._own = Families("status_aggregator_")
        own.daemon("aggregator", version, dropped_logs)
        self._requests = own.counter(
            "requests", "Requests answered, by status code.", "route", "code"
        )
        self._durations = own.histogram(
            "request_duration_seconds",
            "Time from the headers of a request to its response, including its body.",
            "route",
            buckets=(0.005, 0.025, 0.1, 0.25, 1.0, 5.0, 30.0),
        )
        for route in ROUTES:
            self._durations.labels(route)
        self._bytes = own.counter(
            "received_bytes", "Bytes of request bodies received.", "route", values=WITH_BODIES
        )
        self._tls = own.counter(
            "tls_failures", "Failed TLS handshakes.", "reason", values=TLS_FAILURES
        )
        self._commits = own.histogram(
            "store_commit_duration_seconds",
            "Duration of a store transaction, including fsync.",
            buckets=(0.001, 0.005, 0.025, 0.1, 0.5, 2.0),
        )
        self._counts = {name: own.counter(name, text) for name, text in _COUNTERS.items()}
        self._status = own.gauge("run_status", "1 for the current status of the run.", "status")
        self._entries = own.gauge("entries", "Expected results by state.", "plugin", "state")
        self._verdict = own.gauge(
            "run_result", "1 for the verdict on the run, once it is known.", "result"
        )
        self._results = own.gauge(
            "results", "Results with a verdict, by verdict.", "plugin", "result"
        )
        self._ages = own.gauge(
            "last_heartbeat_age_seconds",
            "Longest time since the last contact with a worker whose result is pending.",
            "plugin",
        )
        self._expiry = own.gauge(
            "certificate_expiry_timestamp_seconds", "Expiry time of a certificate.", "certificate"
        )
        own.facts(_FACTS)

    def observe_request(self, route: str, code: int, *, seconds: float, size: int = 0) -> None:
        """Count one answered request; `size` is how many bytes of body were read."""
        route = route if route in ROUTES else "other"
        with self._own.lock:
            self._requests.labels(route, str(code)).inc()
            self._durations.labels(route).observe(seconds)
            if route in WITH_BODIES:
                self._bytes.labels(route).inc(size)

    def observe_tls_failure(self, reason: str) -> None:
        """Count one handshake that failed; `reason` is one of TLS_FAILURES."""
        self._tls.labels(reason if reason in TLS_FAILURES else "other").inc()

    def observe_commit(self, seconds: float, operations: int) -> None:
        """Count one transaction of the store and the operations in it."""
        with self._own.lock:
            self._commits.observe(seconds)
            self._counts["store_operations"].inc(operations)

    def count(self, name: str, by: int = 1) -> None:
        """Count what has no labels: `lost_results`, `annotation_failures`, ..."""
        self._counts[name].inc(by)

    def render(self, accept: str = "") -> Page:
        """Render all series in the format that the `Accept` header prefers."""
        with self._own.lock:
            now = self._now()
            self._show(now)
            return Page(*self._own.render(accept), now.final)

    def _show(self, now: Now) -> None:
        plugins = sorted({plugin for plugin, _ in now.entries})
        for name in STATUSES:
            self._status.labels(name).set(name == now.status)
        for name in RESULTS:
            self._verdict.labels(name).set(name == now.result_status)
        self._entries.clear()
        self._results.clear()
        for plugin in plugins:
            for state in STATES:
                self._entries.labels(plugin, state).set(now.entries.get((plugin, state), 0))
            for name in RESULTS:
                self._results.labels(plugin, name).set(now.results.get((plugin, name), 0))
        for family, shown in ((self._ages, now.heartbeat_age), (self._expiry, now.expiry)):
            family.clear()
            for label, value in shown.items():
                family.labels(label).set(value)
        self._own.know(**{name: getattr(now, _FIELDS.get(name, name)) for name in _FACTS})


_COUNTERS = {
    "store_operations": "Operations committed by the store.",
    "lost_results": "Stored results found missing or corrupted.",
    "annotation_failures": "Failed writes of the status annotation.",
    "package_failures": "Failed attempts to create the tarball.",
}
_FACTS = {
    "run_final": "1 once the run is over: packed, or packing it has failed.",
    "revision": "Revision of the run status.",
    "connections": "Open worker connections.",
    "uploads": "Results being received.",
    "store_writable": "1 while the store accepts writes.",
    "disk_free_bytes": "Free disk space for results.",
}
_FIELDS = {"run_final": "final", "disk_free_bytes": "disk_free"}
