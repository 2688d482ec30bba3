"""Text as wide as a terminal shows it: in columns, in colour, or in a line that is written over.

The meaning of the text is not known here.
"""

import os
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Final, TextIO

from reporter.common.text import clean

GAP: Final = "  "
CELL: Final = 4096  # bytes of one cell
_WIDE: Final = frozenset("WF")
_UNSEEN: Final = frozenset({"Mn", "Me", "Cf"})
_EMOJI = "\ufe0f"


def width(text: str) -> int:
    """Return how many columns a terminal uses for a text without control characters."""
    if text.isascii():
        return len(text)
    columns = 0
    for at, character in enumerate(text):
        if character.isascii():
            columns += 1
        elif unicodedata.category(character) not in _UNSEEN:
            columns += 2 if unicodedata.east_asian_width(character) in _WIDE else 1
        elif character == _EMOJI and at and width(text[at - 1]) == 1:
            columns += 1  # asks for the wide form of what stands before it
    return columns


def cut(text: str, columns: int) -> str:
    """Return as much as fits, with an ellipsis where something is left out."""
    if width(text) <= columns:
        return text
    kept, used = "", 0
    for character in text:
        used += width(character)
        if used > columns - 1:
            break
        kept += character
    return f"{kept}…" if columns > 0 else ""


def table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    columns: int | None = None,
    colours: Mapping[str, str] | None = None,
) -> list[str]:
    """Return the lines of a table; the last column is cut so that a line fits `columns`.

    An empty cell is shown as `-`. `colours` gives an ANSI code for cells with just that text.
    """
    cleaned = [[clean(cell, CELL) or "-" for cell in row] for row in rows]
    shown = [list(header), *cleaned]
    widths = [max(map(width, cells)) for cells in zip(*shown, strict=True)]
    return [
        _line(row, widths, columns, {} if at == 0 else colours or {})
        for at, row in enumerate(shown)
    ]


def _line(
    row: Sequence[str], widths: Sequence[int], columns: int | None, colours: Mapping[str, str]
) -> str:
    line, used = "", 0
    for at, (cell, wide) in enumerate(zip(row, widths, strict=True)):
        last = at == len(row) - 1
        shown = cell
        if columns is not None:
            shown = cut(cell, max(columns - used, 0))
        line += paint(shown, colours.get(cell, ""))
        if not last:
            line += " " * max(wide - width(shown), 0) + GAP
        used += wide + len(GAP)
    return line.rstrip()


def paint(text: str, code: str) -> str:
    """Return the text in an ANSI colour, or as it is where the code is empty."""
    return f"\033[{code}m{text}\033[0m" if code else text


def wants_colour(out: TextIO, *, refused: bool, environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether colours are welcome: on a terminal, unless refused there or by NO_COLOR."""
    if refused or environ.get("NO_COLOR") or environ.get("TERM") == "dumb":
        return False
    return out.isatty()


def redraws(out: TextIO, environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether what is written can be written over: on a terminal that is not dumb."""
    return out.isatty() and environ.get("TERM") != "dumb"


def terminal_columns(out: TextIO) -> int | None:
    """Return the columns of the terminal behind `out`; nothing where it is none."""
    try:
        return os.get_terminal_size(out.fileno()).columns or 80 if out.isatty() else None
    except OSError:
        return None


def terminal_lines(out: TextIO) -> int:
    """Return the lines of the terminal behind `out`, 24 where nobody knows."""
    try:
        return os.get_terminal_size(out.fileno()).lines or 24
    except OSError:
        return 24


class Bar:
    """One line that is written over while a command waits; nothing where it could not be."""

    def __init__(self, out: TextIO) -> None:
        self._out, self._shown = out, False

    def put(self, line: str) -> bool:
        """Show it in place of what was shown; return whether it can be."""
        columns = terminal_columns(self._out)
        if columns is None or not redraws(self._out):
            return False
        self._shown = True  # before it is: Ctrl-C may come in between
        self._out.write(f"\r\033[K{cut(line, columns - 1)}")
        self._out.flush()
        return True

    def clear(self) -> None:
        """Take it away."""
        if self._shown:
            self._out.write("\r\033[K")
            self._out.flush()
            self._shown = False
