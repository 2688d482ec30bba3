"""What a command says: data on standard output, in the form of `-o`, and words on standard error.

The data comes from others.
"""

import argparse
import json
import re
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, Final

from reporter.cli.table import wants_colour
from reporter.common.text import clean

FORMS: Final = ("table", "wide", "json", "yaml", "name")
STATUS_COLOURS: Final = {
    "complete": "32",
    "passed": "32",
    "True": "32",
    "failed": "31",
    "timed_out": "31",
    "timeout": "31",
    "False": "31",
    "running": "36",
    "post-processing": "36",
    "Unknown": "33",
    "unknown": "33",
}
_UNSAFE = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def arguments(parser: argparse.ArgumentParser, forms: Iterable[str] = FORMS) -> None:
    """Declare `-o` and `--no-color`."""
    parser.add_argument(
        "-o",
        "--output",
        choices=tuple(forms),
        default="table",
        help="output format (default: %(default)s)",
    )
    colour_argument(parser)


def colour_argument(parser: argparse.ArgumentParser) -> None:
    """Declare `--no-color`."""
    parser.add_argument("--no-color", action="store_true", help="disable colors (as does NO_COLOR)")


def colours(options: argparse.Namespace) -> Mapping[str, str]:
    """Return the colours of words, none where colours are not welcome."""
    return STATUS_COLOURS if wants_colour(sys.stdout, refused=options.no_color) else {}


def tell(text: str) -> None:
    """Say it on standard error, each line made safe for a terminal, if that can be written."""
    for at, line in enumerate(text.splitlines() or [""]):
        kept = line[: len(line) - len(line.lstrip(" "))] + clean(line, 4096)
        with suppress(OSError):
            print(f"status-ctl: {kept}" if at == 0 else kept, file=sys.stderr, flush=True)


def shown_file(name: str) -> str:
    """Return the name of a file as it is said, `-` as standard input."""
    return "standard input" if name == "-" else clean(name, 512, "''")


def put(lines: Iterable[str]) -> None:
    """Write lines to standard output."""
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


def put_names(names: Iterable[str]) -> None:
    """Write one name a line."""
    put(clean(name, 4096) for name in names)


def put_data(form: str, value: Mapping[str, Any]) -> None:
    """Write a value as JSON or YAML, with nothing in it that a terminal would obey."""
    if form == "yaml":
        from reporter.common.yaml_text import to_yaml

        sys.stdout.write(to_yaml(value))
    else:
        written = json.dumps(value, indent=2, ensure_ascii=False)
        sys.stdout.write(safe_json(written) + "\n")
    sys.stdout.flush()


def put_document(form: str, value: Mapping[str, Any]) -> None:
    """Write one of several values: JSON on a line of its own, or a YAML document."""
    if form == "yaml":
        put(["---"])
        put_data("yaml", value)
    else:
        put([safe_json(json.dumps(value, ensure_ascii=False))])


def safe_json(written: str) -> str:
    """Return JSON with what a terminal would obey written as escapes."""
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", written)


def ago(seconds: int | float | None) -> str:
    """Return an age as people say it: `17s`, `4m`, `3h5m`, `12d`; empty for none."""
    if seconds is None:
        return ""
    whole = max(int(seconds), 0)
    if whole < 120:
        return f"{whole}s"
    minutes = whole // 60
    if minutes < 120:
        return f"{minutes}m"
    hours = minutes // 60
    if hours < 48:
        return f"{hours}h{minutes % 60}m" if minutes % 60 else f"{hours}h"
    return f"{hours // 24}d"


def size(count: int | None) -> str:
    """Return a number of bytes in a binary unit."""
    if count is None:
        return ""
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"
