"""`status-ctl completion`: scripts that let a shell complete commands and options.

They are made from the commands' own declarations, so that they cannot lag behind.
"""

import argparse
import sys
from importlib import import_module
from typing import Final, NamedTuple

from reporter.ctl.exits import GOOD

DESCRIPTION = """\
Prints a script for your shell:
  bash   source <(status-ctl completion bash)
  zsh    source <(status-ctl completion zsh)         after compinit
  fish   status-ctl completion fish | source

exit codes:
  0    printed
  2    wrong usage"""

SHELLS: Final = ("bash", "zsh", "fish")


class Option(NamedTuple):
    """One option: its spellings, whether a value follows, which values there are, what it does."""

    flags: tuple[str, ...]
    takes_value: bool
    choices: tuple[str, ...]
    meaning: str


class Known(NamedTuple):
    """One command."""

    name: str
    summary: str
    options: tuple[Option, ...]
    words: tuple[str, ...]


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("shell", choices=SHELLS, help="the shell")


def run(options: argparse.Namespace) -> int:
    """Print the script and return the exit code."""
    script = {"bash": bash, "zsh": zsh, "fish": fish}[options.shell]
    sys.stdout.write(script(known()))
    return GOOD


def known() -> list[Known]:
    """Ask every command what it takes."""
    from reporter.ctl.main import COMMANDS

    found = []
    for command in COMMANDS:
        parser = argparse.ArgumentParser(prog=command.name)
        import_module(f"reporter.ctl.{command.module}").arguments(parser)
        options, words = [], list[str]()
        for action in parser._actions:
            choices = tuple(map(str, action.choices or ()))
            if action.option_strings:
                meaning = (action.help or "").partition(" (")[0].split(";")[0]
                flags = tuple(action.option_strings)
                options.append(Option(flags, action.nargs != 0, choices, meaning))
            else:
                words += choices
        found.append(Known(command.name, command.summary, tuple(options), tuple(words)))
    return found


def bash(commands: list[Known]) -> str:
    """Return the script for bash; where it has no word to offer, files are offered."""
    lines = [
        "_status_ctl() {",
        '  local cur="${COMP_WORDS[COMP_CWORD]}" prev="" words="" command="" at',
        '  ((COMP_CWORD > 0)) && prev="${COMP_WORDS[COMP_CWORD-1]}"',
        "  for ((at = 1; at < COMP_CWORD; at++)); do",
        f'    case "${{COMP_WORDS[at]}}" in {"|".join(each.name for each in commands)})',
        '      command="${COMP_WORDS[at]}"; break;; esac',
        "  done",
        '  case "$command" in',
        f'    "") words="{" ".join(each.name for each in commands)} --help --version" ;;',
    ]
    for each in commands:
        lines.append(f"    {each.name})")
        lines.append('      case "$prev" in')
        for option in each.options:
            if option.takes_value:
                pattern, choices = "|".join(option.flags), " ".join(option.choices)
                answer = f'COMPREPLY=($(compgen -W "{choices}" -- "$cur"))' if choices else ":"
                lines.append(f"        {pattern}) {answer}; return ;;")
        lines.append("      esac")
        flags = [flag for option in each.options for flag in option.flags]
        lines.append(f'      words="{" ".join([*each.words, *flags])}" ;;')
    lines += [
        "  esac",
        '  COMPREPLY=($(compgen -W "$words" -- "$cur"))',
        "}",
        "complete -o default -F _status_ctl status-ctl",
    ]
    return "".join(f"{line}\n" for line in lines)


def zsh(commands: list[Known]) -> str:
    """Return the script for zsh."""
    lines = ["#compdef status-ctl", "_status_ctl() {", "  local -a commands", "  commands=("]
    lines += [f"    {_quoted(f'{each.name}:{each.summary}')}" for each in commands]
    lines += [
        "  )",
        "  if ((CURRENT == 2)); then _describe command commands; return; fi",
        '  case "$words[2]" in',
    ]
    for each in commands:
        lines.append(f"    {each.name})")
        specs = [_zsh_option(option, flag) for option in each.options for flag in option.flags]
        if each.words:
            specs.append(_quoted(f"*:word:({' '.join(each.words)})"))
        else:
            specs.append(_quoted("*:file:_files"))
        lines.append("      _arguments \\")
        lines += [f"        {spec} \\" for spec in specs[:-1]]
        lines += [f"        {specs[-1]} ;;"]
    lines += ["  esac", "}", "compdef _status_ctl status-ctl"]
    return "".join(f"{line}\n" for line in lines)


def fish(commands: list[Known]) -> str:
    """Return the script for fish."""
    begin = "complete -c status-ctl"
    lines = [
        f"{begin} -n __fish_use_subcommand -f -a {each.name} -d {_quoted(each.summary)}"
        for each in commands
    ]
    for each in commands:
        where = f"{begin} -n '__fish_seen_subcommand_from {each.name}'"
        lines += [f"{where} -f -a {word}" for word in each.words]
        for option in each.options:
            names = "".join(
                f" -l {flag[2:]}" if flag.startswith("--") else f" -s {flag[1:]}"
                for flag in option.flags
            )
            value = " -r" if option.takes_value else ""
            choices = f" -f -a {_quoted(' '.join(option.choices))}" if option.choices else ""
            lines.append(f"{where}{names}{value}{choices} -d {_quoted(option.meaning)}")
    return "".join(f"{line}\n" for line in lines)


def _zsh_option(option: Option, flag: str) -> str:
    meaning = option.meaning.replace("[", "(").replace("]", ")").replace(":", " ")
    value = ""
    if option.takes_value:
        value = f":value:({' '.join(option.choices)})" if option.choices else ":value:_files"
    return _quoted(f"{flag}[{meaning}]{value}")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
