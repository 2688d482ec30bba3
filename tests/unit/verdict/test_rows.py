"""The wording of the rows: fixed where the older product fixed it, never empty, never too long."""

import pytest

from reporter.verdict import rows
from reporter.verdict.facts import (
    Container,
    FileAbsent,
    FileInvalid,
    Progress,
    Running,
    Searched,
    Terminated,
    Waiting,
)
from reporter.verdict.rows import Report
from tests.situations import BAD, GOOD, valid

LONG = "ä" * 2000


def test_a_row_is_its_letter_wherever_it_is_shown():
    """Also where the log is for people."""
    assert ("R", "'R'", "R") == (f"{rows.Row.RESULT}", repr(rows.Row.RESULT), str(rows.Row.RESULT))


EXACT = {
    "R, success": (rows.result(GOOD), "R True AllChecked: 12 of 12"),
    "R, failure": (rows.result(BAD), "R False QuotaLow: 2 of 12 failed"),
    "T": (
        rows.timeout(300.0),
        "T False AdapterTimeout: Adapter did not produce results within 5m0s",
    ),
    "T, the Pod refused": (
        rows.timeout(12, refused=True),
        "T False AdapterTimeout: Adapter did not produce results within 12s (the Pod "
        "could not be read: forbidden)",
    ),
    "O": (
        rows.out_of_memory(),
        "O False AdapterOOMKilled: Adapter container was killed due to out of memory (OOMKilled)",
    ),
    "I": (
        rows.invalid(FileInvalid("status: must be either 'success' or 'failure'", None)),
        "I False InvalidResultFormat: Failed to parse adapter result: status: must be "
        "either 'success' or 'failure'",
    ),
    "X, exit 1": (
        rows.exited(Terminated(1, "Error"), result_required=True),
        "X False AdapterExitedWithError: Adapter container exited with code 1: Error",
    ),
    "X, exit 0": (
        rows.exited(Terminated(0, "Completed"), result_required=True),
        "X False AdapterMissingResults: Adapter container exited successfully (code 0) "
        "but did not produce a valid result file: Completed",
    ),
    "X, exit 0, something else lies there": (
        rows.exited(
            Terminated(0, "Completed"),
            result_required=True,
            searched=Searched("/results/adapter-result.json", ("result.json", "run")),
        ),
        "X False AdapterMissingResults: Adapter container exited successfully (code 0) "
        "but did not produce a valid result file: Completed (looked for "
        "/results/adapter-result.json; found result.json, run)",
    ),
    "X, exit 0, a file that does not count": (
        rows.exited(
            Terminated(0),
            result_required=True,
            searched=Searched("/results/adapter-result.json", ("adapter-result.json",)),
        ),
        "X False AdapterMissingResults: Adapter container exited successfully (code 0) "
        "but did not produce a valid result file (looked for "
        "/results/adapter-result.json; found an older adapter-result.json)",
    ),
    "X, exit 0, nothing lies there": (
        rows.exited(
            Terminated(0), result_required=True, searched=Searched("/results/adapter-result.json")
        ),
        "X False AdapterMissingResults: Adapter container exited successfully (code 0) "
        "but did not produce a valid result file (looked for "
        "/results/adapter-result.json)",
    ),
    "S": (
        rows.exited(Terminated(0, "Completed"), result_required=False),
        "S True AdapterSucceeded: Adapter container exited successfully (code 0)",
    ),
    "E": (
        rows.evicted("Evicted", "low on memory"),
        "E Unknown AdapterEvicted: Pod was disrupted: Evicted: low on memory",
    ),
    "E, without message": (
        rows.evicted("Preempting", ""),
        "E Unknown AdapterEvicted: Pod was disrupted: Preempting",
    ),
    "D": (
        rows.deadline("Job", 600.0),
        "D False AdapterTimeout: Adapter did not finish within the Job's "
        "activeDeadlineSeconds (10m0s)",
    ),
    "M": (
        rows.misfit("POLL_INTERVAL_SECONDS: must be positive"),
        "M Unknown ReporterConfigError: Invalid reporter settings: POLL_INTERVAL_SECONDS: "
        "must be positive",
    ),
    "W2": (
        rows.trouble(rows.Row.CONFIG, "container 'a': CreateContainerConfigError: no key"),
        "W2 False AdapterConfigError: container 'a': CreateContainerConfigError: no key",
    ),
}


@pytest.mark.parametrize(("report", "expected"), EXACT.values(), ids=EXACT.keys())
def test_the_wording_of_a_row(report, expected):
    """Row, status, reason and message, to the letter."""
    assert expected == f"{report.row} {report.status} {report.reason}: {report.message}"


@pytest.mark.parametrize("file", [FileAbsent(), valid()])
def test_only_an_invalid_file_is_row_i(file):
    """No file and a good file are no invalid file."""
    assert rows.invalid(file) is None


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


@pytest.mark.parametrize(
    ("adapter", "expected"),
    [
        (Container("a", Running(), Terminated(1), 5), None),
        (Container("a", Waiting("ContainerCreating"), Terminated(1), 5), None),
        (Container("a", Terminated(1), Terminated(1), 5), None),
        (Container("a", Waiting("CrashLoopBackOff"), Terminated(1), 1), None),
        (
            Container("a", Waiting("CrashLoopBackOff"), Terminated(3), 2),
            "Adapter container keeps failing: last exit code 3, restarted 2 times",
        ),
    ],
)
def test_a_crash_loop_begins_with_the_second_restart(adapter, expected):
    """Only while the kubelet waits before the next try."""
    report = rows.crash_looping(adapter)

    assert expected == (report and report.message)


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (None, "container cannot be observed"),
        (Running(), "container is running"),
        (Waiting(), "container has not started yet"),
        (Waiting("ContainerCreating"), "container is waiting: ContainerCreating"),
        (Terminated(7), "container ended with exit code 7"),
    ],
)
def test_states_in_words(state, expected):
    """What rows N and A say the adapter does."""
    assert expected == rows.describe(state)
    assert f"Adapter {expected}" == rows.running(state, None).message


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
    shown = (
        f"Adapter container is running; {expected}" if expected else "Adapter container is running"
    )
    assert shown == rows.running(Running(), progress).message


@pytest.mark.parametrize(
    ("row", "from_file"), [("R", True), ("S", False), ("X", False), ("A", False)]
)
def test_whose_word_a_row_is(row, from_file):
    """Metrics count a file's reasons as one."""
    assert from_file == Report(row, "True", "r", "m").from_file


def test_every_row_of_the_contract_has_its_reason():
    """R's comes from the file, X's from the exit code."""
    assert {"R", "X"} == {row for row in rows.Row if not row.reason}


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
