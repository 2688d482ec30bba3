"""The metrics of `status-ctl reap --watch`."""

import threading
from collections.abc import Iterator

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric

from reporter.common.metrics import Page, Renderer
from reporter.verdict.rows import REASONS

_PREFIX = "status_reporter_reaper_"
FROM_RESULT = "FromResult"
_REASONS = tuple(sorted(set(REASONS.values()) | {FROM_RESULT}))


class ReaperMetrics:
    """Counts what was written and how the passes went. Threads may share it."""

    def __init__(self) -> None:
        self._renderer = Renderer(self)
        self._lock: threading.Lock = self._renderer.lock
        self._reaped = dict.fromkeys(_REASONS, 0)
        self._failures = 0
        self._open = 0
        self._passes = {"done": 0, "failed": 0}
        self._passed_at: float | None = None

    def reaped(self, reason: str) -> None:
        """Count a report that was written."""
        # The reason of a result is the adapter's own: a label takes none from outside.
        known = reason if reason in self._reaped else FROM_RESULT
        with self._lock:
            self._reaped[known] += 1

    def passed(self, *, done: bool, waiting: int, failures: int, now: float) -> None:
        """Note the end of a pass: Jobs that still wait, requests that failed, epoch seconds."""
        with self._lock:
            self._passes["done" if done else "failed"] += 1
            self._failures += failures
            if done:
                self._open, self._passed_at = waiting, now

    def page(self, accept: str) -> Page:
        """Render all of it."""
        with self._lock:
            body, content_type = self._renderer.render(accept)
        return Page(body, content_type, final=False)

    def collect(self) -> Iterator[Metric]:
        """Yield every family, for the renderer."""
        reaped = CounterMetricFamily(
            _PREFIX + "reports", "Reports written on Jobs, by reason.", labels=["reason"]
        )
        for reason, count in self._reaped.items():
            reaped.add_metric([reason], count)
        passes = CounterMetricFamily(
            _PREFIX + "passes", "Passes over all Jobs, by how they ended.", labels=["result"]
        )
        for result, count in self._passes.items():
            passes.add_metric([result], count)
        yield reaped
        yield passes
        yield CounterMetricFamily(
            _PREFIX + "failures",
            "Jobs that could not be read or updated; the next pass tries again.",
            value=self._failures,
        )
        if self._passed_at is not None:
            yield GaugeMetricFamily(
                _PREFIX + "last_pass_timestamp_seconds",
                "When the last complete pass ended.",
                value=self._passed_at,
            )
            yield GaugeMetricFamily(
                _PREFIX + "open_jobs",
                "Jobs without a final verdict after the last complete pass.",
                value=self._open,
            )
