"""What the worker is asked to do: from arguments to the words of a command and `--sleep`.

Plugin definitions in use pass logging flags of their time along; they are accepted and mean
nothing.
"""

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


def parse(arguments: list[str]) -> tuple[list[str], int]:
    """Return the words, and how many seconds to stay afterwards, less than nothing for ever.

    `help` alone where help is asked for. Raises UsageError.
    """
    words: list[str] = []
    sleep = 0
    left = iter(arguments)
    for argument in left:
        if not argument.startswith("-") or argument == "-":
            words.append(argument)
            continue
        if argument in ("-h", "--help"):
            return ["help"], 0
        flag, given, value = argument.lstrip("-").partition("=")
        if flag == "sleep":
            sleep = _seconds(value if given else next(left, ""))
        elif flag in _FLAGS_WITH_VALUE:
            if not given:
                next(left, "")
        # `-v5` is how the short form may also be written.
        elif flag not in _FLAGS and not (argument[1] == "v" and flag[1:].isdigit()):
            raise UsageError(f"unknown flag: {argument}")
    return words, sleep


def _seconds(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise UsageError(f"--sleep: {text!r} is not a number of seconds") from None
