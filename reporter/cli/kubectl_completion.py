"""Completion of `kubectl job-verdict`: kubectl runs `kubectl_complete-job_verdict` with the words.

It prints a choice on a line, and at the end what the shell may offer besides, as kubectl's own
commands say it (the directives of its library cobra).
"""

import sys
from collections.abc import Sequence
from typing import Final

from reporter.cli.completion import Command, known_of
from reporter.cli.shells import OWN, Known

_FILES, _NOTHING, _FOLDERS = ":0", ":4", ":16"
_KINDS: Final = {"file": _FILES, "command": _FILES, "folder": _FOLDERS}


def complete(words: Sequence[str], commands: Sequence[Command]) -> int:
    """Print the choices for the last word; 0."""
    choices, directive = choices_for(words[:-1], words[-1] if words else "", commands)
    sys.stdout.write("".join(f"{line}\n" for line in [*choices, directive]))
    return 0


def choices_for(
    before: Sequence[str], word: str, commands: Sequence[Command]
) -> tuple[list[str], str]:
    """Return what a word may become, each with its meaning after a tab, and the directive."""
    if not before:
        offered = {name: summary for name, _, summary in commands}
        offered |= {flag: meaning for *flags, meaning in OWN for flag in flags}
        return _fitting(offered, word), _NOTHING
    chosen, *given = before
    found = next((each for each in commands if each[0] == chosen), None)
    if found is None:
        return [], _NOTHING
    command = known_of(found)
    if "--" in given:
        return [], _FILES
    return _argument(command, given[-1] if given else "", word)


def _argument(command: Known, last: str, word: str) -> tuple[list[str], str]:
    flag, equals, value = word.partition("=")
    for option in command.options:
        if option.values == 0:
            continue
        if equals and flag in option.flags:
            offered = {f"{flag}={choice}": "" for choice in option.choices}
            return _fitting(offered, f"{flag}={value}"), _KINDS.get(option.kind, _NOTHING)
        if last in option.flags and not (option.values == "?" and word.startswith("-")):
            offered = dict.fromkeys(option.choices, "")
            return _fitting(offered, word), _KINDS.get(option.kind, _NOTHING)
    if word.startswith("-"):
        flags = {flag: option.meaning for option in command.options for flag in option.flags}
        return _fitting(flags, word), _NOTHING
    return _fitting(dict.fromkeys(command.words, ""), word), _KINDS.get(command.kind, _NOTHING)


def _fitting(offered: dict[str, str], word: str) -> list[str]:
    return [
        f"{name}\t{meaning}" if meaning else name
        for name, meaning in offered.items()
        if name.startswith(word)
    ]
