"""Completion in shells: `status-ctl completion` prints a stub, which asks `status-ctl __complete`.

The stubs are the files beside this one. They ask with the words of a line up to the one that is
being written. The answer is a choice on a line, its meaning after a tab, and then what the shell
may offer besides: the protocol of cobra, kubectl's library. kubectl asks the same of
`kubectl_complete-job_verdict`.
"""

import argparse
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from reporter.cli.exits import GOOD

DESCRIPTION = """\
Prints a completion script for your shell:
  bash   source <(status-ctl completion bash)
  zsh    source <(status-ctl completion zsh)         after compinit
  fish   status-ctl completion fish | source

For `kubectl job-verdict`, use the completion of kubectl: it calls kubectl_complete-job_verdict,
which is installed with the plugin.

exit codes:
  0    printed
  2    usage error"""

_FILES, _NOTHING, _FOLDERS = ":0", ":4", ":16"
_KINDS: Final = {"FILE": _FILES, "PATH": _FILES, "DIR": _FOLDERS}
_ASIDE: Final = re.compile(r" \(([^()]|\([^()]*\))*\)|;.*", re.DOTALL)
_OWN: Final = {
    "-h": "show this help",
    "--help": "show this help",
    "--version": "show the version",
}


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="the shell")


def run(options: argparse.Namespace) -> int:
    """Print the script and return the exit code."""
    sys.stdout.write(Path(__file__).with_suffix(f".{options.shell}").read_text())
    return GOOD


def answer(
    words: Sequence[str],
    commands: dict[str, str],
    parser_of: Callable[[str], argparse.ArgumentParser],
) -> list[str]:
    """Return the lines for the last word, which may be empty; `commands` have their summaries."""
    *before, word = words or [""]
    if not before:
        return _fitting(word, commands | _OWN)
    name, *given = before
    if name not in commands:
        return [_NOTHING]
    if "--" in given:
        return [_FILES]
    flag, equals, _ = word.partition("=")
    flags, operand = dict[str, str](), None
    for action in parser_of(name)._actions:
        if not action.option_strings:
            operand = action
            continue
        # In a few words: no asides, no second half.
        flags |= dict.fromkeys(action.option_strings, _ASIDE.sub("", action.help or ""))
        if action.nargs == 0:
            continue
        if equals and flag in action.option_strings:
            return _values(word, action, f"{flag}=")
        optional = action.nargs == argparse.OPTIONAL and word.startswith("-")
        if given and given[-1] in action.option_strings and not optional:
            return _values(word, action)
    if word.startswith("-"):
        return _fitting(word, flags)
    return [_NOTHING] if operand is None else _values(word, operand)


def _values(word: str, action: argparse.Action, before: str = "") -> list[str]:
    remainder = action.nargs == argparse.REMAINDER
    besides = _FILES if remainder else _KINDS.get(str(action.metavar), _NOTHING)
    return _fitting(word, {f"{before}{each}": "" for each in action.choices or ()}, besides)


def _fitting(word: str, offered: Mapping[str, str], besides: str = _NOTHING) -> list[str]:
    fitting = [(name, text) for name, text in offered.items() if name.startswith(word)]
    return [*(f"{name}\t{text}" if text else name for name, text in fitting), besides]
