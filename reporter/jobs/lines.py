"""What is shown of a Job: a line for each verdict on it."""

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from reporter.cli import output as show
from reporter.cli.table import table, terminal_columns
from reporter.common.objects import epoch
from reporter.jobs.job import JobView, WrittenVerdict

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
