"""status-ctl: finds the command and runs it. A new command is a module here and a line below.

A module has `DESCRIPTION` for its help, `arguments(parser)`, which declares its options, and
`run(options)`, which returns the exit code. `options.error(text)` ends with a usage error. Only the
chosen module is imported: help has to be there at once.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from itertools import takewhile
from typing import NamedTuple, TextIO, cast

from reporter import __version__
from reporter.cli.exits import (
    CANNOT_TELL,
    INTERRUPTED,
    TERMINATED,
    USAGE,
    CannotTell,
    Terminated,
    Unusable,
)
from reporter.common.lifecycle import NOBODY_READS, buffer_output, discard_output


class Command(NamedTuple):
    """One command: its name, its module in `reporter`, and what it does in a line."""

    name: str
    module: str
    summary: str


COMMANDS = (
    Command("run", "runctl.run", "start plugins in the cluster and collect their results"),
    Command("runs", "runctl.runs", "list the runs in the namespace, or in all with -A"),
    Command("logs", "runctl.logs", "print the logs of a run's Pods"),
    Command("delete", "runctl.delete", "delete a run and everything that belongs to it"),
    Command("status", "runctl.status", "show the status of a run"),
    Command("wait", "runctl.wait", "wait until a run is over, or until Jobs have their verdicts"),
    Command("watch", "runctl.watch", "watch a run until it is over"),
    Command("retrieve", "runctl.retrieve", "download the results of a run"),
    Command("explain", "jobs.explain", "explain what happened to a Job and what to do"),
    Command("jobs", "jobs.list", "list the Jobs that have a status reporter"),
    Command("reap", "reap.command", "write the final condition where a reporter was lost"),
    Command(
        "try", "author.trial", "run a command as the adapter on this machine, without a cluster"
    ),
    Command("validate", "author.validate", "validate result files and plugin definitions"),
    Command("lint", "lint.command", "check the manifests of Jobs before they are applied"),
    Command("results", "results.command", "show the test results of a run"),
    Command("facts", "results.facts", "show the facts of nodes, and what differs between them"),
    Command("gather", "collect.command", "run gatherers on this machine, without a cluster"),
    Command("images", "runctl.images", "list the images that plugins need"),
    Command("inject", "inject.command", "add the reporter to the Jobs in manifests"),
    Command("uninject", "inject.uninject", "remove the reporter from manifests"),
    Command("completion", "cli.completion", "print a shell completion script"),
)
_OWN_SIGNALS = (
    "try",
    "run",
    "reap",
    "gather",
    "validate",
    "images",
    "inject",
    "uninject",
    "completion",
)
"""Commands that ask nobody else, or that have their own word on signals."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code; 2 for wrong usage."""
    buffer_output()
    for stream in (sys.stdout, sys.stderr):
        # Whatever the locale says: YAML is UTF-8.
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")  # type: ignore[union-attr]
    try:
        code = _chosen()(sys.argv[1:] if arguments is None else arguments)
        sys.stdout.flush()
    except KeyboardInterrupt as error:
        return TERMINATED if isinstance(error, Terminated) else INTERRUPTED
    except (CannotTell, Unusable) as error:
        from reporter.cli.messages import tell

        tell(str(error))
        return CANNOT_TELL if isinstance(error, CannotTell) else USAGE
    except BrokenPipeError:
        discard_output()
        return NOBODY_READS
    except Exception:
        # Python would end with 1, and that says that a run has failed.
        import traceback

        traceback.print_exc()
        return CANNOT_TELL
    return code


def _chosen() -> Callable[[Sequence[str]], int]:
    """Return what our name asks for: kubectl completes a plugin by another name of it."""
    if not _file_name().startswith("kubectl_complete-job_verdict"):
        return _run
    from reporter.cli.kubectl_completion import complete

    return lambda words: complete(words, COMMANDS)


def _run(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog=_called(),
        description="The command-line tool of the status reporter.",
        epilog="Use `status-ctl COMMAND --help` for details of a command.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for command in COMMANDS:
        own = commands.add_parser(command.name, help=command.summary, allow_abbrev=False)
        if list(arguments[:1]) == [command.name]:
            module = import_module(f"reporter.{command.module}")
            own.description = module.DESCRIPTION
            own.formatter_class = argparse.RawDescriptionHelpFormatter
            own.set_defaults(
                run=module.run, error=own.error, command=command.name, commands=COMMANDS
            )
            module.arguments(own)
            if _wants_help(command.name, arguments[1:]):
                own.print_help()
                own.exit()
    if not arguments:
        parser.print_help(cast(TextIO, sys.stderr))
        return USAGE
    options = parser.parse_args(arguments)
    run: Callable[[argparse.Namespace], int] = options.run
    if options.command in _OWN_SIGNALS:
        return run(options)
    from reporter.cli.interrupt import at_once

    with at_once():
        return run(options)


def _called() -> str:
    """Return how people have called us: kubectl runs its plugins by their file names."""
    plugin = _file_name().startswith("kubectl-job_verdict")
    return "kubectl job-verdict" if plugin else "status-ctl"


def _file_name() -> str:
    return sys.argv[0].rpartition("/")[2]


def _wants_help(command: str, arguments: Sequence[str]) -> bool:
    """Return whether help is asked for, anywhere: whoever asks may not know what else is wrong."""
    own = list(arguments)
    # The arguments after it are another program's.
    if command == "try":
        own = list(takewhile(lambda each: each.startswith("-") and each != "--", own))
    elif "--" in own:
        own = own[: own.index("--")]
    return "-h" in own or "--help" in own
