"""`status-ctl validate`: what is wrong with result files and plugin definitions, for authors."""

import argparse
import os
import stat
import sys
from pathlib import Path
from typing import BinaryIO

from reporter.author.problems import Problem, problems_in, problems_in_progress
from reporter.author.terminal import paint, wants_colour
from reporter.cli.exits import USAGE
from reporter.cli.output import colour_argument, shown_file, tell
from reporter.common.text import clean
from reporter.common.yaml_text import to_yaml
from reporter.errors import InvalidPayload
from reporter.runctl.definitions import is_definition, load
from reporter.verdict import progress_file as progress
from reporter.verdict import result_file as result
from reporter.verdict import rows
from reporter.verdict.facts import Running
from reporter.verdict.payloads import FileInvalid
from reporter.verdict.rows import Report

DESCRIPTION = """\
Validates result files, or progress files: prints every problem with its line, column and field, as
comments, then the condition that each file would produce, as YAML. `-` reads standard input.

Files that end in .yaml or .yml, and directories of them, are plugin definitions (of kind Plugin, or
Sonobuoy's): every problem is printed with its line and field.

exit codes:
  0    all files are valid (there may be warnings and notes)
  1    a file is invalid
  2    usage error, or a file cannot be read
  130  Ctrl-C"""

VALID, INVALID = 0, 1
CONDITION = "Available"
_LINK = "a symbolic link, not a regular file"
_COLOURS = {"error": "31", "warning": "33", "note": "33"}


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--progress", action="store_true", help="the files are progress files, not result files"
    )
    parser.add_argument(
        "--plugin",
        action="store_true",
        help="the files are plugin definitions, whatever their name",
    )
    colour_argument(parser)
    parser.add_argument("files", metavar="FILE", nargs="+", help="the files, - for standard input")


def run(options: argparse.Namespace) -> int:
    """Check the files, say what is wrong, and return the exit code."""
    if options.plugin and options.progress:
        options.error("--plugin and --progress cannot be used together")
    colour = wants_colour(sys.stdout) and not options.no_color
    plugins = [file for file in options.files if options.plugin or is_definition(file)]
    codes = [_check_plugins(plugins, colour=colour)] if plugins else []
    for file in options.files:
        if file in plugins:
            continue
        name = shown_file(file)
        try:
            data, mode = _content(
                file, progress.MAX_BYTES if options.progress else result.MAX_BYTES
            )
        except (OSError, ValueError) as error:
            cause = error.strerror if isinstance(error, OSError) else error
            sys.stdout.flush()
            tell(f"cannot read {name}: {cause}")
            codes.append(USAGE)
            continue
        if len(options.files) > 1:
            print(f"---\n# {name}")
        check = _check_progress if options.progress else _check_result
        if warning := mode_warning(mode):
            _say(name, "warning", warning, colour=colour)
        linked = _is_link(file)
        if linked:
            advice = "the reporter does not follow it; give the file this name"
            _say(name, "error", f"{_LINK}: {advice}", colour=colour)
        valid, report = check(name, data, colour=colour)
        if linked:
            valid = False
            report = _no_progress() if options.progress else _invalid(f"the file is {_LINK}")
        condition = {
            "type": CONDITION,
            "status": report.status,
            "reason": report.reason,
            "message": report.message,
        }
        sys.stdout.write(to_yaml([condition]))
        codes.append(VALID if valid else INVALID)
    return max(codes)


def _check_plugins(files: list[str], *, colour: bool) -> int:
    """Check all definitions together: no two plugins may have one name."""
    loaded = load(files)
    for error in loaded.unread:
        tell(f"cannot read {shown_file(str(error.filename))}: {error.strerror}")
    for place, text in loaded.problems:
        _say(place, "error", text, colour=colour)
    for place, definition in loaded.definitions:
        for remark in definition.remarks:
            _say(place, "note", remark, colour=colour)
    if not loaded.problems:
        for place, definition in loaded.definitions:
            print(f"# {place}: plugin {definition.name} is valid")
    if loaded.unread:
        return USAGE
    return INVALID if loaded.problems else VALID


def mode_warning(mode: int) -> str:
    """Say that the reporter may not be able to read a file of this mode; empty where it may."""
    if not stat.S_ISREG(mode) or mode & stat.S_IROTH:
        return ""
    return (
        f"mode {stat.S_IMODE(mode):04o}: a reporter that runs as another user cannot read it; "
        "chmod 644"
    )


def told(problem: Problem) -> str:
    """Return a remark with its place, for one file."""
    where = f"line {problem.line}, column {problem.column}"
    return f"{where}: {problem.severity}: {_words(problem)}"


def _words(problem: Problem) -> str:
    return f"{problem.field}: {problem.text}" if problem.field else problem.text


def _content(file: str, limit: int) -> tuple[bytes, int]:
    """Return what is in it, and its mode; 0 for standard input. Raises OSError and ValueError."""
    if file == "-":
        return _read(sys.stdin.buffer, limit), 0
    with Path(file).open("rb") as opened:
        return _read(opened, limit), os.fstat(opened.fileno()).st_mode


def _is_link(file: str) -> bool:
    """Say whether it is a link where the adapter would write; those in /dev are the system's."""
    return file != "-" and not file.startswith(("/dev/", "/proc/")) and Path(file).is_symlink()


def _check_result(name: str, data: bytes, *, colour: bool) -> tuple[bool, Report]:
    _say_all(name, problems_in(data), colour=colour)
    try:
        return True, rows.result(result.decode_result(data))
    except InvalidPayload as error:
        return False, _invalid(str(error))


def _check_progress(name: str, data: bytes, *, colour: bool) -> tuple[bool, Report]:
    """Bad progress is ignored, so there is a condition in any case."""
    _say_all(name, problems_in_progress(data), colour=colour)
    try:
        return True, rows.running(Running(), progress.decode_progress(data))
    except InvalidPayload:
        return False, _no_progress()


def _invalid(cause: str) -> Report:
    report = rows.invalid(FileInvalid(cause, None))
    assert report is not None
    return report


def _no_progress() -> Report:
    return rows.running(Running(), None)


def _say_all(name: str, problems: list[Problem], *, colour: bool) -> None:
    for problem in problems:
        place = f"{name}: line {problem.line}, column {problem.column}"
        _say(place, problem.severity, _words(problem), colour=colour)


def _say(place: str, severity: str, text: str, *, colour: bool) -> None:
    kind = paint(severity, _COLOURS[severity], colour=colour)
    print(f"# {place}: {kind}: {clean(text, 2048)}")


def _read(file: BinaryIO, limit: int) -> bytes:
    """One byte above the limit is enough to say that there are too many."""
    data = b""
    while len(data) <= limit and (more := file.read(limit + 1 - len(data))):
        data += more
    return data
