"""`status-ctl completion`: scripts that let a shell complete commands and options.

They are made from the commands' own declarations, so that they cannot lag behind; what each shell
wants to be told is `shells`.
"""

import argparse
import re
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Final

from reporter.cli.exits import GOOD
from reporter.cli.shells import Known, Option, bash, fish, zsh

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

Command = tuple[str, str, str]
"""A command's name, its module in `reporter`, and what it does in a line."""
SHELLS: Final = ("bash", "zsh", "fish")
_ASIDE: Final = re.compile(r" \(([^()]|\([^()]*\))*\)")
_FILES: Final = {"FILE": "file", "PATH": "file", "DIR": "folder"}


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("shell", choices=SHELLS, help="the shell")


def run(options: argparse.Namespace) -> int:
    """Print the script and return the exit code."""
    script = {"bash": bash, "zsh": zsh, "fish": fish}[options.shell]
    sys.stdout.write(script(known(options.commands)))
    return GOOD


def known(commands: Sequence[Command]) -> list[Known]:
    """Ask every command what it takes."""
    return [known_of(command) for command in commands]


def known_of(command: Command) -> Known:
    """Ask a command what it takes."""
    name, module, summary = command
    parser = argparse.ArgumentParser(prog=name)
    import_module(f"reporter.{module}").arguments(parser)
    options, words, operand = list[Option](), tuple[str, ...](), ""
    for action in parser._actions:
        choices = tuple(map(str, action.choices or ()))
        kind = _FILES.get(str(action.metavar), "")
        if action.option_strings:
            # In a few words: no asides, no second half.
            meaning = _ASIDE.sub("", action.help or "").split(";")[0]
            flags = tuple(action.option_strings)
            options.append(Option(flags, meaning, action.nargs, choices, kind))
        elif action.nargs == argparse.REMAINDER:
            operand = "command"
        else:
            words, operand = choices, kind or "other"
    return Known(name, summary, tuple(options), words, operand)
