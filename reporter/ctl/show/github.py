"""Workflow commands of GitHub Actions: annotations in the log, and the summary of a step."""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

from reporter.core.text import clean

_DATA: Final = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_PROPERTY: Final = _DATA | str.maketrans({":": "%3A", ",": "%2C"})
_SUMMARY: Final = "GITHUB_STEP_SUMMARY"
Level = Literal["error", "warning", "notice"]


def annotation(level: Level, text: str, **properties: str | int) -> str:
    """Return the line that annotates a file or the step."""
    given = ",".join(
        f"{name}={clean(str(value), 1024).translate(_PROPERTY)}"
        for name, value in properties.items()
    )
    return f"::{level} {given}::{clean(text, 4096).translate(_DATA)}"


def put_summary(
    title: str,
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    environ: Mapping[str, str] = os.environ,
) -> None:
    """Append a table to the step's summary, if this runs in a workflow. Raises OSError."""
    if path := environ.get(_SUMMARY):
        lines = [f"### {title}", "", _row(header), _row(["---"] * len(header)), *map(_row, rows)]
        with Path(path).open("a", encoding="utf-8") as file:
            file.write("".join(f"{line}\n" for line in [*lines, ""]))


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(_cell(each) for each in cells)} |"


def _cell(text: str) -> str:
    """Return a text that is neither Markdown nor HTML."""
    shown = clean(text, 4096).replace("&", "&amp;").replace("<", "&lt;")
    for character in "\\`*_[]|":
        shown = shown.replace(character, f"\\{character}")
    return shown
