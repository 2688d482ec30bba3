"""What stands on the Job: whose it is, whether a report is worth a write, and the patch."""

import itertools
from dataclasses import replace

import pytest

from reporter.verdict.condition import (
    TEXT_PAUSE,
    Attempt,
    Note,
    Owner,
    Standing,
    annotation_key,
    annotation_patch,
    build_patch,
    owner,
    read_job,
    read_standing,
    worth_writing,
)
from reporter.verdict.facts import Job
from reporter.verdict.rows import Report

AT = 1_767_323_045.0
STAMP = "2026-01-02T03:04:05Z"
EARLIER = "2026-01-02T03:00:00Z"
OURS = Attempt("job-b", "uid-b", AT, AT + 2)
OLDER = Attempt("job-a", "uid-a", AT - 60, AT - 58)
NEWER = Attempt("job-c", "uid-c", AT + 60, AT + 62)
RUNS = Report("A", "Unknown", "AdapterRunning", "Adapter container is running")
DONE = Report("R", "True", "AllChecked", "12 of 12")
FAILED = Report("R", "False", "QuotaLow", "2 of 12 failed")


def standing(report=RUNS, attempt=OURS, *, final=False):
    """What stands after that report of that attempt."""
    said = (report.row, report.status, report.reason)
    note = None if attempt is None else Note(attempt, final, *said)
    return Standing(
        Job(uid="job-uid"), "41", report.status, report.reason, report.message, EARLIER, note
    )


ORDER = {
    "the same Pod": (OURS, OURS, False),
    "created earlier": (OURS, NEWER, True),
    "created later": (OURS, OLDER, False),
    "created in the same second, lower UID": (OURS, replace(NEWER, created_at=AT), True),
    "created in the same second, higher UID": (OURS, replace(OLDER, created_at=AT), False),
    "created in parts of the same second": (
        replace(OURS, created_at=AT + 0.9),
        replace(NEWER, created_at=AT + 0.1),
        True,
    ),
    "the same name and no UID known": (
        replace(OURS, pod_uid=""),
        replace(OURS, created_at=0),
        False,
    ),
    "the same name, another UID": (OURS, replace(OURS, pod_uid="uid-z"), True),
    "our Pod cannot be read, started earlier": (Attempt("job-b", "", None, AT + 2), NEWER, True),
    "our Pod cannot be read, started later": (Attempt("job-b", "", None, AT + 90), NEWER, False),
    "neither can be read, started earlier": (
        Attempt("job-b", "", None, AT),
        Attempt("job-a", "", None, AT + 1),
        True,
    ),
    "neither can be read, started in the same second": (
        Attempt("job-a", "", None, AT),
        Attempt("job-b", "", None, AT + 0.5),
        True,
    ),
}


@pytest.mark.parametrize(("one", "other", "expected"), ORDER.values(), ids=ORDER.keys())
def test_attempts_are_ordered(one, other, expected):
    """By creation time, then UID; where the Pod cannot be read, by first start and name."""
    assert expected is one.older_than(other)
    assert (not expected and not one.same(other)) is other.older_than(one)


def test_the_order_of_attempts_is_total():
    """Of two different Pods exactly one has the last word, whatever is known of them."""
    moments = (None, AT, AT + 1)
    some = [
        Attempt(name, uid, created, since)
        for name, created, since in itertools.product("ab", moments, (AT, AT + 1))
        for uid in ("", f"uid-{name}")
    ]
    for one, other in itertools.product(some, some):
        assert one.same(other) is not (one.older_than(other) or other.older_than(one))


@pytest.mark.parametrize(
    ("report", "final", "index", "expected"),
    [
        pytest.param(FAILED, True, 0, Owner.FAILED_INDEX, id="a final False of another index"),
        pytest.param(FAILED, True, 1, Owner.OLDER, id="of an earlier try of this index"),
        pytest.param(FAILED, True, None, Owner.OLDER, id="of a Job without indexes"),
        pytest.param(FAILED, False, 0, Owner.OLDER, id="it may still change"),
        pytest.param(DONE, True, 0, Owner.OLDER, id="a True of another index"),
        pytest.param(replace(RUNS, row="N"), True, 0, Owner.OLDER, id="an Unknown of another one"),
    ],
)
def test_an_index_that_failed_keeps_its_verdict(report, final, index, expected):
    stands = standing(report, replace(OLDER, index=index), final=final)

    assert expected is owner(stands, replace(OURS, index=1))
    assert (expected is Owner.OLDER) is worth_writing(
        stands, replace(OURS, index=1), DONE, final=True
    )
    assert Owner.NEWER is owner(standing(report, NEWER, final=final), replace(OURS, index=1))


