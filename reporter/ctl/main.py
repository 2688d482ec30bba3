"""status-ctl: finds the command and runs it. A new command is a module here and a line below.

A module has `DESCRIPTION` for its help, `arguments(parser)`, which declares its options, and
`run(options)`, which returns the exit code. `options.error(text)` ends with a usage error. Only the
chosen module is imported: help has to be there at once.
"""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import NamedTuple, TextIO, cast

from reporter import __version__

GOOD, USAGE, INTERRUPTED, NOBODY_READS = 0, 2, 130, 141


class Command(NamedTuple):
    """One command: its name, its module in this package, and what it does in a line."""

    name: str
    module: str
    summary: str


COMMANDS = (
    Command("try", "trial", "run a command as the adapter on this machine, without a cluster"),
    Command("validate", "validate", "say what is wrong with a result file"),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code; 2 for wrong usage."""
    for stream in (sys.stdout, sys.stderr):
        # Whatever the locale says: YAML is UTF-8.
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")  # type: ignore[union-attr]
    try:
        code = _run(sys.argv[1:] if arguments is None else arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # As `| head` does. Python flushes once more at its end and must not fail there.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return NOBODY_READS
    return code


def _run(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="status-ctl",
        description="The status reporter's command for people.",
        epilog="`status-ctl COMMAND --help` tells more of one command.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for command in COMMANDS:
        own = commands.add_parser(command.name, help=command.summary, allow_abbrev=False)
        if list(arguments[:1]) == [command.name]:
            module = import_module(f"reporter.ctl.{command.module}")
            own.description = module.DESCRIPTION
            own.formatter_class = argparse.RawDescriptionHelpFormatter
            own.set_defaults(run=module.run, error=own.error)
            module.arguments(own)
    if not arguments:
        parser.print_help(cast(TextIO, sys.stderr))
        return USAGE
    options = parser.parse_args(arguments)
    run: Callable[[argparse.Namespace], int] = options.run
    return run(options)
