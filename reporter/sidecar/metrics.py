"""The sidecar's metrics: at most 38 series, or 46 with a link to an aggregator.

The rest of the program tells `Metrics` facts by plain methods; a scrape turns all of them into one
consistent page. A fact that is not known yet has no series: an exit code that is missing must not
look like 0. No label may take a value from outside the program.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

from prometheus_client import Histogram
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    InfoMetricFamily,
    Metric,
)

from reporter import errors
from reporter.common.metrics import Page, Renderer

STATUSES = ("True", "False", "Unknown")
READS = ("absent", "unreadable", "torn", "invalid", "valid")
PUBLISHES = ("written", "failed")
UPDATES = ("sent", "failed")
DELIVERIES = ("accepted", "duplicate", "refused", "gave_up", "untrusted")
FAILURES = tuple(
    sorted(
        {
            errors.KubeError.failure,
            errors.Denied.failure,
            *(error.failure for error in errors.KubeError.__subclasses__()),
        }
    )
)
FROM_RESULT = "FromResult"
_BUCKETS = (0.05, 0.25, 1.0, 5.0)
_PREFIX = "status_reporter_"


class Metrics:
    """The reporter's metrics. Every method may be called from any thread.

    `dropped_logs` returns the number of log events lost so far.
    """

    def __init__(self, version: str, dropped_logs: Callable[[], int] = lambda: 0) -> None:
        self._version = version
        self._dropped_logs = dropped_logs
        self._renderer = Renderer(self)
        self._lock = self._renderer.lock
        self._verdict: tuple[str, str] | None = None
        self._final = False
        self._counts: dict[tuple[str, str], int] = {
            (family, label): 0
            for family, labels in (
                ("read", READS),
                ("publish", PUBLISHES),
                ("failure", FAILURES),
                ("update", UPDATES),
                ("delivery", DELIVERIES),
            )
            for label in labels
        }
        self._durations = Histogram(
            _PREFIX + "publish_duration_seconds",
            "Duration of a publish: read, decide again, write.",
            buckets=_BUCKETS,
            registry=None,
        )
        self._gauges: dict[str, float] = {}
        self._restarts: int | None = None
        self._link_up: bool | None = None

    def observe_read(self, outcome: str) -> None:
        """Count one look at the result file; `outcome` is one of READS, others are not counted."""
        if outcome in READS:
            self._count("read", outcome)

    def observe_failure(self, failure: str) -> None:
        """Count one failed API request by the `failure` name of its error."""
        self._count("failure", failure if failure in FAILURES else errors.KubeError.failure)

    def observe_publish(self, result: str, *, seconds: float, now: float) -> None:
        """Count one attempt to publish a condition; `result` is one of PUBLISHES.

        For `written`, the `seconds` it took and the Unix time `now` are kept too.
        """
        self._count("publish", result if result in PUBLISHES else "failed")
        if result == "written":
            with self._lock:
                self._durations.observe(seconds)
                self._gauges["last_publish_timestamp_seconds"] = now

    def observed(self, now: float) -> None:
        """Note the Unix time of a look at the world."""
        self._gauge(last_observation_timestamp_seconds=now)

    def set_condition(self, status: str, reason: str, *, from_file: bool, final: bool) -> None:
        """Set the condition as it stands on the Job, replacing the one before.

        A reason that an adapter chose is shown as FROM_RESULT, since there is no end to those.
        """
        with self._lock:
            self._verdict = (status, FROM_RESULT if from_file else reason)
            self._final = final

    def set_adapter(self, exit_code: int | None, restarts: int | None) -> None:
        """Set what the API shows of the adapter; None is unknown."""
        with self._lock:
            self._restarts = restarts
        self._gauge(adapter_exit_code=exit_code)

    def set_progress(
        self,
        *,
        completed: int | None = None,
        total: int | None = None,
        failures: int | None = None,
        errors: int | None = None,
    ) -> None:
        """Set the adapter's newest progress; None is unknown."""
        self._gauge(
            progress_completed=completed,
            progress_expected=total,
            progress_failures=failures,
            progress_errors=errors,
        )

    def set_link(self, *, up: bool) -> None:
        """Set whether the link to an aggregator works; without a call there is none."""
        with self._lock:
            self._link_up = up

    def observe_update(self, *, sent: bool) -> None:
        """Count one progress update to the aggregator."""
        self._count("update", "sent" if sent else "failed")

    def observe_delivery(self, outcome: str) -> None:
        """Count how a delivery to the aggregator ended; `outcome` is one of DELIVERIES."""
        self._count("delivery", outcome)

    def render(self, accept: str = "") -> Page:
        """Render all series in the format that the `Accept` header prefers."""
        with self._lock:
            # Under the one lock, so that `final` is the one in the text.
            return Page(*self._renderer.render(accept), self._final)

    def collect(self) -> Iterator[Metric]:
        """Yield every family for the registry. Only `render` may call this: it holds the lock."""
        build = {
            "version": self._version,
            "python": ".".join(map(str, sys.version_info[:3])),
        }
        yield InfoMetricFamily(_PREFIX + "build", "Version of this reporter.", value=build)
        if self._verdict is not None:
            status, reason = self._verdict
            condition = _gauge_family(
                "condition", "1 for the current status of the condition on the Job.", "status"
            )
            for name in STATUSES:
                condition.add_metric([name], float(name == status))
            yield condition
            verdict = _gauge_family(
                "verdict", "1 for the current reason of the condition.", "reason"
            )
            verdict.add_metric([reason], 1.0)
            yield verdict
        yield _gauge_of("verdict_final", "1 once the verdict is final.", float(self._final))
        for name, text in _GAUGES.items():
            if name in self._gauges:
                yield _gauge_of(name, text, self._gauges[name])
        if self._restarts is not None:
            yield CounterMetricFamily(
                _PREFIX + "adapter_restarts",
                "Restarts of the adapter container.",
                value=float(self._restarts),
            )
        yield self._counter("result_reads", "Checks of the result file.", "read", "outcome")
        yield self._counter("publishes", "Attempts to write the condition.", "publish", "result")
        yield self._counter("failures", "Failed API requests.", "failure", "failure")
        yield from self._durations.collect()
        if self._link_up is not None:
            up = float(self._link_up)
            yield _gauge_of("link_up", "1 if the link to an aggregator is set up.", up)
            yield self._counter("link_updates", "Progress updates sent.", "update", "result")
            yield self._counter("link_deliveries", "Finished deliveries.", "delivery", "outcome")
        yield CounterMetricFamily(
            _PREFIX + "log_events_dropped",
            "Log events dropped because standard output was blocked.",
            value=float(self._dropped_logs()),
        )

    def _count(self, family: str, label: str) -> None:
        with self._lock:
            self._counts[family, label] += 1

    def _gauge(self, **values: float | None) -> None:
        with self._lock:
            for name, value in values.items():
                if value is None:
                    self._gauges.pop(name, None)
                else:
                    self._gauges[name] = float(value)

    def _counter(self, name: str, text: str, family: str, label: str) -> Metric:
        counter = CounterMetricFamily(_PREFIX + name, text, labels=[label])
        for (owner, value), count in self._counts.items():
            if owner == family:
                counter.add_metric([value], float(count))
        return counter


_GAUGES = {
    "adapter_exit_code": "Exit code of the adapter's last completed run.",
    "last_publish_timestamp_seconds": "Time of the last condition write.",
    "last_observation_timestamp_seconds": "Time of the last check of the Pod and the file.",
    "progress_completed": "Items completed by the adapter.",
    "progress_expected": "Total items of the adapter.",
    "progress_failures": "Failures reported by the adapter.",
    "progress_errors": "Errors reported by the adapter.",
}


def _gauge_of(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(_PREFIX + name, text, value=value)


def _gauge_family(name: str, text: str, label: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(_PREFIX + name, text, labels=[label])
