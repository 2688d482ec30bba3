"""Exit codes, the same for every command, the errors that stand for one, and input files."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from reporter.cli.output import shown_file

GOOD: Final = 0
FAILED: Final = 1
USAGE: Final = 2
NOT_OVER: Final = 3
CANNOT_TELL: Final = 4
INTERRUPTED: Final = 130
TERMINATED: Final = 143


class Terminated(KeyboardInterrupt):
    """SIGTERM or SIGHUP has come where it ends a command as Ctrl-C does."""


class CannotTell(Exception):
    """There is no answer: nobody can be reached, nothing is shown to us, no such thing.

    Its lines go to standard error.
    """

    code = CANNOT_TELL


class Unusable(Exception):
    """What was given cannot be read or does not fit. Its lines go to standard error."""

    code = USAGE


def content(name: str, most: int = -1) -> bytes:
    """Return the first bytes of a file (`-`: standard input). Raises OSError with its name."""
    try:
        if name == "-":
            return sys.stdin.buffer.read(most)
        with Path(name).open("rb") as opened:
            return opened.read(most)
    except OSError as error:
        # `open` says what it could not open, `read` does not.
        error.filename = "standard input" if name == "-" else name
        raise


@contextmanager
def reading_input() -> Iterator[None]:
    """Raise Unusable where a file that was named cannot be read."""
    try:
        yield
    except OSError as error:
        raise Unusable(unreadable(error)) from None


def unreadable(error: OSError) -> str:
    """Say which file cannot be read, and why."""
    return f"cannot read {shown_file(str(error.filename))}: {error.strerror}"
