"""`status-ctl wait`: until a run, or a part of it, has come to its end; or until Jobs have."""

import argparse
import math
import sys
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final

from reporter.cli import cluster
from reporter.cli import output as show
from reporter.cli.exits import FAILED, GOOD, NOT_OVER, CannotTell
from reporter.cli.options import length
from reporter.cli.output import tell
from reporter.cli.table import Bar
from reporter.errors import KubeError, Unavailable
from reporter.run.names import is_run_name
from reporter.run.view import Document, Look, ReadOutcome, counts, ending, good, over, rows
from reporter.runctl import origin
from reporter.runctl.follow import Deadline, Looks, delivery_option, once
from reporter.runctl.origin import Origin
from reporter.runctl.server import ANSWER
from reporter.runctl.table import put_run, summary

if TYPE_CHECKING:
    from reporter.runctl.cluster_run import ByCluster

END: Final = "end"
"""The goal of waiting for all of a run."""
NO_RUN: Final = 60.0
"""Seconds for a run to appear that nobody has named, where no --timeout says how long."""
STANDS: Final = 3.0
"""Seconds after which what a Pod waits for is no mere step of a start."""
STUCK: Final = 60.0
"""Seconds after which --fail-fast takes trouble that waiting seldom resolves for a failure."""
_BAR: Final = 24
_SMALL: Final = 500  # entries that are asked for each time, to say what their Pods wait for
_WHOLE_TRIES: Final = 5  # for the entries of a run whose summary has said how it ended

DESCRIPTION = """\
Waits until a run is over and shows its status. With JOBs, which need not exist yet, waits for the
final verdict of each and prints it. A verdict other than True counts once the Job has ended or
cannot start another Pod. A single NAME means the run of that name if there is one, otherwise a Job;
run/NAME and job/NAME are explicit. With -A it means a run.

While the cluster or the aggregator is unreachable, the command keeps waiting. On a terminal a line
shows the progress.

exit codes:
  0    passed; every JOB is True
  1    failed: a result is missing or reports a failed check; the final verdict of a JOB is
       False or Unknown; with --fail-fast also a problem that lasts
  2    usage error
  3    timed out
  4    cannot tell: forbidden, no source for the status, a run or JOB that was deleted, a JOB
       that has ended without a final verdict
  130  Ctrl-C"""


@dataclass(frozen=True, slots=True)
class Goal:
    """What is waited for: all of the run, or the entries that `what` names.

    `appears` is how many seconds the run may take to appear.
    """

    what: str = END
    fail_fast: bool = False
    delivery_only: bool = False
    appears: float = math.inf

    def verdict(self, document: Document, stuck: Collection[str] = ()) -> int | None:
        """Return the exit code once there is one. Raises CannotTell where no entry is meant.

        `stuck` are the entries that have not started for so long that they count as failed.
        """
        if self.what == END:
            fine = good(document, delivery_only=self.delivery_only) and not stuck
            if over(document) or (self.fail_fast and not fine):
                return GOOD if fine else FAILED
            return None
        wanted = [
            row
            for row in rows(document)
            if self.what in {row.plugin, row.key, f"{row.plugin}/{row.node}"}
        ]
        if not wanted:
            raise CannotTell(f"the run has no entry {self.what!r}")
        fine = all(not row.bad if self.delivery_only else row.passed for row in wanted)
        if self.fail_fast and (not fine or any(row.key in stuck for row in wanted)):
            return FAILED
        decided = all(row.decided for row in wanted)
        # The verdict on a report is known a moment after it is in.
        judged = self.delivery_only or all(row.bad or row.result for row in wanted)
        if over(document) or (decided and judged):
            return GOOD if fine and decided else FAILED
        return None


