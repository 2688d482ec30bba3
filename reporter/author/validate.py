"""`status-ctl validate`: what is wrong with result files and plugin definitions, for authors."""

import argparse
import stat
import sys
from collections.abc import Callable
from pathlib import Path

from reporter.author.problems import PROGRESS, RESULT, Kind, problems_in
from reporter.cli.exits import FAILED, GOOD, USAGE, content, unreadable
from reporter.cli.output import colour_argument, shown_file, tell
from reporter.cli.table import paint, wants_colour
from reporter.common.text import clean
from reporter.common.yaml_text import to_yaml
from reporter.errors import InvalidPayload
from reporter.runctl.definitions import is_definition, load
from reporter.verdict import adapter_files as files
from reporter.verdict import rows
from reporter.verdict.facts import FileInvalid, Running
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

CONDITION = "Available"
_LINK = "a symbolic link, not a regular file"
_COLOURS = {"error": "31", "warning": "33", "note": "33"}
Say = Callable[[str, str, str], None]
"""Prints a remark: its place, its severity, its text."""


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
    colours = _COLOURS if wants_colour(sys.stdout, refused=options.no_color) else {}

    def say(place: str, severity: str, text: str) -> None:
        kind = paint(severity, colours.get(severity, ""))
        print(f"# {place}: {kind}: {clean(text, 2048)}")

    plugins = [file for file in options.files if options.plugin or is_definition(file)]
    codes = [_check_plugins(plugins, say)] if plugins else []
    kind = PROGRESS if options.progress else RESULT
    several = len(options.files) > 1
    files = [file for file in options.files if file not in plugins]
    return max([*codes, *(_check(file, kind, say, several=several) for file in files)])


def _check_plugins(files: list[str], say: Say) -> int:
    """Check all definitions together: no two plugins may have one name."""
    loaded = load(files)
    for error in loaded.unread:
        tell(unreadable(error))
    for place, text in loaded.problems:
        say(place, "error", text)
    for place, definition in loaded.definitions:
        for remark in definition.remarks:
            say(place, "note", remark)
    if not loaded.problems:
        for place, definition in loaded.definitions:
            print(f"# {place}: plugin {definition.name} is valid")
    if loaded.unread:
        return USAGE
    return FAILED if loaded.problems else GOOD


def _check(file: str, kind: Kind, say: Say, *, several: bool) -> int:
    name = shown_file(file)
    try:
        data = content(file, kind.max_bytes + 1)
        mode = 0 if file == "-" else Path(file).stat().st_mode
    except OSError as error:
        sys.stdout.flush()
        tell(unreadable(error))
        return USAGE
    if several:
        print(f"---\n# {name}")
    if warning := mode_warning(mode):
        say(name, "warning", warning)
    linked = _is_link(file)
    if linked:
        say(name, "error", f"{_LINK}: the reporter does not follow it; give the file this name")
    for problem in problems_in(data, kind):
        say(f"{name}: {problem.place}", problem.severity, problem.words)
    try:
        if linked:
            raise InvalidPayload(f"the file is {_LINK}")
        report, code = _report(data, kind), GOOD
    except InvalidPayload as error:
        # Bad progress is ignored.
        invalid = rows.invalid(FileInvalid(str(error), None)) if kind is RESULT else None
        report, code = invalid or rows.running(Running(), None), FAILED
    condition = {
        "type": CONDITION,
        "status": report.status,
        "reason": report.reason,
        "message": report.message,
    }
    sys.stdout.write(to_yaml([condition]))
    return code


def mode_warning(mode: int) -> str:
    """Say that the reporter may not be able to read a file of this mode; empty where it may."""
    if not stat.S_ISREG(mode) or mode & stat.S_IROTH:
        return ""
    return (
        f"mode {stat.S_IMODE(mode):04o}: a reporter that runs as another user cannot read it; "
        "chmod 644"
    )


def _is_link(file: str) -> bool:
    """Say whether it is a link where the adapter would write; those in /dev are the system's."""
    return file != "-" and not file.startswith(("/dev/", "/proc/")) and Path(file).is_symlink()


def _report(data: bytes, kind: Kind) -> Report:
    if kind is RESULT:
        return rows.result(files.decode_result(data))
    return rows.running(Running(), files.decode_progress(data))
