"""What stands beside an option where a shell completes it."""

from reporter.cli.completion import known
from reporter.status_ctl import COMMANDS


def test_meanings_are_short() -> None:
    """What stands beside an option is in a few words, and whole."""
    for command in known(COMMANDS):
        for option in command.options:
            assert option.meaning
            assert not set("()%;") & set(option.meaning), option
