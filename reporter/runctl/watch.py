"""`status-ctl watch`: a run as it goes on; live on a terminal, else a line for every change."""

import argparse
import json
import sys
import time
from collections.abc import Callable

from reporter.cli import output as show
from reporter.cli.output import tell
from reporter.cli.table import cut, redraws, terminal_columns, terminal_lines, width
from reporter.common.objects import stamp
from reporter.common.text import clean
from reporter.run.view import (
    Document,
    EntryState,
    Look,
    Row,
    hindrances,
    launcher_at_work,
    launcher_trouble,
    over,
    own_words,
    rows,
)
from reporter.runctl import origin
from reporter.runctl.follow import Deadline, Looks, delivery_option, exit_code
from reporter.runctl.origin import Origin
from reporter.runctl.table import put_run, run_lines, summary

DESCRIPTION = """\
Watches a run until it is over. On a terminal the table is redrawn, failures first; elsewhere every
change is a line (with -o json or yaml a document, with -o name a key).

exit codes:
  0    the run has passed
  1    it has failed: a result is missing or reports a failed check
  2    usage error
  4    cannot tell: forbidden, no source for the status, or the run was deleted
  130  Ctrl-C"""

_STATES = list(EntryState)


def arguments(parser: argparse.ArgumentParser) -> None:
    delivery_option(parser)
    show.arguments(parser)
    origin.arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Look until it is over, and return the exit code."""
    chosen = origin.choose(options)
    live = options.output in {"table", "wide"} and redraws(sys.stdout)
    view: Screen | Lines = Screen(options) if live else Lines(options)
    return exit_code(watch(chosen, view), delivery_only=options.delivery_only)


def watch(
    chosen: Origin, view: "Screen | Lines", sleep: Callable[[float], None] = time.sleep
) -> Document:
    """Show every look; return the last one once the run is over. Raises CannotTell."""
    for look in Looks(chosen, Deadline(None, sleep=sleep), say=view.say):
        view.show(look)
        if look.document is not None and over(look.document):
            view.end(look.document)
            return look.document
    raise AssertionError("there is no end of the time")


class Screen:
    """The table on a terminal, drawn in place."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options, self._begun = options, False
        self._last: Document | None = None

    def say(self, line: str) -> None:
        """Add nothing: what is in the way is drawn."""

    def show(self, look: Look) -> None:
        """Draw it anew; what is in the way stands above the last that was seen."""
        self._last = look.document or self._last
        columns, height = terminal_columns(sys.stdout) or 80, terminal_lines(sys.stdout)
        trouble = look.warning if look.document is not None else f"{look.detail}; waiting"
        lines = [cut(clean(trouble, 1024), columns)] if trouble else []
        if self._last is not None:
            lines += self._table(self._last, columns, height - len(lines) - 1)
        begin = "\033[H" if self._begun else "\033[H\033[2J"
        self._begun = True
        sys.stdout.write(begin + "".join(f"{line}\033[K\n" for line in lines) + "\033[J")
        sys.stdout.flush()

    def end(self, document: Document) -> None:
        """Leave the whole table on the terminal."""
        sys.stdout.write("\033[H\033[J")
        put_run(document, self._options)

    def _table(self, document: Document, columns: int, height: int) -> list[str]:
        """Return as many lines as fit, what needs attention first."""
        entries = document["plugins"]
        room = max(height - 3, 1)
        wide = self._options.output == "wide"
        if len(entries) <= room:
            lines = run_lines(document, self._options, wide=wide)[:height]
            line = summary(document)
            # A line that goes on in the next one would push the first ones out of reach.
            return lines if width(line) <= columns else [cut(line, columns), *lines[1:]]
        urgent = sorted(
            zip(entries, rows(document), strict=False),
            key=lambda pair: _STATES.index(pair[1].state),
        )
        fitting = {**document, "plugins": [entry for entry, _ in urgent[: max(room - 1, 0)]]}
        lines = run_lines(fitting, self._options, wide=wide)
        lines[0] = cut(summary(document), columns)
        return [*lines[: height - 1], f"... and {len(entries) - max(room - 1, 0)} more"]


class Lines:
    """What changed, line by line."""

    def __init__(self, options: argparse.Namespace, wall: Callable[[], float] = time.time) -> None:
        self._form, self._wall = options.output, wall
        self._shown = set[tuple[str, ...]]()
        self._remarks = list[str]()
        self._summary = self._held_up = ""

    def say(self, line: str) -> None:
        """Say what is in the way."""
        tell(line)

    def show(self, look: Look) -> None:
        """Write what is new."""
        if look.document is None:
            return
        entries = list(rows(look.document))
        changed = [row for row in entries if _facts(row) not in self._shown]
        self._shown = set(map(_facts, entries))
        remarks, line = self._remark(look.document), summary(look.document)
        news, self._summary = changed or remarks or line != self._summary, line
        match self._form:
            case "json" if news:
                show.put([show.safe_json(json.dumps(look.document, ensure_ascii=False))])
            case "yaml" if news:
                show.put(["---"])
                show.put_data("yaml", look.document)
            case "name":
                show.put_names(row.key for row in changed)
            case "table" | "wide" if news:
                at = stamp(self._wall())
                show.put(f"{at}  {clean(_told(row), 4096)}" for row in changed)
                show.put(f"{at}  {clean(each, 4096)}" for each in remarks)
                show.put([f"{at}  {line}"])

    def _remark(self, document: Document) -> list[str]:
        """Return what is new about the whole run."""
        told, words = set(self._remarks), own_words(document) + hindrances(document)
        found = [each for each in words if each not in told]
        # The annotations do not have all of it: what they leave out is not over.
        self._remarks = [*self._remarks, *found] if document.get("partial") else words
        if trouble := launcher_trouble(document):
            self._held_up = trouble
        elif self._held_up and launcher_at_work(document):
            found.append("the launcher is no longer blocked")
            self._held_up = ""
        return found

    def end(self, document: Document) -> None:
        """Add nothing: the last change told it."""


def _facts(row: Row) -> tuple[str, ...]:
    """What makes a line when it is new, unlike the age of a heartbeat."""
    return row.key, row.status, row.result, row.state, row.progress, row.detail


def _told(row: Row) -> str:
    status = f"{row.status} stale" if row.state is EntryState.STALE else row.status
    return "  ".join(filter(None, (row.key, status, row.result, row.progress, row.detail)))
