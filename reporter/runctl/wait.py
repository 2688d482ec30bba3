"""`status-ctl wait`: until a run, or a part of it, has come to its end; or until Jobs have."""

import argparse
import sys

from reporter.cli import cluster
from reporter.cli import output as show
from reporter.cli.exits import TIME_OVER
from reporter.cli.options import length
from reporter.cli.output import tell
from reporter.errors import KubeError, Unavailable
from reporter.run.names import is_run_name
from reporter.run.view import Look
from reporter.runctl import origin
from reporter.runctl.follow import END, Deadline, RunBar, delivery_option, once, wait
from reporter.runctl.origin import Origin
from reporter.runctl.table import put_run

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
       False or Unknown
  2    usage error
  3    timed out
  4    cannot tell: forbidden, no source for the status, a run or JOB that was deleted, a JOB
       that has ended without a final verdict
  130  Ctrl-C"""


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
        help="stop at the first failure, in a run even if it may still change",
    )
    parser.add_argument(
        "--timeout", metavar="TIME", type=length, help="timeout, as 90s, 30m or 6h (default: none)"
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
    of_a_run = options.goal != END or options.delivery_only or options.all_namespaces
    return _bare_name(options) if of_a_run else ""


def _bare_name(options: argparse.Namespace) -> str:
    """Return the only name, where it may be a run's or a Job's."""
    elsewhere = options.url or options.connection
    if len(options.jobs) != 1 or not is_run_name(options.jobs[0]) or elsewhere:
        return ""
    name: str = options.jobs[0]
    return name


def _run_of_bare_name(options: argparse.Namespace) -> "Origin | None":
    """Return the run that a bare name means, if there is one; ask until that is known.

    This is part of the time to wait. Raises CannotTell.
    """
    if not (name := _bare_name(options)):
        return None
    chosen, deadline = origin.by_cluster(options, name), Deadline(options.timeout)
    found, say = False, once()
    while True:
        try:
            found = chosen.exists(deadline.patience())
        except Unavailable as error:
            if not deadline.over(chosen.pause):
                say(f"{cluster.said(error)}; waiting")
                deadline.sleep(chosen.pause)
                continue
        except KubeError:
            pass  # the same is said of the Job
        break
    options.timeout = deadline.left()
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
    from reporter.jobs.wait import run as run_jobs

    return run_jobs(options)
