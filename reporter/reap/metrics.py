"""The metrics of `status-ctl reap --watch`."""

from reporter.common.metrics import Families, Page
from reporter.verdict.rows import Row

FROM_RESULT = "FromResult"
_ENDS = ("done", "failed")
_REASONS = tuple(sorted({row.reason for row in Row if row.reason} | {FROM_RESULT}))


class ReaperMetrics:
    """Counts what was written and how the passes went. Threads may share it."""

    def __init__(self) -> None:
        own = self._own = Families("status_reporter_reaper_")
        self._reports = own.counter(
            "reports", "Reports written on Jobs, by reason.", "reason", values=_REASONS
        )
        self._passes = own.counter(
            "passes", "Passes over all Jobs, by how they ended.", "result", values=_ENDS
        )
        self._failures = own.counter(
            "failures", "Jobs that could not be read or updated; the next pass tries again."
        )
        own.facts(
            {
                "last_pass_timestamp_seconds": "When the last complete pass ended.",
                "open_jobs": "Jobs without a final verdict after the last complete pass.",
            }
        )

    def reaped(self, reason: str) -> None:
        """Count a report that was written."""
        # The reason of a result is the adapter's own: a label takes none from outside.
        self._reports.labels(reason if reason in _REASONS else FROM_RESULT).inc()

    def passed(self, *, done: bool, waiting: int, failures: int, now: float) -> None:
        """Note the end of a pass: Jobs that still wait, requests that failed, epoch seconds."""
        with self._own.lock:
            self._passes.labels("done" if done else "failed").inc()
            self._failures.inc(failures)
            if done:
                self._own.know(open_jobs=waiting, last_pass_timestamp_seconds=now)

    def page(self, accept: str) -> Page:
        """Render all of it."""
        return Page(*self._own.render(accept), final=False)
