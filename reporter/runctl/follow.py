"""Waiting for a run: looks at it until it, or a part of it, has come to its end."""

import time
from collections.abc import Callable

from reporter.cli.exits import FAILED, GOOD, TIME_OVER, CannotTell
from reporter.cli.output import tell
from reporter.cli.table import Bar
from reporter.run.pod_status import ReadOutcome
from reporter.run.remarks import ending
from reporter.run.view import Document, Look, Row, counts, over, rows
from reporter.runctl import exit_code as run_exit
from reporter.runctl.held_up import HeldUp
from reporter.runctl.origin import Origin
from reporter.runctl.server import ANSWER
from reporter.runctl.table import summary

END = "end"
"""The goal of waiting for all of a run."""
_BAR = 24
_LEAST_PAUSE = 0.2  # seconds between two looks
_SOON = 0.05  # seconds: before the end of the time, and for the last answer
_SMALL = 500  # entries that are asked for each time, to say what their Pods wait for
_WHOLE_TRIES = 5  # for the entries of a run whose summary has said how it ended


class Times:
    """How long to wait: `timeout` seconds from now, or without end."""

    def __init__(
        self,
        timeout: float | None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._clock, self._sleep, self._began = clock, sleep, clock()
        self._end = None if timeout is None else self._began + timeout
        # Who does not want to wait wants an answer all the same.
        self._least = _SOON if timeout else ANSWER

    def left(self) -> float | None:
        """Return the seconds until the end, if there is one."""
        return None if self._end is None else max(self._end - self._clock(), 0.0)

    def patience(self) -> float:
        """Return the seconds that an answer may take."""
        left = self.left()
        return ANSWER if left is None else min(ANSWER, max(left, self._least))

    def over(self, pause: float = 0.0) -> bool:
        """Say whether the time is over before another look makes sense."""
        return self._end is not None and self._clock() + min(pause, _SOON) >= self._end

    def sleep(self, longest: float) -> None:
        """Pass the time until the next look.

        Short runs are looked at more often: nobody waits for a tenth more than they take.
        """
        pause = min(longest, max(_LEAST_PAUSE, (self._clock() - self._began) / 10))
        left = self.left()
        self._sleep(pause if left is None else min(pause, left))


class RunBar(Bar):
    """How far a run is; where no line can be written over, each phase of the end is told once."""

    _ending = ""

    def draw(self, document: Document) -> None:
        """Show it."""
        counted = counts(document)
        full = round(_BAR * counted["decided"] / max(counted["entries"], 1))
        shown = self.put(f"[{'#' * full}{'.' * (_BAR - full)}] {summary(document)}")
        # The annotations do not tell of it: that is no other phase.
        before, self._ending = self._ending, ending(document) or self._ending
        if not shown and self._ending != before:
            tell(self._ending)


def wait(
    chosen: Origin,
    goal: str,
    timeout: float | None,
    fail_fast: bool,
    bar: RunBar,
    *,
    delivery_only: bool = False,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> tuple[int, Look]:
    """Look until it is over; return the exit code and the last look. Raises CannotTell."""
    times = Times(timeout, clock, sleep)
    said, last = "", Look(ReadOutcome.UNREACHABLE)
    entries, held = goal != END, HeldUp(clock)
    told: tuple[int, Look] | None = None
    missed = 0
    while True:
        try:
            look = chosen.look(times.patience(), entries=entries)
        except CannotTell:
            if told is None:
                raise
            return told
        if look.outcome is ReadOutcome.FORBIDDEN:
            raise CannotTell(f"{look.detail} (forbidden)")
        trouble = look.detail or look.warning
        if trouble and trouble != said:
            bar.clear()
            tell(trouble if look.document is not None else f"{trouble}; waiting")
        said = trouble
        if look.document is not None:
            last = look
            for line in held.see(look.document):
                bar.clear()
                tell(line)
            entries = entries or counts(look.document)["entries"] <= _SMALL
            bar.draw(look.document)
            code = verdict(look.document, goal, fail_fast, delivery_only=delivery_only)
            if code is not None and told is None and "plugins" not in look.document:
                entries = True  # the end is shown with them, and they have the last word
                told = code, look
                continue
            if code is not None:
                return code, look
            told = None
        elif told is not None:
            missed += 1
            if missed == _WHOLE_TRIES or times.over():
                return told  # too many entries, or too slow a way for them
        if times.over(chosen.pause):
            whole = look if entries or look.document is None else chosen.look()
            seen = [each for each in (whole, last) if each.document is not None]
            return TIME_OVER, seen[0] if seen else look
        times.sleep(chosen.pause)


def verdict(
    document: Document, goal: str, fail_fast: bool, *, delivery_only: bool = False
) -> int | None:
    """Return the exit code once there is one. Raises CannotTell for a goal the run has not."""
    if goal == END:
        good = run_exit.good(document, delivery_only=delivery_only)
        if over(document) or (fail_fast and not good):
            return GOOD if good else FAILED
        return None
    wanted = [row for row in rows(document) if goal in {row.plugin, row.key, _written(row)}]
    if not wanted:
        raise CannotTell(f"the run has no entry {goal!r}")
    good = all(run_exit.good_row(row, delivery_only=delivery_only) for row in wanted)
    if fail_fast and not good:
        return FAILED
    decided = all(row.decided for row in wanted)
    # The verdict on a report is known a moment after it is in.
    judged = delivery_only or all(row.bad or row.result for row in wanted)
    if over(document) or (decided and judged):
        return GOOD if good and decided else FAILED
    return None


def _written(row: Row) -> str:
    return f"{row.plugin}/{row.node}"
