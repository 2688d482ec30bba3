"""What the worker is asked to do: from arguments to one of four commands.

Plugin definitions in use pass logging flags of their time along; they are taken and mean nothing.
"""

from dataclasses import dataclass
from typing import Literal

from reporter.errors import ReporterError

USAGE = """usage: sonobuoy worker global
       sonobuoy worker single-node [--sleep SECONDS]
       sonobuoy splat DIR
       sonobuoy version"""

_FLAGS_WITH_VALUE = frozenset(
    {"level", "v", "vmodule", "stderrthreshold", "log_backtrace_at", "log_dir", "log_file"}
)
_FLAGS = frozenset(
    {"logtostderr", "alsologtostderr", "skip_headers", "skip_log_headers", "add_dir_header"}
)


class UsageError(ReporterError):
    """Arguments that make no command."""


@dataclass(frozen=True, slots=True)
class Work:
    """Deliver the result of the plugin beside us.

    `sleep` is how many seconds to stay afterwards, less than nothing for ever.
    """

    scope: Literal["global", "node"]
    sleep: int = 0


@dataclass(frozen=True, slots=True)
class Splat:
    """Print one gzip'd tar of every *.tar.gz in a directory."""

    directory: str


@dataclass(frozen=True, slots=True)
class Version:
    """Print the version."""


@dataclass(frozen=True, slots=True)
class Help:
    """Print the usage."""


Command = Work | Splat | Version | Help


def parse(arguments: list[str]) -> Command:
    """Return the command. Raises UsageError."""
    words: list[str] = []
    sleep: int | None = None
    left = iter(arguments)
    for argument in left:
        if not argument.startswith("-") or argument == "-":
            words.append(argument)
            continue
        if argument in ("-h", "--help"):
            return Help()
        flag, given, value = argument.lstrip("-").partition("=")
        if flag == "sleep":
            sleep = _seconds(value if given else next(left, ""))
        elif flag in _FLAGS_WITH_VALUE:
            if not given:
                next(left, "")
        # `-v5` is how the short form may also be written.
        elif flag not in _FLAGS and not (argument[1] == "v" and flag[1:].isdigit()):
            raise UsageError(f"unknown flag: {argument}")
    return _command(words, sleep)


def _command(words: list[str], sleep: int | None) -> Command:
    match words:
        case ["worker", "global"]:
            return Work("global", sleep or 0)
        case ["worker", "single-node"]:
            return Work("node", sleep or 0)
        case ["splat", directory]:
            return Splat(directory)
        case ["version"]:
            return Version()
        case ["help"]:
            return Help()
        case _:
            raise UsageError(f"unknown command: {' '.join(words) or 'none'}")


def _seconds(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise UsageError(f"--sleep: {text!r} is not a number of seconds") from None
