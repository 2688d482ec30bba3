"""`status-ctl reap`: writes the final condition on Jobs whose reporter was lost."""

import argparse
import signal
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, NoReturn

from reporter.cli import output as show
from reporter.cli.cluster import asking, cluster_arguments, open_cluster, said
from reporter.cli.exits import CANNOT_TELL, GOOD, INTERRUPTED, CannotTell
from reporter.cli.options import length, wait_time
from reporter.cli.output import tell
from reporter.common.text import clean
from reporter.errors import KubeError

if TYPE_CHECKING:
    from reporter.common.lifecycle import Stop
    from reporter.reap.decide import Reap
    from reporter.reap.metrics import ReaperMetrics
    from reporter.reap.reaper import Pass, Reaper, Waiting

DESCRIPTION = """\
Writes the final condition on Jobs whose reporter was lost: its Pod was force-deleted or killed, its
node is lost, or it never started. Checks all Jobs that have a reporter in their Pod template,
its annotation, or the label status-reporter.io/inject, once or with --watch until it is stopped.

A final condition is never changed, and a reporter that is running or may still start is left alone.

exit codes:
  0    all Jobs were checked, whatever was written; with --watch: SIGTERM
  2    usage error
  4    cannot tell: not reachable, forbidden, or a Job could not be updated
  130  Ctrl-C"""

API_VERSION = "v1"
FORMS = ("table", "json", "yaml", "name")
_LONGEST_SILENCE = 120.0  # seconds without a request, beside the pauses, before /livez fails


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "-l", "--selector", metavar="LABELS", default="", help="label selector, as KEY=VALUE,..."
    )
    parser.add_argument(
        "--settle",
        type=length,
        default=60,
        metavar="TIME",
        help="how long a reporter may still write after its Job has ended, and how long a node has "
        "to be silent (default: 60s)",
    )
    parser.add_argument("--dry-run", action="store_true", help="only print what would be written")
    parser.add_argument(
        "-w", "--watch", action="store_true", help="keep running, repeat every --interval"
    )
    parser.add_argument(
        "--interval",
        type=wait_time,
        default=60,
        metavar="TIME",
        help="with --watch: the time between two passes (default: 60s)",
    )
    parser.add_argument(
        "--qps",
        type=_rate,
        default=20.0,
        metavar="N",
        help="requests per second at most (default: 20)",
    )
    parser.add_argument(
        "--metrics-port",
        type=_port,
        default=None,
        metavar="PORT",
        help="with --watch: serve /metrics, /livez, /readyz and /healthz on this port",
    )
    show.arguments(parser, FORMS)
    cluster_arguments(parser, everywhere=True)


def run(options: argparse.Namespace) -> int:
    """Make one pass, or pass after pass, and return the exit code."""
    if options.metrics_port is not None and not options.watch:
        options.error("--metrics-port requires --watch")
    from reporter.common.lifecycle import install

    stop = install()
    api, namespace = open_cluster(options)
    api.hurry_after(lambda: stop.requested_at)

    from reporter.reap.reaper import Reaper

    shown, metrics = Shown(options, everywhere=namespace is None), None
    if options.watch:
        from reporter.reap.metrics import ReaperMetrics

        metrics = ReaperMetrics()

    def reaped(waiting: "Waiting", written: "Reap") -> None:
        shown.one(waiting, written)
        if metrics and not options.dry_run:
            metrics.reaped(written.report.reason)

    pace = Pace(options.qps, stop)
    settle, dry_run = float(options.settle), options.dry_run
    reaper = Reaper(api, namespace, options.selector, settle, pace, reaped, dry_run)
    try:
        if metrics:
            _watch(reaper, metrics, pace, options)
        return _once(reaper, shown)
    except (ReapStopped, CannotTell):
        # A request that a signal has broken off is no trouble.
        if not stop.requested:
            raise
        if stop.signal == signal.SIGINT:
            return INTERRUPTED
        return GOOD if options.watch else 128 + signal.SIGTERM
    finally:
        api.close()


class ReapStopped(Exception):
    """We were asked to end."""


