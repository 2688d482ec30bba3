"""`status-ctl validate`: everything that is wrong with a result file, told to its author."""

import argparse
import sys
from pathlib import Path
from typing import BinaryIO

from reporter.core import rows
from reporter.core.facts import Running
from reporter.core.payloads import FileInvalid
from reporter.core.rows import Report
from reporter.core.text import clean
from reporter.ctl.show import colour_argument
from reporter.errors import InvalidPayload
from reporter.sinks.terminal import paint, wants_colour
from reporter.sinks.yaml_text import to_yaml
from reporter.wire import progress, result
from reporter.wire.explain import explain

DESCRIPTION = """\
Says everything that is wrong with a result file, with line, column and field, as comments; then the
condition that the file would make, as YAML. `-` reads standard input.

exit codes:
  0    the file is valid (there may be notes)
  1    it is not
  2    wrong usage, or the file cannot be read"""

VALID, INVALID = 0, 1
CONDITION = "Available"
_COLOURS = {"error": "31", "note": "33"}


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--progress", action="store_true", help="it is a progress file, not a result file"
    )
    colour_argument(parser)
    parser.add_argument("file", metavar="FILE", help="the file, or - for standard input")


def run(options: argparse.Namespace) -> int:
    """Check the file, say what is wrong, and return the exit code."""
    limit = progress.MAX_BYTES if options.progress else result.MAX_BYTES
    try:
        if options.file == "-":
            data = _read(sys.stdin.buffer, limit)
        else:
            with Path(options.file).open("rb") as file:
                data = _read(file, limit)
    except (OSError, ValueError) as error:
        cause = error.strerror if isinstance(error, OSError) else error
        options.error(f"cannot read {_shown(options.file)}: {cause}")
    name = "standard input" if options.file == "-" else _shown(options.file)
    colour = wants_colour(sys.stdout) and not options.no_color
    check = _check_progress if options.progress else _check_result
    valid, report = check(name, data, colour=colour)
    condition = {
        "type": CONDITION,
        "status": report.status,
        "reason": report.reason,
        "message": report.message,
    }
    sys.stdout.write(to_yaml([condition]))
    return VALID if valid else INVALID


def _check_result(name: str, data: bytes, *, colour: bool) -> tuple[bool, Report]:
    problems = explain(data)
    for problem in problems:
        field = f"{problem.field}: " if problem.field else ""
        place = f"{name}: line {problem.line}, column {problem.column}"
        _say(place, problem.severity, f"{field}{problem.text}", colour=colour)
    try:
        return True, rows.result(result.decode_result(data))
    except InvalidPayload as error:
        report = rows.invalid(FileInvalid(str(error), None))
        assert report is not None
        return False, report


def _check_progress(name: str, data: bytes, *, colour: bool) -> tuple[bool, Report]:
    """Bad progress is ignored, so there is a condition in any case."""
    try:
        return True, rows.running(Running(), progress.decode_progress(data))
    except InvalidPayload as error:
        _say(name, "error", str(error), colour=colour)
        return False, rows.running(Running(), None)


def _say(place: str, severity: str, text: str, *, colour: bool) -> None:
    kind = paint(severity, _COLOURS[severity], colour=colour)
    print(f"# {place}: {kind}: {clean(text, 2048)}")


def _read(file: BinaryIO, limit: int) -> bytes:
    """One byte above the limit is enough to say that there are too many."""
    data = b""
    while len(data) <= limit and (more := file.read(limit + 1 - len(data))):
        data += more
    return data


def _shown(name: str) -> str:
    return clean(name, 512, "''")
