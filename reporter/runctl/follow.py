"""Waiting for a run: looks at it until it, or a part of it, has come to its end.

And the exit code that it deserves then.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Final

from reporter.cli.exits import FAILED, GOOD, TIME_OVER, CannotTell
from reporter.cli.output import tell
from reporter.cli.table import Bar
from reporter.run.view import (
    Document,
    Look,
    ReadOutcome,
    Row,
    counts,
    ending,
    failed,
    over,
    passed,
    rows,
    upload_failed,
)
from reporter.runctl.server import ANSWER
from reporter.runctl.table import summary

if TYPE_CHECKING:
    from reporter.runctl.origin import Origin

END: Final = "end"
"""The goal of waiting for all of a run."""
STANDS: Final = 3.0
"""Seconds after which what a Pod waits for is no mere step of a start."""
_BAR: Final = 24
_LEAST_PAUSE: Final = 0.2  # seconds between two looks
_SOON: Final = 0.05  # seconds: before the end of the time, and for the last answer
_SMALL: Final = 500  # entries that are asked for each time, to say what their Pods wait for
_WHOLE_TRIES: Final = 5  # for the entries of a run whose summary has said how it ended


def delivery_option(parser: argparse.ArgumentParser) -> None:
    """Declare `--delivery-only`."""
    parser.add_argument(
        "--delivery-only",
        action="store_true",
        help="exit 0 if all results were delivered, even if checks failed",
    )


def exit_code(document: Document, *, delivery_only: bool) -> int:
    """Return 1 where something has failed."""
    return GOOD if good(document, delivery_only=delivery_only) else FAILED


def good(document: Document, *, delivery_only: bool) -> bool:
    """Return whether nothing has failed: no delivery and, unless only these count, no check.

    The upload of the results is one of the deliveries.
    """
    if upload_failed(document):
        return False
    return not failed(document) if delivery_only else passed(document)


class Deadline:
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


def once(say: Callable[[str], None] = tell) -> Callable[[str], None]:
    """Return what says a line unless it has just said the same; an empty one ends that."""
    said = ""

    def hear(line: str) -> None:
        nonlocal said
        if line and line != said:
            say(line)
        said = line

    return hear


class Looks:
    """Looks at a run, one after the other with a pause between; at least one, until time is over.

    What is in the way is said once, until it is another. `entries` may be set between two looks:
    without them the summary is enough. Raises CannotTell where another look makes no sense.
    """

    def __init__(
        self,
        origin: "Origin",
        deadline: Deadline,
        *,
        entries: bool = True,
        say: Callable[[str], None] = tell,
    ) -> None:
        self._origin, self._deadline, self._say = origin, deadline, once(say)
        self.entries = entries

    def __iter__(self) -> Iterator[Look]:
        while True:
            look = self._origin.look(self._deadline.patience(), entries=self.entries)
            if look.outcome is ReadOutcome.FORBIDDEN:
                raise CannotTell(f"{look.detail} (forbidden)")
            waits = f"{look.detail}; waiting" if look.detail else ""
            self._say(look.warning if look.document is not None else waits)
            yield look
            if self._deadline.over(self._origin.pause):
                return
            self._deadline.sleep(self._origin.pause)


class HeldUp:
    """What Pods wait for. Hears each document of a run; `see` returns what is worth a line now.

    Of many nodes with the same trouble in one plugin the first is named.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since: dict[str, float] = {}
        self._told: set[tuple[str, str]] = set()

    def see(self, document: Document) -> list[str]:
        """Return the new lines."""
        now, found = self._clock(), [row for row in rows(document) if row.held_up]
        self._since = {each.key: self._since.get(each.key, now) for each in found}
        lines = []
        for each in found:
            what = each.plugin, each.held_up
            if now >= self._since[each.key] + STANDS and what not in self._told:
                self._told.add(what)
                lines.append(f"{each.key}: {each.pod}")
        return lines


class RunBar(Bar):
    """How far a run is; where no line can be written over, each phase of the end is told once."""

    _ending = ""

    def say(self, line: str) -> None:
        """Tell a line in place of it."""
        self.clear()
        tell(line)

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
    origin: "Origin",
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

    def judge(document: Document) -> int | None:
        return verdict(document, goal, fail_fast, delivery_only=delivery_only)

    looks = Looks(origin, Deadline(timeout, clock, sleep), entries=goal != END, say=bar.say)
    held, last = HeldUp(clock), Look(ReadOutcome.UNREACHABLE)
    for look in looks:
        if look.document is None:
            last = look if last.document is None else last
            continue
        last = look
        for line in held.see(look.document):
            bar.say(line)
        looks.entries = looks.entries or counts(look.document)["entries"] <= _SMALL
        bar.draw(look.document)
        code = judge(look.document)
        if code is not None and "plugins" in look.document:
            return code, look
        if code is not None and (end := _with_entries(looks, code, look, judge)) is not None:
            return end
    if last.document is not None and "plugins" not in last.document:
        whole = origin.look()
        last = whole if whole.document is not None else last
    return TIME_OVER, last


def _with_entries(
    looks: Looks, code: int, summary: Look, judge: Callable[[Document], int | None]
) -> tuple[int, Look] | None:
    """Return the end of a run with its entries, which have the last word; None if it is none.

    Without them where they are too many, or the way is too slow for them.
    """
    looks.entries = True
    try:
        for look in islice(looks, _WHOLE_TRIES):
            if look.document is not None:
                final = judge(look.document)
                return None if final is None else (final, look)
    except CannotTell:
        pass  # it was deleted meanwhile
    return code, summary


def verdict(
    document: Document, goal: str, fail_fast: bool, *, delivery_only: bool = False
) -> int | None:
    """Return the exit code once there is one. Raises CannotTell for a goal the run has not."""
    if goal == END:
        fine = good(document, delivery_only=delivery_only)
        if over(document) or (fail_fast and not fine):
            return GOOD if fine else FAILED
        return None
    wanted = [row for row in rows(document) if goal in {row.plugin, row.key, _written(row)}]
    if not wanted:
        raise CannotTell(f"the run has no entry {goal!r}")
    fine = all(not row.bad if delivery_only else row.passed for row in wanted)
    if fail_fast and not fine:
        return FAILED
    decided = all(row.decided for row in wanted)
    # The verdict on a report is known a moment after it is in.
    judged = delivery_only or all(row.bad or row.result for row in wanted)
    if over(document) or (decided and judged):
        return GOOD if fine and decided else FAILED
    return None


def _written(row: Row) -> str:
    return f"{row.plugin}/{row.node}"
