"""A run as text: its summary in a line, its entries as a table."""

import argparse
import sys

from reporter.cli import output as show
from reporter.cli.table import paint, table, terminal_columns
from reporter.common.objects import section, text
from reporter.common.text import clean
from reporter.run.view import (
    MOST_SAID,
    Document,
    EntryState,
    Row,
    headline,
    hindrances,
    how_far,
    own_words,
    rows,
    run_state,
)

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
    head = headline(document)
    colour = colours.get(run_state(document), "")
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
    shown = said if wide else said[:MOST_SAID]
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
    run = text(document, "run")
    named = f", run {clean(run, 253)}" if run else ""
    return f"{headline(document)}: {how_far(document)}{named}"


def _cells(row: Row, *, wide: bool) -> list[str]:
    heard = show.ago(row.heard) + (" stale" if row.state is EntryState.STALE else "")
    cells = [row.plugin, row.node, row.status, row.result, row.passed_of, row.progress, heard]
    if wide:
        cells += [str(row.attempts or ""), show.size(row.size), row.received[:19]]
    return [*cells, row.detail]
