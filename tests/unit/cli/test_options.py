"""The options of status-ctl and its commands."""

import argparse
import importlib

import pytest

from reporter.author.trial import choose
from reporter.cli.options import length, size, wait_time
from reporter.status_ctl import COMMANDS, GROUPS, main


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1", 1), ("4096", 4096), ("64Mi", 64 * 2**20), ("1G", 10**9), ("2k", 2000), ("1Ti", 2**40)],
)
def test_a_memory_size_is_written_as_in_kubernetes(text, expected):
    """Bytes, or a decimal or binary unit."""
    assert expected == size(text)


@pytest.mark.parametrize("text", ["", "0", "-1", "1.5Gi", "64MB", "64 Mi", "Mi", "9" * 20])
def test_another_memory_size_is_a_usage_error(text):
    """Refused, not guessed."""
    with pytest.raises(argparse.ArgumentTypeError, match="not a size"):
        size(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0", 0), ("90", 90), ("90s", 90), ("30m", 1800), ("48h", 172_800), ("1h30m5s", 5405)],
)
def test_a_length_of_time(text, seconds):
    """As people write it."""
    assert seconds == length(text)


@pytest.mark.parametrize(
    "text", ["", "soon", "-5", "1.5h", "5x", "1_0", "1m1h", "1" * 13, "٣s", "h"]
)
def test_what_is_no_length_of_time(text):
    """A usage error."""
    with pytest.raises(argparse.ArgumentTypeError, match="not a duration"):
        length(text)


@pytest.mark.parametrize("text", ["0", "0s", "9" * 12])
def test_no_wait_time(text):
    """It is a length of time, as MAX_WAIT_TIME_SECONDS at least a second."""
    assert 300 == wait_time("5m")
    with pytest.raises(argparse.ArgumentTypeError, match="not a wait time"):
        wait_time(text)


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_every_command_is_one_module_with_help(command, capsys):
    """Each line of the table leads to a module with a description, options and a run."""
    module = importlib.import_module(f"reporter.{command.module}")

    with pytest.raises(SystemExit) as ended:
        main([command.name, "--help"])

    assert 0 == ended.value.code
    assert module.DESCRIPTION in capsys.readouterr().out


def test_the_help_lists_every_command_in_its_group(capsys):
    """With its summary, on standard output."""
    with pytest.raises(SystemExit) as ended:
        main(["-h"])

    out, err = capsys.readouterr()
    assert (0, "") == (ended.value.code, err)
    listed = out.partition("\n\noptions:")[0].split("\n\n")[2:]
    assert list(GROUPS) == [each.partition(":\n")[0] for each in listed]
    for group, text in zip(GROUPS.values(), listed, strict=True):
        lines = [line.split(maxsplit=1) for line in text.splitlines()[1:]]
        assert [[each.name, each.summary] for each in group] == lines


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["conjure"], "conjure"),
        (["try"], "missing COMMAND"),
        (["try", "--"], "missing COMMAND"),
        (["try", "--timeout", "soon", "--", "true"], "--timeout"),
        (["try", "--memory", "much", "--", "true"], "--memory"),
        (["try", "--mem", "1Gi", "--", "true"], "unrecognized arguments: --mem"),
        (["validate"], "FILE"),
        (["validate", "--colour", "x"], "--colour"),
    ],
)
def test_wrong_usage_is_told_on_standard_error(arguments, said, capsys):
    """One clear line, exit code 2, and nothing on standard output."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)

    out, err = capsys.readouterr()
    assert (2, "") == (ended.value.code, out)
    assert said in err


def test_no_command_at_all_is_wrong_usage(capsys):
    """The help, but where errors go."""
    assert 2 == main([])

    out, err = capsys.readouterr()
    assert "" == out
    assert "COMMAND" in err


@pytest.mark.parametrize("timeout", [None, 1, 2, 3, 4, 300])
def test_try_without_settings_does_as_the_reporter_by_default(timeout):
    """The settings are not even imported then, so nothing else keeps the two alike."""
    alone = choose({"RESULT_REQUIRED": " "}, timeout)
    read = choose({"RESULT_REQUIRED": "true"}, timeout)

    assert alone.poll_interval == read.poll_interval
    assert alone._replace(poll_interval_seconds=0) == read._replace(poll_interval_seconds=0)


def test_a_timeout_outranks_the_variable():
    """Together with what else is set."""
    chosen = choose({"MAX_WAIT_TIME_SECONDS": "9", "RESULT_TRUST": "at-exit"}, 7)

    assert (7, "at-exit") == (chosen.max_wait_time_seconds, chosen.result_trust)
