"""What is said to a person beside the data: on standard error, never in the way of a script."""

import sys

from reporter.common.text import clean


def tell(text: str) -> None:
    """Say it, each line made safe for a terminal."""
    for at, line in enumerate(text.splitlines() or [""]):
        kept = line[: len(line) - len(line.lstrip(" "))] + clean(line, 4096)
        print(f"status-ctl: {kept}" if at == 0 else kept, file=sys.stderr, flush=True)


def shown_file(name: str) -> str:
    """Return the name of a file as it is said, `-` as standard input."""
    return "standard input" if name == "-" else clean(name, 512, "''")
