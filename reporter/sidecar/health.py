"""What the probes are told: whether the main loop turns, whether Job and Pod can be read."""

import time
from collections.abc import Callable, Mapping

from reporter.core.case import Observation
from reporter.core.condition import Standing
from reporter.core.facts import PodRefused, PodUnknown

STALLED = 60.0  # a pass and its requests take at most half of this


class Health:
    """Asked by the endpoint's thread; `standing` and `last` give what is known at that moment.

    `poll_interval` is the longest pause between two passes, in seconds.
    """

    def __init__(
        self,
        poll_interval: float,
        standing: Callable[[], Standing | None],
        last: Callable[[], Observation | None],
    ) -> None:
        self._longest_pause = STALLED + poll_interval
        self._standing, self._last = standing, last
        self._ticked = time.monotonic()
        self.job_never_seen = False

    def tick(self) -> None:
        """Note that the main loop is at work."""
        self._ticked = time.monotonic()

    def alive(self) -> bool:
        """Return whether the main loop has been at work lately."""
        return time.monotonic() - self._ticked < self._longest_pause

    def checks(self) -> Mapping[str, str | None]:
        """Return the problem of each check, None where all is well."""
        return {"job": self._job_problem(), "pod": self._pod_problem()}

    def _job_problem(self) -> str | None:
        if self.job_never_seen:
            return "no such Job"
        return None if self._standing() else "the Job has not been read yet"

    def _pod_problem(self) -> str | None:
        o = self._last()
        if o is None or isinstance(o.pod, PodUnknown):
            return "the Pod has not been read yet"
        return "reading the Pod is forbidden" if isinstance(o.pod, PodRefused) else None
