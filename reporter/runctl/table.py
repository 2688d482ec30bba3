"""A run as text: its summary in a line, its entries as a table."""

import argparse
import sys

from reporter.cli import output as show
from reporter.cli.table import paint, table, terminal_columns
from reporter.common.objects import section, text
from reporter.common.text import clean
from reporter.run.view import (
    Document,
    Row,
    counts,
    empty,
    ending,
    failed,
    hindrances,
    over,
    own_words,
    passed,
    percent,
    rows,
)

_SAID = 5  # lines about what hinders the run
_NARROW = ["PLUGIN", "NODE", "STATUS", "RESULT", "TESTS", "PROGRESS", "SEEN", "DETAIL"]
_WIDE = [*_NARROW[:-1], "TRIES", "SIZE", "RECEIVED", _NARROW[-1]]
_TESTS = _NARROW.index("TESTS")


def put_run(document: Document, options: argparse.Namespace) -> None:
    """Write a run in the form that was asked for."""
    match options.output:
        case "name":
            show.put_names(row.key for row in rows(document))
        case "json" | "yaml":
            show.put_data(options.output, document)
        case form:
            show.put(run_lines(document, options, wide=form == "wide"))


def run_lines(document: Document, options: argparse.Namespace, *, wide: bool = False) -> list[str]:
    """Return summary and table."""
    entries, colours = list(rows(document)), show.colours(options)
    head = _headline(document)
    colour = colours.get(_worst(document), "")
    lines = [paint(head, colour) + summary(document)[len(head) :]]
    lines += [clean(each, 1024) for each in own_words(document)]
    if entries:
        lists = [_WIDE if wide else _NARROW, *(_cells(row, wide=wide) for row in entries)]
        if not any(row.passed_of for row in entries):
            lists = [[*cells[:_TESTS], *cells[_TESTS + 1 :]] for cells in lists]
        header, *cells = lists
        columns = None if wide else terminal_columns(sys.stdout)
        lines += ["", *table(header, cells, columns=columns, colours=colours)]
    said = hindrances(document)
    shown = said if wide else said[:_SAID]
    if shown:
        lines += ["", *(clean(each, 1024) for each in shown)]
    if len(said) > len(shown):
        lines.append(f"{len(said) - len(shown)} more with -o wide")
    tar = section(document, "tar-info")
    if wide and text(tar, "name"):
        lines += [
            "",
            f"results: {clean(text(tar, 'name'), 255)} (sha256 {clean(text(tar, 'sha256'), 255)})",
        ]
    return lines


def summary(document: Document) -> str:
    """Say in a line how the run is."""
    counted, share = counts(document), f"{percent(document)}%"
    done = f"{counted['decided']} of {counted['entries']} done ({share})"
    parts = [f"{_headline(document)}: {done}"]
    if over(document):
        parts.append("final")
    elif failed(document):
        parts.append("may still change if a late result arrives")
    if doing := ending(document):
        parts.append(doing)
    if run := text(document, "run"):
        parts.append(f"run {clean(run, 253)}")
    return ", ".join(parts)


def _headline(document: Document) -> str:
    """Say how the run is, and of its entries how many did not pass."""
    if empty(document):
        return f"{text(document, 'status')}, no results expected"
    counted = counts(document)
    told = [f"{counted[word]} of {counted['entries']} {word}" for word in ("failed", "unknown")]
    return ", ".join([text(document, "status"), *(each for each in told if each[0] != "0")])


def _worst(document: Document) -> str:
    """The word whose colour the run has."""
    if passed(document):
        return text(document, "status")
    return "failed" if failed(document) or counts(document)["failed"] else "unknown"


def _cells(row: Row, *, wide: bool) -> list[str]:
    heard = show.ago(row.heard) + (" stale" if row.stale else "")
    cells = [row.plugin, row.node, row.status, row.result, row.passed_of, row.progress, heard]
    if wide:
        cells += [str(row.attempts or ""), show.size(row.size), row.received[:19]]
    return [*cells, row.detail]
