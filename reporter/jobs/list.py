"""`status-ctl jobs`: the verdicts on all Jobs, straight from their conditions."""

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from reporter.cli import output as show
from reporter.cli.cluster import TIMEOUT, asking, cluster_arguments, open_cluster
from reporter.cli.exits import GOOD
from reporter.cli.output import tell
from reporter.cli.table import table, terminal_columns
from reporter.common.objects import epoch, section, text
from reporter.jobs.finding import Object
from reporter.jobs.job import standing
from reporter.jobs.setting import find_setup
from reporter.jobs.written_verdict import WrittenVerdict

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
_NARROW = ("NAME", "CONDITION", "STATUS", "SINCE", "REASON", "FINAL", "MESSAGE")
_WIDE = (*_NARROW[:-1], "ROW", "POD", _NARROW[-1])
_FINAL = {True: "yes", False: "no", None: ""}


@dataclass(frozen=True, slots=True)
class Line:
    """One Job and one verdict on it, or none yet."""

    namespace: str
    name: str
    uid: str
    verdict: WrittenVerdict | None
    deleted: bool = False


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
        jobs = api.list_jobs(namespace, options.selector, timeout=TIMEOUT)
        lines = [line for job in jobs for line in lines_of(job)]
    match options.output:
        case "name":
            found = dict.fromkeys((line.namespace, line.name) for line in lines)
            show.put_names(f"job.batch/{name}" for _, name in found)
        case "json" | "yaml":
            document = {
                "api_version": API_VERSION,
                "kind": "Jobs",
                "items": [item(line) for line in lines],
            }
            show.put_data(options.output, document)
        case form if lines:
            wide, everywhere = form == "wide", namespace is None
            show.put(table_of(lines, options, wide=wide, everywhere=everywhere))
    if not lines:
        tell(none_in(namespace))
    return GOOD


def lines_of(job: Object) -> Iterator[Line]:
    """Yield what stands on a Job; without a verdict where its reporter has said nothing."""
    metadata = section(job, "metadata")
    names = (text(metadata, "namespace"), text(metadata, "name"), text(metadata, "uid"))
    found = standing(job)
    for verdict in found:
        yield Line(*names, verdict)
    if not found and find_setup(section(job, "spec", "template", "spec")):
        yield Line(*names, None)


def none_in(namespace: str | None) -> str:
    """Say that there is no Job to show."""
    where = "any namespace" if namespace is None else f"namespace {namespace!r}"
    return f"no Jobs with a status reporter in {where}"


def table_of(
    lines: Sequence[Line], options: argparse.Namespace, *, wide: bool, everywhere: bool
) -> list[str]:
    """Return the lines of a table, its header first."""
    header = _WIDE if wide else _NARROW
    cells = [_cells(line, wide=wide) for line in lines]
    if everywhere:
        header = ("NAMESPACE", *header)
        cells = [[line.namespace, *row] for line, row in zip(lines, cells, strict=True)]
    columns = None if wide else terminal_columns(sys.stdout)
    return table(header, cells, columns=columns, colours=show.colours(options))


def _cells(line: Line, *, wide: bool) -> list[str]:
    verdict = line.verdict
    if verdict is None:
        words = "deleted" if line.deleted else "no condition yet"
        return [line.name, *[""] * (7 if wide else 5), words]
    since = epoch(verdict.since)
    age = show.ago(None if since is None else time.time() - since)
    # The age is that of the status: reason and message may be newer.
    cells = [line.name, verdict.type, verdict.status, age, verdict.reason, _FINAL[verdict.final]]
    if wide:
        cells += [verdict.row, verdict.pod]
    return [*cells, "deleted" if line.deleted else verdict.message]


def item(line: Line) -> dict[str, Any]:
    """Return a line as data."""
    verdict = line.verdict
    shown = None
    if verdict is not None:
        shown = {
            "type": verdict.type,
            "status": verdict.status,
            "reason": verdict.reason,
            "message": verdict.message,
            "since": verdict.since,
            "final": verdict.final,
            "row": verdict.row,
            "pod": verdict.pod,
            "evidence": dict(verdict.evidence or {}),
        }
    named = {"namespace": line.namespace, "name": line.name, "uid": line.uid}
    return named | {"condition": shown} | ({"deleted": True} if line.deleted else {})
