"""`status-ctl jobs`: the verdicts on all Jobs, straight from their conditions."""

import argparse
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from reporter.cli import output as show
from reporter.cli.cluster import TIMEOUT, asking, cluster_arguments, open_cluster
from reporter.cli.exits import GOOD
from reporter.cli.output import tell
from reporter.cli.table import table, terminal_columns
from reporter.common.objects import epoch
from reporter.jobs.job import JobView, WrittenVerdict

DESCRIPTION = """\
Lists the Jobs with a status reporter: those with its condition, and those whose Pods have a
reporter that has not written one yet. No aggregator is needed.

With --watch it runs until Ctrl-C and prints a line for every change of a condition (with -o json or
yaml a document, with -o name a name).

exit codes:
  0    the Jobs could be read, whatever their conditions
  2    usage error
  4    cannot tell: not reachable, forbidden
  130  Ctrl-C"""

API_VERSION = "v1"
_SHOWN = ("type", "status", "reason", "message", "since", "final", "row", "pod")
_FINAL = {True: "yes", False: "no", None: ""}


@dataclass(frozen=True, slots=True)
class Line:
    """One Job and one verdict on it, or none yet."""

    namespace: str
    name: str
    uid: str
    verdict: WrittenVerdict | None
    deleted: bool = False

    def data(self) -> dict[str, Any]:
        """Return it for JSON and YAML."""
        shown = None
        if self.verdict is not None:
            shown = {key: getattr(self.verdict, key) for key in _SHOWN}
            shown["evidence"] = dict(self.verdict.evidence or {})
        named = {"namespace": self.namespace, "name": self.name, "uid": self.uid}
        return named | {"condition": shown} | ({"deleted": True} if self.deleted else {})


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "-l", "--selector", metavar="LABELS", default="", help="label selector, as KEY=VALUE,..."
    )
    parser.add_argument(
        "-w", "--watch", action="store_true", help="keep running and print a line for every change"
    )
    show.arguments(parser)
    cluster_arguments(parser, everywhere=True)


def run(options: argparse.Namespace) -> int:
    """Read all Jobs, show those that are ours, and return the exit code."""
    api, namespace = open_cluster(options)
    if options.watch:
        from reporter.jobs.watch import follow

        follow(api, namespace, options)
    with closing(api), asking():
        jobs = api.list_all("Job", namespace, options.selector, timeout=TIMEOUT)
        lines = [line for job in jobs for line in lines_of(JobView(job))]
    match options.output:
        case "name":
            found = dict.fromkeys((line.namespace, line.name) for line in lines)
            show.put_names(f"job.batch/{name}" for _, name in found)
        case "json" | "yaml":
            items = [line.data() for line in lines]
            document = {"api_version": API_VERSION, "kind": "Jobs", "items": items}
            show.put_data(options.output, document)
        case _ if lines:
            show.put(table_of(lines, options, everywhere=namespace is None))
    if not lines:
        tell(none_in(namespace))
    return GOOD


def lines_of(job: JobView) -> list[Line]:
    """Return what stands on a Job; without a verdict where its reporter has said nothing."""
    nothing: list[WrittenVerdict | None] = [None] if job.setups else []
    found = list(job.verdicts) or nothing
    return [Line(job.namespace, job.name, job.uid, verdict) for verdict in found]


def none_in(namespace: str | None) -> str:
    """Say that there is no Job to show."""
    where = "any namespace" if namespace is None else f"namespace {namespace!r}"
    return f"no Jobs with a status reporter in {where}"


def table_of(lines: Sequence[Line], options: argparse.Namespace, *, everywhere: bool) -> list[str]:
    """Return the lines of a table, its header first."""
    wide = options.output == "wide"
    header = ["NAME", "CONDITION", "STATUS", "SINCE", "REASON", "FINAL"]
    header += ["ROW", "POD", "MESSAGE"] if wide else ["MESSAGE"]
    rows = [_cells(line, len(header), wide=wide) for line in lines]
    if everywhere:
        header = ["NAMESPACE", *header]
        rows = [[line.namespace, *row] for line, row in zip(lines, rows, strict=True)]
    columns = None if wide else terminal_columns(sys.stdout)
    return table(header, rows, columns=columns, colours=show.colours(options))


def _cells(line: Line, count: int, *, wide: bool) -> list[str]:
    verdict = line.verdict
    if verdict is None:
        words = "deleted" if line.deleted else "no condition yet"
        return [line.name, *[""] * (count - 2), words]
    since = epoch(verdict.since)
    # The age is that of the status: reason and message may be newer.
    age = show.ago(None if since is None else time.time() - since)
    cells = [line.name, verdict.type, verdict.status, age, verdict.reason, _FINAL[verdict.final]]
    if wide:
        cells += [verdict.row, verdict.pod]
    return [*cells, "deleted" if line.deleted else verdict.message]