@pytest.mark.parametrize(
    ("attempt", "expected"),
    [
        (None, Owner.NOBODY),
        (OURS, Owner.OURS),
        (replace(OURS, pod_uid="", created_at=None), Owner.OURS),
        (OLDER, Owner.OLDER),
        (NEWER, Owner.NEWER),
    ],
)
def test_whose_report_stands(attempt, expected):
    """By the annotation; without one it is nobody's."""
    assert expected is owner(standing(attempt=attempt), OURS)


WORTH = {
    "nothing stands": (Standing(Job(), "1"), RUNS, False, True),
    "the same without our annotation": (standing(attempt=None), RUNS, False, True),
    "an older attempt's": (standing(attempt=OLDER), RUNS, False, True),
    "an older attempt's final": (standing(DONE, OLDER, final=True), RUNS, False, True),
    "a newer attempt's": (standing(attempt=NEWER), DONE, True, False),
    "our own, the same": (standing(), RUNS, False, False),
    "our own, now final": (standing(DONE), DONE, True, True),
    "our own final, the same": (standing(DONE, final=True), DONE, True, False),
    "our own final, another": (standing(DONE, final=True), RUNS, False, False),
    "our own final, another final": (
        standing(DONE, final=True),
        Report("X", "False", "AdapterExitedWithError", "m"),
        True,
        False,
    ),
    "our own, another status": (standing(), replace(RUNS, status="False"), False, True),
    "our own, another reason": (standing(), replace(RUNS, reason="AdapterTimeout"), False, True),
    "our own, the same words from another row": (standing(), replace(RUNS, row="N"), False, True),
    "somebody else changed our condition": (replace(standing(), status="True"), RUNS, False, True),
    "somebody else changed our final condition": (
        replace(standing(DONE, final=True), status="False"),
        DONE,
        True,
        True,
    ),
}


@pytest.mark.parametrize(
    ("stands", "report", "final", "expected"), WORTH.values(), ids=WORTH.keys()
)
def test_what_is_worth_a_write(stands, report, final, expected):
    """Only what changes something, and nothing of an older attempt or after a final verdict."""
    assert expected is worth_writing(stands, OURS, report, final=final)


@pytest.mark.parametrize("row", ["A", "C", "W1", "W2", "W3"])
def test_a_new_text_alone_is_written_every_30_seconds(row):
    """Progress, restarts and the kubelet's wording change often; the Job controller pays for it."""
    before = Report(row, "Unknown", "r", "one")
    stands, report = standing(before), replace(before, message="two")

    assert not worth_writing(stands, OURS, report, final=False, since_last=TEXT_PAUSE - 0.1)
    assert worth_writing(stands, OURS, report, final=False, since_last=TEXT_PAUSE)
    assert worth_writing(stands, OURS, report, final=True, since_last=0)
    assert not worth_writing(stands, OURS, before, final=False, since_last=TEXT_PAUSE)


def test_a_new_text_of_an_interruption_is_written_at_once():
    """There may be no later."""
    before = Report("N", "Unknown", "AdapterInterrupted", "one")

    assert worth_writing(
        standing(before), OURS, replace(before, message="two"), final=False, since_last=0
    )


def test_the_patch():
    """All six fields, the guard of UID and version, and the annotation, in one body."""
    assert {
        "metadata": {
            "uid": "job-uid",
            "resourceVersion": "41",
            "annotations": {"status-reporter.io/example.com.Done": "{}"},
        },
        "status": {
            "conditions": [
                {
                    "type": "example.com/Done",
                    "status": "True",
                    "reason": "AllChecked",
                    "message": "12 of 12",
                    "lastProbeTime": STAMP,
                    "lastTransitionTime": STAMP,
                }
            ]
        },
    } == build_patch(standing(), "example.com/Done", DONE, "{}", AT)


