"""`status-ctl wait`: until a run, or a part of it, has come to its end."""

import argparse
import sys
import time
from collections.abc import Callable
from typing import TextIO

from reporter.core.run.reading import Found
from reporter.core.run.view import Document, Look, Row, failed, over, rows
from reporter.ctl import origin, show
from reporter.ctl.exits import FAILED, GOOD, TIME_OVER, CannotTell
from reporter.ctl.origin import Origin
from reporter.ctl.run_table import put_run, summary
from reporter.ctl.server import ANSWER
from reporter.ctl.table import cut, redraws, terminal_columns
from reporter.ctl.tell import tell

DESCRIPTION = """\
Waits until a run is over, and shows how it ended as `status-ctl status` does. While the run cannot
be seen it goes on waiting: aggregators restart. On a terminal a line tells how far the run is.

exit codes:
  0    passed
  1    failed
  2    wrong usage
  3    the time is over
  4    cannot tell: forbidden, or nothing that could be asked
  130  Ctrl-C"""

END = "end"
_BAR = 24


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--for",
        dest="goal",
        metavar="WHAT",
        default=END,
        help="`end` (the default): until nothing can change any more; PLUGIN or PLUGIN/NODE: until "
        "its entries are decided, and only they count",
    )
    parser.add_argument(
        "--fail-fast", action="store_true", help="end with the first failure, final or not"
    )
    parser.add_argument(
        "--timeout", metavar="TIME", type=origin.length, help="as 90s, 30m or 6h (default: none)"
    )
    show.arguments(parser)
    origin.arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Wait, show the end, and return the exit code."""
    chosen = origin.choose(options)
    bar = Bar(sys.stderr)
    try:
        code, look = wait(chosen, options.goal, options.timeout, options.fail_fast, bar)
    finally:
        bar.clear()
    if look.document is not None:
        put_run(look.document, options)
    if code == TIME_OVER:
        tell(f"the time is over: {look.detail or 'the run goes on'}")
    return code


class Bar:
    """A line on a terminal that is written over and over; elsewhere nothing."""

    def __init__(self, out: TextIO) -> None:
        self._out, self._shown = out, False

    def draw(self, document: Document) -> None:
        """Show how far the run is."""
        columns = terminal_columns(self._out)
        if columns is None or not redraws(self._out):
            return
        entries = list(rows(document))
        share = sum(row.decided for row in entries) / len(entries) if entries else 0.0
        full = round(share * _BAR)
        line = f"[{'#' * full}{'.' * (_BAR - full)}] {summary(document, entries)}"
        self._shown = True  # before it is: Ctrl-C may come in between
        self._out.write(f"\r\033[K{cut(line, columns - 1)}")
        self._out.flush()

    def clear(self) -> None:
        """Take it away."""
        if self._shown:
            self._out.write("\r\033[K")
            self._out.flush()
            self._shown = False


def wait(
    chosen: Origin,
    goal: str,
    timeout: float | None,
    fail_fast: bool,
    bar: Bar,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> tuple[int, Look]:
    """Look until it is over; return the exit code and the last look. Raises CannotTell."""
    end = None if timeout is None else clock() + timeout
    said, last = "", Look(Found.UNREACHABLE)
    while True:
        left = ANSWER if end is None else end - clock()
        look = chosen.look(min(ANSWER, max(left, 0.05)))
        if look.outcome is Found.FORBIDDEN:
            raise CannotTell(f"{look.detail} (forbidden)")
        trouble = look.detail or look.warning
        if trouble and trouble != said:
            bar.clear()
            tell(trouble if look.document is not None else f"{trouble}; waiting")
        said = trouble
        if look.document is not None:
            last = look
            bar.draw(look.document)
            code = verdict(look.document, goal, fail_fast)
            if code is not None:
                return code, look
        if end is not None and clock() + min(chosen.pause, 0.05) >= end:
            return TIME_OVER, last if last.document is not None else look
        sleep(chosen.pause if end is None else min(chosen.pause, max(end - clock(), 0.0)))


def verdict(document: Document, goal: str, fail_fast: bool) -> int | None:
    """Return the exit code once there is one. Raises CannotTell for a goal the run has not."""
    if goal == END:
        if over(document) or (fail_fast and failed(document)):
            return FAILED if failed(document) else GOOD
        return None
    wanted = [row for row in rows(document) if goal in {row.plugin, row.key, _written(row)}]
    if not wanted:
        raise CannotTell(f"the run has no entry {goal!r}")
    if fail_fast and any(row.bad for row in wanted):
        return FAILED
    if over(document) or all(row.decided for row in wanted):
        return GOOD if all(row.decided and not row.bad for row in wanted) else FAILED
    return None


def _written(row: Row) -> str:
    return f"{row.plugin}/{row.node}"
