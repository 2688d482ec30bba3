"""The wording of the rows: fixed where the older product fixed it, never empty, never too long."""

import pytest

from reporter.verdict import rows
from reporter.verdict.facts import (
    FileInvalid,
    Progress,
    Running,
    Searched,
    Terminated,
    Waiting,
)
from reporter.verdict.rows import Report

LONG = "ä" * 2000


def test_a_row_is_its_letter_wherever_it_is_shown():
    """Also where the log is for people."""
    assert ("R", "'R'", "R") == (f"{rows.Row.RESULT}", repr(rows.Row.RESULT), str(rows.Row.RESULT))


NO_FILE = "but did not produce a valid result file"


@pytest.mark.parametrize(
    ("found", "named"),
    [
        (("result.json", "run"), "; found result.json, run"),
        (("adapter-result.json",), "; found an older adapter-result.json"),
        ((), ""),
    ],
)
def test_what_lies_there_instead_of_a_result_is_named(found, named):
    searched = Searched("/results/adapter-result.json", found)
    report = rows.exited(Terminated(0), result_required=True, searched=searched)

    assert report.message.endswith(f"{NO_FILE} (looked for /results/adapter-result.json{named})")


@pytest.mark.parametrize(
    "report",
    [
        rows.invalid(FileInvalid(LONG, None)),
        rows.exited(Terminated(1, LONG), result_required=True),
        rows.exited(
            Terminated(0, LONG), result_required=True, searched=Searched(LONG, (LONG, LONG))
        ),
        rows.trouble(rows.Row.IMAGE, LONG),
        rows.evicted(LONG, LONG),
        rows.misfit(LONG),
        rows.running(Running(), Progress(msg=LONG)),
        rows.running(Waiting(LONG), None),
        rows.interrupted("Pod was deleted", Waiting(LONG)),
    ],
    ids=lambda report: report.row,
)
def test_messages_are_cut_to_1024_bytes(report):
    """Whatever the kubelet or the adapter said."""
    assert 1020 < len(report.message.encode()) <= 1024


def test_messages_are_safe_to_show():
    """Control characters from a termination message do not reach anybody's terminal."""
    report = rows.evicted("Evicted", "low\x1b[31m on\nmemory\u202e")

    assert "Pod was disrupted: Evicted: low[31m on memory" == report.message
    assert "Pod was disrupted: Preempting" == rows.evicted("Preempting", "").message


@pytest.mark.parametrize(
    ("progress", "expected"),
    [
        (Progress(), ""),
        (Progress("copying"), "copying"),
        (Progress(total=12), "12 in total"),
        (Progress(completed=5), "5 completed"),
        (Progress(total=12, completed=0), "0 of 12 completed"),
        (Progress(total=0, completed=0), "0 of 0 completed"),
        (Progress(failures=("a", "b")), "2 failed"),
        (Progress(errors=("a",)), "1 with errors"),
        (
            Progress("copying", 12, 5, ("a",), ("b", "c")),
            "5 of 12 completed, 1 failed, 2 with errors, copying",
        ),
    ],
)
def test_progress_in_words(progress, expected):
    """What the adapter said of itself; nothing where it said nothing."""
    assert expected == rows.describe_progress(progress)


def test_only_a_result_is_the_adapters_own_word():
    """Metrics count a file's reasons as one."""
    assert ["R"] == [row for row in rows.Row if Report(row, "True", "r", "m").from_file]


def test_an_index_is_named_once_and_within_the_limit():
    """Also in words that were read back from the Job, whole or cut."""
    for text in ("ErrImagePull: not found", "x" * 5000):
        once = rows.of_index(rows.trouble(rows.Row.IMAGE, text), 3, completions=4)

        assert once.message.startswith(f"index 3: {text[:20]}")
        assert len(once.message) <= 1024
        assert once == rows.of_index(once, 3, completions=4)


@pytest.mark.parametrize(("index", "completions"), [(None, 4), (3, 1)])
def test_no_index_is_named_where_there_is_one_pod_or_none_is_known(index, completions):
    report = rows.out_of_memory()

    assert report == rows.of_index(report, index, completions=completions)


def test_a_deadline_is_said_once():
    """Also of words that were read back from the Job, whole or cut."""
    for text in ("ErrImagePull: not found", "x" * 5000):
        once = rows.after_deadline(rows.trouble(rows.Row.IMAGE, text), "Job", 600)

        assert once.message.endswith("; the Job's activeDeadlineSeconds (10m0s) passed")
        assert once == rows.after_deadline(once, "Job", 600)