class Pace:
    """Called before each request: waits for its turn, and raises ReapStopped after a signal."""

    def __init__(
        self, rate: float, stop: "Stop", clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._gap, self._stop, self._clock = 1.0 / rate, stop, clock
        self._next = clock()

    def silent(self, patience: float) -> bool:
        """Tell whether the next request has been due for longer than this, in seconds."""
        return self._clock() > self._next + patience

    def __call__(self) -> None:
        """Wait. Raises ReapStopped."""
        self.rest(self._next - self._clock())
        self._next = max(self._next, self._clock()) + self._gap

    def rest(self, seconds: float) -> None:
        """Wait so long. Raises ReapStopped."""
        end = self._clock() + seconds
        while not self._stop.requested and (left := end - self._clock()) > 0:
            self._stop.wake.wait(left)
        if self._stop.requested:
            raise ReapStopped


class Shown:
    """Shows what was written: lines as they come, or one document at the end of a single pass."""

    def __init__(self, options: argparse.Namespace, *, everywhere: bool) -> None:
        self._options, self._everywhere = options, everywhere
        self._items: list[dict[str, Any]] = []

    def one(self, waiting: "Waiting", written: "Reap") -> None:
        """Take one report."""
        form, report, key = self._options.output, written.report, f"job.batch/{waiting.name}"
        if form == "name":
            show.put_names([key])
        elif form == "table":
            where = f"{waiting.namespace}  " if self._everywhere else ""
            last = "final" if written.final else "may still change"
            dry = ", dry run" if self._options.dry_run else ""
            words = f"{waiting.owed.type}={report.status}  {report.reason}: {report.message}"
            show.put([clean(f"{where}{key}  {words} ({last}{dry})", 4096)])
        elif self._options.watch:
            show.put_document(form, item(waiting, written))
        else:
            self._items.append(item(waiting, written))

    def end(self, found: "Pass") -> None:
        """Show what is to be shown after a single pass."""
        if self._options.output in {"json", "yaml"}:
            document = {
                "api_version": API_VERSION,
                "kind": "ReapedJobs",
                "dry_run": self._options.dry_run,
                "items": self._items,
                "left_alone": {why.value: count for why, count in sorted(found.left.items())},
                "failed": [job for job, _ in found.failed],
            }
            show.put_data(self._options.output, document)


def item(waiting: "Waiting", written: "Reap") -> dict[str, Any]:
    """Return a report as data, in the form of `status-ctl jobs`."""
    report = written.report
    return {
        "namespace": waiting.namespace,
        "name": waiting.name,
        "uid": waiting.uid,
        "condition": {
            "type": waiting.owed.type,
            "status": report.status,
            "reason": report.reason,
            "message": report.message,
            "final": written.final,
            "row": report.row,
            "pod": written.attempt.pod,
            "evidence": dict(written.evidence),
        },
    }


def _once(reaper: "Reaper", shown: Shown) -> int:
    with asking():
        found = reaper.run()
    shown.end(found)
    total = found.reaped + len(found.failed) + sum(found.left.values())
    checked = f"{total} condition{'' if total == 1 else 's'} checked"
    tell(f"{checked}, {found.reaped} written, {found.open} without a final verdict")
    _tell_failures(found)
    return CANNOT_TELL if found.failed else GOOD


def _watch(
    reaper: "Reaper", metrics: "ReaperMetrics", pace: Pace, options: argparse.Namespace
) -> NoReturn:
    """Make pass after pass. Raises ReapStopped, and CannotTell where the port is not free."""
    with ExitStack() as stack:
        if options.metrics_port is not None:
            from reporter.common.endpoint import Endpoint, Site

            patience = options.interval + _LONGEST_SILENCE
            try:
                site = Site(
                    metrics.page,
                    alive=lambda: not pace.silent(patience),
                    on_error=lambda error: tell(f"the endpoint could not answer: {error}"),
                )
                endpoint = Endpoint("", options.metrics_port, site)
            except OSError as error:
                raise CannotTell(f"cannot listen on port {options.metrics_port}: {error}") from None
            endpoint.start()
            stack.callback(endpoint.close)
        told = ""
        while True:
            trouble = ""
            try:
                found = reaper.run()
            except KubeError as error:
                trouble = f"{said(error)}; trying again"
                metrics.passed(done=False, waiting=0, failures=1, now=time.time())
            else:
                failures = len(found.failed)
                metrics.passed(done=True, waiting=found.open, failures=failures, now=time.time())
                _tell_failures(found)
            if trouble and trouble != told:
                tell(trouble)
            told = trouble
            pace.rest(options.interval)


def _tell_failures(found: "Pass") -> None:
    for job, error in found.failed:
        tell(f"Job {job} could not be read or updated ({error.failure}): {error}")


def _rate(written: str) -> float:
    try:
        rate = float(written)
    except ValueError:
        rate = 0.0
    if not 0.01 <= rate <= 1000:
        raise argparse.ArgumentTypeError(f"not a rate from 0.01 to 1000: {written!r}")
    return rate


def _port(written: str) -> int:
    if not (written.isascii() and written.isdigit() and len(written) < 6 and int(written) < 65536):
        raise argparse.ArgumentTypeError(f"not a port: {written!r}")
    return int(written)
