"""What is in a file that an option names."""

import sys
from pathlib import Path


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
