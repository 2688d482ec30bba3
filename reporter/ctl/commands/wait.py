"""`status-ctl wait`: until a run, or a part of it, has come to its end; or until Jobs have."""

import argparse
import sys
import time
from collections.abc import Callable

from reporter.core.launch.names import is_run_name
from reporter.core.run.reading import ReadOutcome
from reporter.core.run.remarks import ending
from reporter.core.run.view import Document, Look, Row, counts, over, rows
from reporter.ctl import cluster
from reporter.ctl.exits import FAILED, GOOD, TIME_OVER, CannotTell
from reporter.ctl.quantities import length
from reporter.ctl.run import exit_code as run_exit
from reporter.ctl.run import origin
from reporter.ctl.run.by_cluster import ByCluster
from reporter.ctl.run.origin import Origin
from reporter.ctl.run.server import ANSWER
from reporter.ctl.show import output as show
from reporter.ctl.show.bar import Bar
from reporter.ctl.show.held_up import HeldUp
from reporter.ctl.show.run_table import put_run, summary
from reporter.ctl.show.tell import tell
from reporter.errors import KubeError, Unavailable

DESCRIPTION = """\
Waits until a run is over, and shows how it ended as `status-ctl status` does. With JOBs, waits
until each of them, which need not exist yet, has its final verdict, and prints each as it comes. A
verdict other than True counts once the Job ends or can start no further Pod. A single NAME is the
run of that name if there is one, else a Job; run/NAME and job/NAME say which.

While the cluster or the aggregator cannot be reached, it keeps waiting. On a terminal a line shows
the progress.

exit codes:
  0    passed; every JOB is True
  1    failed: a result is missing or reports a failed check; a JOB is False or Unknown for
       good
  2    usage error
  3    timed out
  4    cannot tell: forbidden, no source for the status, a run or JOB that was deleted, a JOB
       that has ended without a final verdict
  130  Ctrl-C"""

END = "end"
FOR_JOBS = ("junit", "github")
"""Forms of output for Jobs only."""
_BAR = 24
_LEAST_PAUSE = 0.2  # seconds between two looks
_SOON = 0.05  # seconds: before the end of the time, and for the last answer
_SMALL = 500  # entries that are asked for each time, to say what their Pods wait for
_WHOLE_TRIES = 5  # for the entries of a run whose summary has said how it ended


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "jobs",
        metavar="NAME",
        nargs="*",
        help="a run, as run/NAME or NAME, or Jobs, as job/NAME or NAME (default: the only run)",
    )
    parser.add_argument(
        "--for",
        dest="goal",
        metavar="WHAT",
        default=END,
        help="`end` (the default): until nothing can change any more; PLUGIN or PLUGIN/NODE: until "
        "its entries are decided, and only they count",
    )
    parser.add_argument(
        "--fail-fast",
        action="store_true",
        help="stop at the first failure, in a run even if it may still change",
    )
    parser.add_argument(
        "--timeout", metavar="TIME", type=length, help="timeout, as 90s, 30m or 6h (default: none)"
    )
    run_exit.arguments(parser)
    show.arguments(parser, (*show.FORMS, *FOR_JOBS))
    origin.arguments(parser, named=False)


def run(options: argparse.Namespace) -> int:
    """Wait, show the end, and return the exit code."""
    options.run_name = _run_name(options)
    found = None if options.run_name else _sought(options)
    if options.jobs and not (options.run_name or found):
        return _wait_for_jobs(options)
    if options.output in FOR_JOBS:
        options.error(
            f"-o {options.output} applies to JOBs; `status-ctl results` has the tests of a run"
        )
    chosen = found or origin.choose(options)
    code, _ = follow(chosen, options, options.goal, fail_fast=options.fail_fast)
    return code


def follow(
    chosen: Origin,
    options: argparse.Namespace,
    goal: str = END,
    *,
    fail_fast: bool = False,
    more: str = "",
) -> tuple[int, Look]:
    """Wait with a bar and show the end; return what `wait` does. `more` is said of a late run."""
    bar = RunBar(sys.stderr)
    try:
        code, look = wait(
            chosen, goal, options.timeout, fail_fast, bar, delivery_only=options.delivery_only
        )
    finally:
        bar.clear()
    if look.document is not None:
        put_run(look.document, options)
    if code == TIME_OVER:
        tell(f"timed out: {look.detail or 'the run is not over'}{more}")
    return code, look


def _run_name(options: argparse.Namespace) -> str:
    """Return the name that can only be a run's; nothing where there is none."""
    named = [each for each in options.jobs if each.startswith("run/")]
    if named and len(options.jobs) > 1:
        options.error(f"{named[0]} cannot be used with other names")
    if named:
        try:
            return origin.run_name(named[0])
        except argparse.ArgumentTypeError as error:
            options.error(str(error))
    of_a_run = options.goal != END or options.delivery_only
    return _bare_name(options) if of_a_run else ""


def _bare_name(options: argparse.Namespace) -> str:
    """Return the only name, where it may be a run's or a Job's."""
    elsewhere = options.all_namespaces or options.url or options.connection
    if len(options.jobs) != 1 or not is_run_name(options.jobs[0]) or elsewhere:
        return ""
    name: str = options.jobs[0]
    return name


def _sought(options: argparse.Namespace) -> ByCluster | None:
    """Return the run that a bare name means, if there is one; ask until that is known.

    What it takes is part of the time to wait. Raises CannotTell.
    """
    if not (name := _bare_name(options)):
        return None
    chosen, times = ByCluster(options, name), Times(options.timeout)
    found, said = False, ""
    while True:
        try:
            found = chosen.exists(times.patience())
        except Unavailable as error:
            if not times.over(chosen.pause):
                if (trouble := cluster.said(error)) != said:
                    tell(f"{trouble}; waiting")
                said = trouble
                times.sleep(chosen.pause)
                continue
        except KubeError:
            pass  # the same is said of the Job
        break
    options.timeout = times.left()
    return chosen if found else None


def _wait_for_jobs(options: argparse.Namespace) -> int:
    run_only = {
        "--for": options.goal != END,
        "--delivery-only": options.delivery_only,
        "--all-namespaces": options.all_namespaces,
        **{f"--{name}": getattr(options, name) for name in ("url", "connection")},
        **{f"--{name}": getattr(options, name) for name in ("ca", "cert", "key")},
    }
    if wrong := [name for name, given in run_only.items() if given]:
        options.error(f"{wrong[0]} applies to a run and cannot be used with JOBs")
    from reporter.ctl.commands.wait_jobs import run as run_jobs

    return run_jobs(options)


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
    # What a report says is known a moment after it is in.
    judged = delivery_only or all(row.bad or row.result for row in wanted)
    if over(document) or (decided and judged):
        return GOOD if good and decided else FAILED
    return None


def _written(row: Row) -> str:
    return f"{row.plugin}/{row.node}"