class HeldUp:
    """What Pods wait for. Hears each document of a run; `see` returns what is worth a line now.

    Of many nodes with the same trouble in one plugin the first is named. `stuck` are the entries
    that waiting seldom helps and has not helped.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since: dict[tuple[str, bool], float] = {}
        self.stuck = set[str]()
        self._told: set[tuple[str, str]] = set()

    def see(self, document: Document) -> list[str]:
        """Return the new lines."""
        now, found = self._clock(), [row for row in rows(document) if row.held_up]
        kept = ((each.key, each.stuck) for each in found)
        self._since = {each: self._since.get(each, now) for each in kept}
        self.stuck = {key for (key, bad), at in self._since.items() if bad and now >= at + STUCK}
        lines = []
        for each in found:
            what = each.plugin, each.held_up
            if now >= self._since[each.key, each.stuck] + STANDS and what not in self._told:
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


def arguments(parser: argparse.ArgumentParser) -> None:
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
        help="`end` (the default): until the run is final; PLUGIN or PLUGIN/NODE: until its "
        "entries are decided, and only they determine the exit code",
    )
    parser.add_argument(
        "--fail-fast",
        action="store_true",
        help="stop at the first failure, in a run even if it may still change, and at a problem "
        "with an image or a configuration that lasts 60s; with JOBs also at a crash loop, in a "
        "run if a Pod cannot reach the aggregator",
    )
    parser.add_argument(
        "--timeout",
        metavar="TIME",
        type=length,
        help="timeout, as 90s, 30m or 6h (default: none; without NAME, 60s until there is a run)",
    )
    delivery_option(parser)
    show.arguments(parser, show.FORMS)
    origin.arguments(parser, named=False)


def run(options: argparse.Namespace) -> int:
    """Wait, show the end, and return the exit code."""
    options.run_name = _run_name(options)
    found = None if options.run_name else _run_of_bare_name(options)
    if options.jobs and not (options.run_name or found):
        return _wait_for_jobs(options)
    chosen = found or origin.choose(options)
    appears = NO_RUN if options.timeout is None and not options.jobs else math.inf
    goal = Goal(options.goal, options.fail_fast, options.delivery_only, appears)
    code, _ = follow(chosen, options, goal, Deadline(options.timeout))
    return code


def follow(
    chosen: Origin, options: argparse.Namespace, goal: Goal, deadline: Deadline, *, more: str = ""
) -> tuple[int, Look]:
    """Wait with a bar and show the end; return what `wait` does. `more` is said of a late run."""
    bar = RunBar(sys.stderr)
    try:
        code, look = wait(chosen, goal, deadline, bar)
    finally:
        bar.clear()
    if look.document is not None:
        put_run(look.document, options)
    if code == NOT_OVER:
        tell(f"timed out: {look.detail or 'the run is not over'}{more}")
    return code, look


def wait(chosen: Origin, goal: Goal, deadline: Deadline, bar: RunBar) -> tuple[int, Look]:
    """Look until it is over; return the exit code and the last look. Raises CannotTell."""
    looks = Looks(chosen, deadline, entries=goal.what != END, say=bar.say)
    held, last = HeldUp(deadline.clock), Look(ReadOutcome.UNREACHABLE)
    for look in looks:
        if look.document is None:
            last = look if last.document is None else last
            if last.outcome is ReadOutcome.NOT_FOUND and deadline.elapsed >= goal.appears:
                break
            continue
        last = look
        for line in held.see(look.document):
            bar.say(line)
        looks.entries = looks.entries or counts(look.document)["entries"] <= _SMALL
        bar.draw(look.document)
        code = goal.verdict(look.document, held.stuck)
        if code is not None and "plugins" in look.document:
            return code, look
        if code is not None and (end := _with_entries(looks, goal, code, look)) is not None:
            return end
    if last.document is not None and "plugins" not in last.document:
        whole = chosen.look()
        last = whole if whole.document is not None else last
    return NOT_OVER, last


def _with_entries(looks: Looks, goal: Goal, code: int, summary: Look) -> tuple[int, Look] | None:
    """Return the end of a run with its entries, which have the last word; None if it is none.

    Without them where they are too many, or the way is too slow for them.
    """
    looks.entries = True
    try:
        for look in islice(looks, _WHOLE_TRIES):
            if look.document is not None:
                final = goal.verdict(look.document)
                return None if final is None else (final, look)
    except CannotTell:
        pass  # it was deleted meanwhile
    return code, summary


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
    of_a_run = options.goal != END or options.delivery_only or options.all_namespaces
    return _bare_name(options) if of_a_run else ""


def _bare_name(options: argparse.Namespace) -> str:
    """Return the only name, where it may be a run's or a Job's."""
    elsewhere = options.url or options.connection
    if len(options.jobs) != 1 or not is_run_name(options.jobs[0]) or elsewhere:
        return ""
    return str(options.jobs[0])


def _run_of_bare_name(options: argparse.Namespace) -> "Origin | None":
    """Return the run that a bare name means, if there is one.

    This is part of the time to wait. Raises CannotTell.
    """
    if not (name := _bare_name(options)):
        return None
    chosen = origin.by_cluster(options, name)
    deadline = Deadline(options.timeout)
    found = _exists(chosen, deadline)
    options.timeout = deadline.left()
    return chosen if found else None


def _exists(chosen: "ByCluster", deadline: Deadline) -> bool:
    """Ask until it is known whether there is such a run."""
    say = once()
    while True:
        try:
            return chosen.exists(deadline.patience(ANSWER))
        except Unavailable as error:
            if deadline.over(chosen.pause):
                return False
            say(f"{cluster.said(error)}; waiting")
            deadline.sleep(chosen.pause)
        except KubeError:
            return False  # the same is said of the Job


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
    from reporter.jobs.wait import run as run_jobs

    return run_jobs(options)
