"""status-ctl: finds the command and runs it. A new command is a module here and a line below.

A module has `DESCRIPTION` for its help, `arguments(parser)`, which declares its options, and
`run(options)`, which returns the exit code. `options.error(text)` ends with a usage error. Only the
chosen module is imported: help has to be there at once.
"""

import argparse
import errno
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from itertools import takewhile
from typing import Final, NamedTuple, TextIO, cast

from reporter import __version__
from reporter.cli.exits import (
    CANNOT_TELL,
    GOOD,
    INTERRUPTED,
    TERMINATED,
    USAGE,
    CannotTell,
    Terminated,
    Unusable,
)
from reporter.cli.output import tell
from reporter.common.lifecycle import NOBODY_READS, buffer_output, discard_output


class Command(NamedTuple):
    """One command: its name, its module in `reporter`, and what it does in a line."""

    name: str
    module: str
    summary: str


GROUPS: Final = {
    "jobs": (
        Command("explain", "jobs.explain", "explain what happened to a Job and what to do"),
        Command("jobs", "jobs.list", "list the Jobs that have a status reporter"),
        Command(
            "wait", "runctl.wait", "wait until a run is over, or until Jobs have their verdicts"
        ),
        Command("reap", "reap.command", "write the final condition where a reporter was lost"),
    ),
    "manifests": (
        Command("lint", "lint.command", "check the manifests of Jobs before they are applied"),
        Command("inject", "inject.command", "add the reporter to the Jobs in manifests"),
        Command("uninject", "inject.uninject", "remove the reporter from manifests"),
    ),
    "adapter authors": (
        Command(
            "try", "author.trial", "run a command as the adapter on this machine, without a cluster"
        ),
        Command("validate", "author.validate", "validate result files and plugin definitions"),
        Command("gather", "collect.command", "run gatherers on this machine, without a cluster"),
    ),
    "runs": (
        Command("run", "runctl.run", "start plugins in the cluster and collect their results"),
        Command("runs", "runctl.runs", "list the runs in the namespace, or in all with -A"),
        Command("status", "runctl.status", "show the status of a run"),
        Command("watch", "runctl.watch", "watch a run until it is over"),
        Command("open", "runctl.open", "open the page of a run in a browser"),
        Command("stop", "runctl.stop", "stop a run, and keep the results that arrived"),
        Command("logs", "runctl.logs", "print the logs of a run's Pods"),
        Command("results", "results.command", "show the test results of a run"),
        Command("facts", "results.facts", "show the facts of nodes, and what differs between them"),
        Command("retrieve", "runctl.retrieve", "download the results of a run"),
        Command("delete", "runctl.delete", "delete a run and everything that belongs to it"),
        Command("images", "runctl.images", "list the images that plugins need"),
    ),
    "shells": (Command("completion", "cli.completion", "print a shell completion script"),),
}
COMMANDS: Final = {command.name: command for group in GROUPS.values() for command in group}
_OWN_SIGNALS: Final = frozenset(
    ["try", "run", "reap", "gather", "validate", "images", "inject", "uninject", "completion"]
)
"""Commands that ask nobody else, or that have their own word on signals."""

_FULL: Final = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code; 2 for wrong usage."""
    buffer_output()
    for stream in (sys.stdout, sys.stderr):
        # Whatever the locale says: YAML is UTF-8.
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")  # type: ignore[union-attr]
    try:
        return _main(sys.argv[1:] if arguments is None else arguments)
    finally:
        # What Python cannot write at its end would change the exit code.
        for descriptor, stream in ((1, sys.stdout), (2, sys.stderr)):
            try:
                stream.flush()
            except OSError:
                discard_output(descriptor)


def _main(words: Sequence[str]) -> int:
    try:
        try:
            code = _run(words)
        except SystemExit:
            sys.stdout.flush()  # the help's reader may have left, too
            raise
        sys.stdout.flush()
    except KeyboardInterrupt as error:
        return TERMINATED if isinstance(error, Terminated) else INTERRUPTED
    except (CannotTell, Unusable) as error:
        tell(str(error))
        return error.code
    except BrokenPipeError:
        discard_output()
        return NOBODY_READS
    except Exception as error:
        if isinstance(error, OSError) and error.errno in _FULL and error.filename is None:
            discard_output()
            tell(f"cannot write the output: {error.strerror}")
            return CANNOT_TELL
        # Python would end with 1, and that says that a run has failed.
        import traceback

        with suppress(OSError):
            traceback.print_exc()
        return CANNOT_TELL
    return code


def _run(words: Sequence[str]) -> int:
    called = sys.argv[0].rpartition("/")[2]
    if called.startswith("kubectl_complete-job_verdict"):
        return _complete(words)
    if words and words[0] == "__complete":
        return _complete(words[1:])
    # kubectl runs its plugins by their file names.
    program = "kubectl job-verdict" if called.startswith("kubectl-job_verdict") else "status-ctl"
    parser = argparse.ArgumentParser(
        program,
        usage=f"{program} [-h] [--version] COMMAND ...",
        description=_description(),
        epilog="Use `status-ctl COMMAND --help` for details of a command.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=__version__)
    parser.add_argument(
        "command",
        metavar="COMMAND",
        nargs=argparse.PARSER,
        choices=COMMANDS,
        help=argparse.SUPPRESS,
    )
    if not words:
        parser.print_help(cast(TextIO, sys.stderr))
        return USAGE
    name, *words = parser.parse_args(words).command
    own = parser_of(name, program)
    if _wants_help(name, words):
        own.print_help()
        own.exit()
    options = own.parse_args(words)
    run: Callable[[argparse.Namespace], int] = options.run
    if name in _OWN_SIGNALS:
        return run(options)
    from reporter.cli.interrupt import at_once

    with at_once():
        return run(options)


def parser_of(name: str, program: str = "status-ctl") -> argparse.ArgumentParser:
    """Return what reads the arguments of a command."""
    module = import_module(f"reporter.{COMMANDS[name].module}")
    parser = argparse.ArgumentParser(
        f"{program} {name}",
        description=module.DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.set_defaults(run=module.run, error=parser.error, command=name)
    module.arguments(parser)
    return parser


def _complete(words: Sequence[str]) -> int:
    from reporter.cli.completion import answer

    summaries = {command.name: command.summary for command in COMMANDS.values()}
    sys.stdout.write("".join(f"{line}\n" for line in answer(words, summaries, parser_of)))
    return GOOD


def _description() -> str:
    lines = ["The command-line tool of the status reporter."]
    for title, group in GROUPS.items():
        lines += ["", f"{title}:", *(f"  {each.name:<12}{each.summary}" for each in group)]
    return "\n".join(lines)


def _wants_help(command: str, arguments: Sequence[str]) -> bool:
    """Return whether help is asked for, anywhere: whoever asks may not know what else is wrong."""
    # What comes after `--`, and after the adapter's name, is another program's.
    own = takewhile(lambda each: each != "--" and (command != "try" or each[:1] == "-"), arguments)
    return any(each in ("-h", "--help") for each in own)
