"""What the aggregator tells of itself: its metrics, and what its listeners see, also to the log.

A fact that is not known has no series. Names of the plan's plugins are the only label values from
outside the program: scrapes need no credentials, so nodes and texts are left out.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache

from prometheus_client import Gauge

from reporter import __version__
from reporter.common import log
from reporter.common.log import RateLimitedLog
from reporter.common.metrics import Families, Page
from reporter.run.state import Snapshot, final, run_result_status, run_status

_SHOWN = 256  # characters of what a stranger asked for; its sender may choose thousands
ROUTES = ("results", "progress", "heartbeat", "status", "poll", "probe", "metrics", "other")
WITH_BODIES = ("results", "progress")
STATES = ("running", "complete", "failed", "timed_out")
TLS_FAILURES = ("certificate", "timeout", "closed", "protocol", "other")
STATUSES = ("running", "post-processing", "complete", "failed")
RESULTS = ("passed", "failed", "unknown")

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


class Metrics:
    """Counts everything, and logs what somebody should look at, once a minute each.

    What counts may be called from any thread. `clock` is monotonic.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock, self._log, self._rate_limited = clock, log.get(), RateLimitedLog()
        own = self._own = Families("status_aggregator_")
        own.daemon("aggregator", __version__, log.dropped)
        requests = own.counter("requests", "Requests answered, by status code.", "route", "code")
        # To look a series up by its labels costs as much as to count.
        self._requests = cache(lambda route, code: requests.labels(route, str(code)))
        durations = own.histogram(
            "request_duration_seconds",
            "Time from the headers of a request to its response, including its body.",
            "route",
            buckets=(0.005, 0.025, 0.1, 0.25, 1.0, 5.0, 30.0),
        )
        self._durations = {route: durations.labels(route) for route in ROUTES}
        received = own.counter(
            "received_bytes", "Bytes of request bodies received.", "route", values=WITH_BODIES
        )
        self._bytes = {route: received.labels(route) for route in WITH_BODIES}
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

    def request(self, route: str, code: int, seconds: float, received: int) -> None:
        """Count an answered request; `received` is how many bytes of body were read."""
        route = str(route)  # may be an enum's member, which shows its own name in the log
        known = route if route in ROUTES else "other"
        with self._own.lock:
            self._requests(known, code).inc()
            self._durations[known].observe(seconds)
            if known in WITH_BODIES:
                self._bytes[known].inc(received)
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
        """Count a failed handshake; `reason` is one of TLS_FAILURES."""
        self._tls.labels(reason if reason in TLS_FAILURES else "other").inc()
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

    def observe_commit(self, seconds: float, operations: int) -> None:
        """Count one transaction of the store and the operations in it."""
        with self._own.lock:
            self._commits.observe(seconds)
            self._counts["store_operations"].inc(operations)

    def count(self, name: str, by: int = 1) -> None:
        """Count what has no labels: `lost_results`, `annotation_failures`, ..."""
        self._counts[name].inc(by)

    def render(
        self,
        accept: str,
        snapshot: Snapshot,
        *,
        mono: float,
        expires_at: float,
        **facts: float | None,
    ) -> Page:
        """Render all series in the format that the `Accept` header prefers.

        `mono` is monotonic, `expires_at` Unix time; `facts` are the other gauges without a label.
        """
        over = final(snapshot)
        with self._own.lock:
            self._show(snapshot)
            _only(self._ages, _ages(snapshot, mono))
            _only(self._expiry, {"run": expires_at})
            self._own.know(run_final=over, revision=snapshot.revision, **facts)
            return Page(*self._own.render(accept), over)

    def _show(self, snapshot: Snapshot) -> None:
        entries: Counter[tuple[str, str]] = Counter()
        judged: Counter[tuple[str, str]] = Counter()
        for kind, many in snapshot.tally.items():
            entries[kind.plugin, str(kind.state)] += many
            judged[kind.plugin, kind.verdict or ""] += many
        status, verdict = str(run_status(snapshot)), run_result_status(snapshot)
        for name in STATUSES:
            self._status.labels(name).set(name == status)
        for name in RESULTS:
            self._verdict.labels(name).set(name == verdict)
        for plugin in snapshot.plan.plugins:
            for state in STATES:
                self._entries.labels(plugin.name, state).set(entries[plugin.name, state])
            for name in RESULTS:
                self._results.labels(plugin.name, name).set(judged[plugin.name, name])


def _only(family: Gauge, values: Mapping[str, float]) -> None:
    family.clear()
    for label, value in values.items():
        family.labels(label).set(value)


def _ages(snapshot: Snapshot, mono: float) -> dict[str, float]:
    """Return by plugin the age of the most silent worker that is awaited and was heard once."""
    oldest: dict[str, float] = {}
    for key, beat in snapshot.beats.items():
        heard = mono if beat.heard_at is None else beat.heard_at
        # Compared first: of many workers nearly all are not the one.
        if heard < oldest.get(key.plugin, math.inf) and not snapshot.entries[key].terminal:
            oldest[key.plugin] = heard
    return {plugin: max(0.0, mono - heard) for plugin, heard in oldest.items()}
