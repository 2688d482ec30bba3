"""The annotation: what is written fits the published schema and 4 KiB, and is read back."""

import json
from dataclasses import replace

import pytest
from jsonschema import Draft202012Validator

from reporter.common.schema import load
from reporter.verdict import rows
from reporter.verdict.condition import (
    SIZE_LIMIT,
    Attempt,
    Note,
    Statement,
    amend,
    decode_note,
    encode_annotation,
)
from reporter.verdict.evidence import contradiction, evidence, late
from reporter.verdict.facts import (
    Blocker,
    Container,
    Disruption,
    FileInvalid,
    Job,
    ResultPayload,
    Terminated,
)
from reporter.verdict.rows import Report, Row
from tests.situations import (
    OOM,
    PULLING,
    at,
    deleted,
    ended,
    observed,
    pod,
    running,
    valid,
)

SCHEMA = load("verdict.v1")
ATTEMPT = Attempt("job-x7k2p", "pod-uid", at(-1), at(0), at(1), 2)
DONE = Report("R", "True", "AllChecked", "12 of 12")
SAID = 'a "quoted" \\ text ' * 40
LOUD = Container("init", Terminated(137, SAID, SAID, at(1), at(2), 9), ended(1, SAID, SAID), 3)

RUNS = observed((3, pod(running()), valid()), job=Job())
CROWDED = observed(
    (
        11,
        deleted(
            pod(
                Terminated(137, SAID, SAID, at(1), at(2), 9),
                last=Terminated(137, SAID, SAID, at(1), at(2), 9),
                phase=SAID,
                reason=SAID,
                misfit=SAID,
                disruption=Disruption(SAID, SAID),
                blocker=Blocker(LOUD, for_good=False),
            )
        ),
        FileInvalid(SAID, valid().identity),
    ),
    job=Job("u", at(0), 600.0, failure=SAID),
)


def written(o, report=DONE, *, final=True, after=None, attempt=ATTEMPT):
    """The annotation's value, with what was added later."""
    value = encode_annotation(Statement(report, final, attempt, evidence(o, at(o.now)), 0.0))
    return value if after is None else amend(value, "after", after)


def test_the_schema_is_one():
    """Valid itself, with a valid example, under its published name."""
    Draft202012Validator.check_schema(SCHEMA)

    assert "https://status-reporter.io/schemas/verdict.v1.json" == SCHEMA["$id"]
    (example,) = SCHEMA["examples"]
    assert [] == list(Draft202012Validator(SCHEMA).iter_errors(example))
    assert set(Row) == set(SCHEMA["properties"]["rule"]["enum"])


def test_the_annotation_to_the_letter():
    """Compact JSON in a fixed order."""
    assert (
        '{"version":1,"final":false,"status":"Unknown","reason":"AdapterRunning","rule":"A",'
        '"attempt":{"pod":"job-x7k2p","podUID":"pod-uid",'
        '"podCreatedAt":"2026-01-02T03:04:04Z","waitingSince":"2026-01-02T03:04:05Z",'
        '"adapterStartedAt":"2026-01-02T03:04:06Z","adapterRestarts":2},"evidence":{"file":{}}}'
    ) == encode_annotation(
        Statement(Report("A", "Unknown", "AdapterRunning", "m"), False, ATTEMPT, {"file": {}}, 0.0)
    )


def test_what_the_end_said_later():
    """A good verdict given while the adapter ran, and the OOM kill after it."""
    value = written(RUNS, after=contradiction("R", "True", OOM))

    assert {
        "exitCode": 137,
        "reason": "OOMKilled",
        "startedAt": "2026-01-02T03:04:06Z",
        "finishedAt": "2026-01-02T03:04:15Z",
    } == json.loads(value)["after"]
    assert decode_note(value).amended


def test_what_a_later_version_wrote_is_kept_when_something_is_added():
    """Only `after` is new."""
    value = written(RUNS)
    stands = json.loads(value) | {"later": [1, 2]}

    added = json.loads(amend(json.dumps(stands), "after", {"exitCode": 1}))

    assert stands | {"after": {"exitCode": 1}} == added


