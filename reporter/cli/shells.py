"""Completion scripts for bash, zsh and fish, made from what the commands take.

Which commands there are and what they take is asked in `completion`. Scripts that libraries write
do not complete all of it: docs/decisions/0006-dependencies.md.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

OWN: Final = (("-h", "--help", "show this help"), ("--version", "show the version"))


class Option(NamedTuple):
    """One option: its spellings, what it does, and what follows.

    `values` is how many there are, as argparse has it: None for one, "?" for one or none, 0.
    `kind` is "file", "folder" or "" for something that only a person knows.
    """

    flags: tuple[str, ...]
    meaning: str
    values: int | str | None
    choices: tuple[str, ...]
    kind: str


class Known(NamedTuple):
    """One command. Its operand is one of `words`, or of a kind: "file", "command", "other", "".

    "" says that there is none.
    """

    name: str
    summary: str
    options: tuple[Option, ...]
    words: tuple[str, ...]
    kind: str


def bash(commands: list[Known]) -> str:
    """Return the script for bash."""
    lines = [
        "_status_ctl() {",
        '  local cur="${COMP_WORDS[COMP_CWORD]}" prev="${COMP_WORDS[COMP_CWORD-1]}" words="" word',
        "  COMPREPLY=()",
        "  # --output=json comes as three words.",
        '  if [[ $cur == "=" ]]; then cur=""',
        '  elif [[ $prev == "=" ]]; then prev="${COMP_WORDS[COMP_CWORD-2]}"; fi',
        '  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do',
        '    if [[ $word == "--" ]]; then compopt -o default; return; fi',
        "  done",
        '  case "$((COMP_CWORD > 1)) ${COMP_WORDS[1]}" in',
        f'    "0 "*) words="{" ".join(each.name for each in commands)} {" ".join(_own())}" ;;',
    ]
    for each in commands:
        lines += [f'    "1 {each.name}")', '      case "$prev" in']
        for option in each.options:
            if option.values != 0:
                lines.append(f"        {'|'.join(option.flags)}) {_bash_value(option)} ;;")
        lines.append("      esac")
        if each.kind == "file":
            lines.append("      [[ $cur == -* ]] || { compopt -o default; return; }")
        flags = [flag for option in each.options for flag in option.flags]
        lines.append(f'      words="{" ".join([*each.words, *flags])}" ;;')
    lines += [
        "  esac",
        '  COMPREPLY=($(compgen -W "$words" -- "$cur"))',
        "}",
        "complete -F _status_ctl status-ctl",
    ]
    return _text(lines)


def _bash_value(option: Option) -> str:
    if option.choices:
        return f'COMPREPLY=($(compgen -W "{" ".join(option.choices)}" -- "$cur")); return'
    kinds = {"file": "compopt -o default; return", "folder": "compopt -o dirnames; return"}
    answer = kinds.get(option.kind, "return")
    return f"[[ $cur == -* ]] || {{ {answer}; }}" if option.values == "?" else answer


def zsh(commands: list[Known]) -> str:
    """Return the script for zsh, to be sourced or put as `_status-ctl` where `fpath` leads."""
    lines = [
        "#compdef status-ctl",
        "_status-ctl() {",
        "  local curcontext=$curcontext state line",
        "  local -a commands",
        "  commands=(",
        *(f"    {_quoted(f'{each.name}:{each.summary}')}" for each in commands),
        "  )",
        "  _arguments -C \\",
        *(f"    {_quoted('(- *)')}{_zsh_flags(own[:-1])}'[{own[-1]}]' \\" for own in OWN),
        "    '1: :->command' '*:: :->argument' && return",
        "  if [[ $state == command ]]; then _describe command commands; return; fi",
        '  case "$words[1]" in',
    ]
    for each in commands:
        specs = [*map(_zsh_option, each.options), *_zsh_operand(each)]
        lines += [f"    {each.name})", "      _arguments -s -S \\"]
        lines += [f"        {spec} \\" for spec in specs[:-1]]
        lines += [f"        {specs[-1]} ;;"]
    lines += [
        "    *) return 1 ;;",
        "  esac",
        "}",
        'if [[ "$funcstack[1]" == _status-ctl ]]; then _status-ctl "$@"',
        "else compdef _status-ctl status-ctl; fi",
    ]
    return _text(lines)


def _zsh_operand(command: Known) -> list[str]:
    if command.words:
        return [_quoted(f"1:word:({' '.join(command.words)})")]
    operands = {
        "file": ["'*:file:_files'"],
        "command": ["'*:::command:_normal'"],
        # A message would keep zsh from completing an option in its place.
        "other": ["'1:value:()'"],
        "": [],
    }
    return operands[command.kind]


def _zsh_option(option: Option) -> str:
    flags, value = list(option.flags), ""
    meaning = option.meaning.replace("[", "\\[").replace("]", "\\]")
    if option.values != 0:
        flags = [flag + ("=" if flag.startswith("--") else "+") for flag in flags]
        kinds = {"file": "file:_files", "folder": "folder:_files -/", "": "value: "}
        value = f"value:({' '.join(option.choices)})" if option.choices else kinds[option.kind]
        value = ("::" if option.values == "?" else ":") + value
    others = _quoted(f"({' '.join(option.flags)})")
    return others + _zsh_flags(flags) + _quoted(f"[{meaning}]{value}")


def _zsh_flags(flags: Sequence[str]) -> str:
    return flags[0] if len(flags) == 1 else "{" + ",".join(flags) + "}"


def fish(commands: list[Known]) -> str:
    """Return the script for fish."""
    begin = "complete -c status-ctl"
    first = f"{begin} -n 'test (count (commandline -opc)) -eq 1'"
    lines = [
        "function __status_ctl_in",
        "    set -l words (commandline -opc)",
        '    test "$words[2]" = $argv[1]; and not contains -- -- $words',
        "end",
        "function __status_ctl_after",
        "    contains -- (commandline -opc)[-1] $argv",
        "end",
        f"{begin} -f",
        f"{begin} -n 'contains -- -- (commandline -opc)' -F",
        *(f"{first}{_fish_flags(own[:-1])} -d {_quoted(own[-1])}" for own in OWN),
        *(f"{first} -a {each.name} -d {_quoted(each.summary)}" for each in commands),
    ]
    folders = "-a '(__fish_complete_directories)'"
    kinds = {"file": " -r -F", "folder": f" -x {folders}", "": " -x"}
    for each in commands:
        where = f"{begin} -n '__status_ctl_in {each.name}'"
        lines += [f"{where} -a {word}" for word in each.words]
        if each.kind == "file":
            lines.append(f"{where} -F")
        for option in each.options:
            value = ""
            if option.choices:
                value = f" -x -a {_quoted(' '.join(option.choices))}"
            elif option.values is None:
                value = kinds[option.kind]
            elif option.values == "?" and option.kind == "folder":
                # fish knows no options that may have a value.
                after = f"__status_ctl_after {' '.join(option.flags)}"
                lines.append(f"{begin} -n '{after}' {folders}")
            lines.append(f"{where}{_fish_flags(option.flags)}{value} -d {_quoted(option.meaning)}")
    return _text(lines)


def _fish_flags(flags: Sequence[str]) -> str:
    return "".join(f" -l {flag[2:]}" if flag[:2] == "--" else f" -s {flag[1:]}" for flag in flags)


def _own() -> list[str]:
    return [flag for own in OWN for flag in own[:-1]]


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _text(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
