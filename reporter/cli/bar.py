"""One line on a terminal that is written over and over while a command waits."""

from typing import TextIO

from reporter.cli.table import cut, redraws, terminal_columns


class Bar:
    """The line; nothing where it could not be written over."""

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