def test_a_result_that_came_after_the_timeout():
    value = amend(
        written(RUNS, rows.timeout(300)),
        "late",
        late(ResultPayload(True, "A", SAID), at(90)),
    )

    assert ("True", "A") == (
        json.loads(value)["late"]["status"],
        json.loads(value)["late"]["reason"],
    )
    assert decode_note(value).amended


@pytest.mark.parametrize(("state", "expected"), [(running(), False), (PULLING, False), (OOM, True)])
def test_whether_the_evidence_shows_the_adapters_end_is_read_back(state, expected):
    """Where it does there is nothing to add later."""
    assert expected == decode_note(written(observed((11, pod(state))))).ended


def test_evidence_that_does_not_fit_is_left_out():
    """4 KiB are kept to; whose verdict it is and whether it is final is never lost."""
    after = contradiction("R", "True", Terminated(1, SAID, SAID, at(1), at(2)))

    value = written(CROWDED, after=after)

    assert {"observedAt": "2026-01-02T03:04:16Z", "omitted": True} == json.loads(value)["evidence"]
    assert len(value.encode()) <= SIZE_LIMIT
    assert Note(ATTEMPT, True, "R", DONE.status, DONE.reason, amended=True) == decode_note(value)


@pytest.mark.parametrize(
    "attempt",
    [
        ATTEMPT,
        Attempt("job-x7k2p", "", None, at(0)),
        Attempt("job-x7k2p", "pod-uid", at(-1), at(0), None, 0),
        Attempt("job-x7k2p", "pod-uid", at(-1), at(0), None, 0, index=0),
    ],
)
def test_what_was_written_is_read_back(attempt):
    """Also where the Pod could not be read and the adapter has not started."""
    value = written(RUNS, final=False, attempt=attempt)

    assert Note(attempt, False, "R", DONE.status, DONE.reason) == decode_note(value)


def test_times_are_read_back_in_whole_seconds():
    """The API stores no more, and the order of attempts needs no more."""
    note = decode_note(written(RUNS, attempt=replace(ATTEMPT, waiting_since_at=at(0.9))))

    assert at(0) == note.attempt.waiting_since_at


def test_a_name_that_is_no_text_does_not_end_the_reporter():
    """An environment variable can hold bytes that are no UTF-8."""
    value = written(RUNS, attempt=replace(ATTEMPT, pod="job-\udcff"))

    assert "job-\udcff" == json.loads(value)["attempt"]["pod"]


GOOD_NOTE = {
    "version": 1,
    "final": True,
    "rule": "R",
    "attempt": {"pod": "p", "waitingSince": "2026-01-02T03:04:05Z", "adapterRestarts": 0},
}


NO_NOTES = {
    "empty": "",
    "cut": "{",
    "nested without end": "[" * 100_000,
    "a list": "[]",
    "null": "null",
    "a number without end": "1" * 5000,
    "nothing in it": "{}",
    "final is no boolean": json.dumps(GOOD_NOTE | {"final": "yes"}),
    "final is a number": json.dumps(GOOD_NOTE | {"final": 1}),
    "no attempt": json.dumps(GOOD_NOTE | {"attempt": []}),
    "no Pod": json.dumps(GOOD_NOTE | {"attempt": GOOD_NOTE["attempt"] | {"pod": ""}}),
    "no anchor": json.dumps(GOOD_NOTE | {"attempt": {"pod": "p", "waitingSince": "soon"}}),
}


@pytest.mark.parametrize("value", NO_NOTES.values(), ids=NO_NOTES)
def test_an_annotation_that_does_not_fit_is_none(value):
    """Somebody else wrote it, or a hand."""
    assert decode_note(value) is None


def test_what_is_missing_in_an_annotation_is_unknown():
    """Only whose it is and whether it is final is needed."""
    assert Note(Attempt("p", "", None, at(0)), final=True, row="R") == decode_note(
        json.dumps(GOOD_NOTE)
    )


def test_members_of_a_later_version_are_ignored():
    """A newer reporter's annotation still tells whose it is."""
    note = GOOD_NOTE | {"version": 1, "later": [1, 2, 3]}

    assert decode_note(json.dumps(GOOD_NOTE)) == decode_note(json.dumps(note))