@pytest.mark.parametrize(
    ("stands", "expected"),
    [
        pytest.param(standing(DONE), EARLIER, id="same status"),
        pytest.param(standing(DONE, attempt=None), EARLIER, id="same status of an older product"),
        pytest.param(standing(RUNS), STAMP, id="another status"),
        pytest.param(replace(standing(DONE), transition=""), STAMP, id="no time stands"),
        pytest.param(Standing(Job(), "1"), STAMP, id="nothing stands"),
    ],
)
def test_the_transition_time_moves_only_with_the_status(stands, expected):
    """A new reason or message is no transition."""
    (condition,) = build_patch(stands, "Available", DONE, "{}", AT)["status"]["conditions"]

    assert (expected, STAMP) == (condition["lastTransitionTime"], condition["lastProbeTime"])


def test_the_annotation_alone():
    """The same guard, and no condition."""
    assert {
        "metadata": {
            "uid": "job-uid",
            "resourceVersion": "41",
            "annotations": {annotation_key("Available"): "{}"},
        }
    } == annotation_patch(standing(), "Available", "{}")


JOBS = {
    "empty": ({}, Job()),
    "in full": (
        {
            "metadata": {"uid": "u", "deletionTimestamp": STAMP},
            "spec": {"activeDeadlineSeconds": 600, "suspend": True, "parallelism": 2},
            "status": {"startTime": STAMP},
        },
        Job("u", AT, 600.0, suspended=True, deleting=True, parallel=True),
    ),
    "one Pod at a time": ({"spec": {"parallelism": 1, "suspend": False}}, Job()),
    "several completions": ({"spec": {"completions": 3}}, Job(completions=3)),
    "failing": (
        {
            "status": {
                "conditions": [
                    {"type": "Available", "status": "True", "reason": "AllChecked"},
                    {"type": "FailureTarget", "status": "True", "reason": "BackoffLimitExceeded"},
                ]
            }
        },
        Job(failure="BackoffLimitExceeded"),
    ),
    "failed": (
        {
            "status": {
                "conditions": [{"type": "Failed", "status": "True", "reason": "DeadlineExceeded"}]
            }
        },
        Job(failure="DeadlineExceeded"),
    ),
    "not failed": (
        {"status": {"conditions": [{"type": "Failed", "status": "False", "reason": "r"}]}},
        Job(),
    ),
}


@pytest.mark.parametrize(("shown", "expected"), JOBS.values(), ids=JOBS.keys())
def test_the_facts_of_a_job(shown, expected):
    """What a verdict depends on, read from the API's object."""
    assert expected == read_job(shown)


def test_what_stands_is_read_by_type():
    """A new condition is put first by the API server: never by place."""
    job = {
        "metadata": {"uid": "u", "resourceVersion": "7"},
        "status": {
            "conditions": [
                {"type": "Suspended", "status": "False"},
                {
                    "type": "Available",
                    "status": "True",
                    "reason": "r",
                    "message": "m",
                    "lastTransitionTime": STAMP,
                },
            ]
        },
    }
    note = Note(OURS, final=True, row="R", status="True", reason="r")

    assert Standing(Job("u"), "7", "True", "r", "m", STAMP, note) == read_standing(
        job, "Available", note
    )
    assert Standing(Job("u"), "7") == read_standing(job, "Other", None)


@pytest.mark.parametrize(
    ("shown", "said", "again"),
    [
        ({}, ("True", "r"), True),
        ({}, (), True),
        ({"status": "Unknown", "reason": "r"}, ("True", "r"), True),
        ({"status": "True", "reason": "other"}, ("True", "r"), True),
        ({"status": "True", "reason": "r", "message": "other"}, ("True", "r"), False),
        ({"status": "True", "reason": "r"}, (), True),
    ],
)
def test_a_final_annotation_without_its_condition_is_no_final_verdict(shown, said, again):
    """Something removes or changes the condition: it is written again."""
    conditions = [{"type": "Available", **shown}] if shown else []
    note = Note(OURS, True, "R", *said)
    stands = read_standing({"status": {"conditions": conditions}}, "Available", note)

    assert again is worth_writing(stands, OURS, DONE, final=True)
