"""The sidecar's metrics: at most 38 series, or 46 with a link to an aggregator.

The rest of the program tells `Metrics` facts by plain methods. A fact that is not known yet has no
series: an exit code that is missing must not look like 0. No label may take a value from outside
the program.
"""

from collections.abc import Callable

from prometheus_client import Counter

from reporter import errors
from reporter.common.metrics import Families, Page

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


class Metrics:
    """The reporter's metrics. Every method may be called from any thread.

    `dropped_logs` returns the number of log events lost so far.
    """

    def __init__(self, version: str, dropped_logs: Callable[[], int] = lambda: 0) -> None:
        own = self._own = Families("status_reporter_")
        own.daemon("reporter", version, dropped_logs)
        self._condition = own.gauge(
            "condition", "1 for the current status of the condition on the Job.", "status"
        )
        self._verdict = own.gauge("verdict", "1 for the current reason of the condition.", "reason")
        self._final = own.gauge("verdict_final", "1 once the verdict is final.")
        self._is_final = False
        own.facts(_FACTS)
        own.total("adapter_restarts", "Restarts of the adapter container.")
        self._reads = own.counter(
            "result_reads", "Checks of the result file.", "outcome", values=READS
        )
        self._publishes = own.counter(
            "publishes", "Attempts to write the condition.", "result", values=PUBLISHES
        )
        self._failures = own.counter("failures", "Failed API requests.", "failure", values=FAILURES)
        self._durations = own.histogram(
            "publish_duration_seconds",
            "Duration of a publish: read, decide again, write.",
            buckets=(0.05, 0.25, 1.0, 5.0),
        )
        self._link: tuple[Counter, Counter] | None = None

    def observe_read(self, outcome: str) -> None:
        """Count one look at the result file; `outcome` is one of READS, others are not counted."""
        if outcome in READS:
            self._reads.labels(outcome).inc()

    def observe_failure(self, failure: str) -> None:
        """Count one failed API request by the `failure` name of its error."""
        self._failures.labels(failure if failure in FAILURES else errors.KubeError.failure).inc()

    def observe_publish(self, result: str, *, seconds: float, now: float) -> None:
        """Count one attempt to publish a condition; `result` is one of PUBLISHES.

        For `written`, the `seconds` it took and the Unix time `now` are kept too.
        """
        with self._own.lock:
            self._publishes.labels(result if result in PUBLISHES else "failed").inc()
            if result == "written":
                self._durations.observe(seconds)
                self._own.know(last_publish_timestamp_seconds=now)

    def observed(self, now: float) -> None:
        """Note the Unix time of a look at the world."""
        self._own.know(last_observation_timestamp_seconds=now)

    def set_condition(self, status: str, reason: str, *, from_file: bool, final: bool) -> None:
        """Set the condition as it stands on the Job, replacing the one before.

        A reason that an adapter chose is shown as FROM_RESULT, since there is no end to those.
        """
        with self._own.lock:
            for each in STATUSES:
                self._condition.labels(each).set(each == status)
            self._verdict.clear()
            self._verdict.labels(FROM_RESULT if from_file else reason).set(1)
            self._final.set(final)
            self._is_final = final

    def set_adapter(self, exit_code: int | None, restarts: int | None) -> None:
        """Set what the API shows of the adapter; None is unknown."""
        self._own.know(adapter_exit_code=exit_code, adapter_restarts=restarts)

    def set_progress(
        self,
        *,
        completed: int | None = None,
        total: int | None = None,
        failures: int | None = None,
        errors: int | None = None,
    ) -> None:
        """Set the adapter's newest progress; None is unknown."""
        self._own.know(
            progress_completed=completed,
            progress_expected=total,
            progress_failures=failures,
            progress_errors=errors,
        )

    def set_link(self, *, up: bool) -> None:
        """Set whether the link to an aggregator works; without a call there is none."""
        own = self._own
        with own.lock:
            if self._link is None:
                self._link = (
                    own.counter("link_updates", "Progress updates sent.", "result", values=UPDATES),
                    own.counter(
                        "link_deliveries", "Finished deliveries.", "outcome", values=DELIVERIES
                    ),
                )
            self._own.know(link_up=up)

    def observe_update(self, *, sent: bool) -> None:
        """Count one progress update to the aggregator."""
        if self._link is not None:
            self._link[0].labels("sent" if sent else "failed").inc()

    def observe_delivery(self, outcome: str) -> None:
        """Count how a delivery to the aggregator ended; `outcome` is one of DELIVERIES."""
        if self._link is not None:
            self._link[1].labels(outcome).inc()

    def render(self, accept: str = "") -> Page:
        """Render all series in the format that the `Accept` header prefers."""
        with self._own.lock:
            # Under the one lock, so that `final` is the one in the text.
            return Page(*self._own.render(accept), self._is_final)


_FACTS = {
    "adapter_exit_code": "Exit code of the adapter's last completed run.",
    "last_publish_timestamp_seconds": "Time of the last condition write.",
    "last_observation_timestamp_seconds": "Time of the last check of the Pod and the file.",
    "progress_completed": "Items completed by the adapter.",
    "progress_expected": "Total items of the adapter.",
    "progress_failures": "Failures reported by the adapter.",
    "progress_errors": "Errors reported by the adapter.",
    "link_up": "1 if the link to an aggregator is set up.",
}
