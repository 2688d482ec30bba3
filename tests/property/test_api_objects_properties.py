"""Laws of what comes from the API: garbage ends no reporter, what was written is read back."""

import copy
import json
from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reporter.common.objects import epoch, stamp
from reporter.common.text import clean
from reporter.verdict.case import Observation
from reporter.verdict.condition import (
    SIZE_LIMIT,
    Attempt,
    Statement,
    build_patch,
    decode_note,
    encode_annotation,
    read_job,
    read_standing,
    worth_writing,
)
from reporter.verdict.decide import Pending, decide
from reporter.verdict.evidence import evidence
from reporter.verdict.facts import Disruption, FileAbsent, Job, PodSeen
from reporter.verdict.history import History, attributed, remember
from reporter.verdict.pod import Names, find_adapter, read_pod
from reporter.verdict.rows import Report
from tests.fakekube.merge import merge_conditions
from tests.property.facts import ROWS, files, settings_of_users, texts
from tests.saying import said
from tests.situations import at, deleted, ended, invalid, observed, pod, running, valid

# Facts in every order of arrival.


FACTS = {
    "ended": lambda shown: replace(shown, adapter=pod(ended(1, start=1, end=15)).adapter),
    "deletion": lambda shown: deleted(shown, 20),
    "given up": lambda shown: replace(shown, failing_at=at(20)),
    "disruption": lambda shown: replace(shown, disruption=Disruption("Evicted", "low on memory")),
    "file": None,
    "job": None,
}


def after(order, file, job, stopped):
    """The verdict when facts arrive in that order, a look after each."""
    shown, seen, known, made = pod(running()), FileAbsent(), None, []
    for fact in order:
        shown = FACTS[fact](shown) if FACTS[fact] else shown
        seen = file if fact == "file" else seen
        known = job if fact == "job" else known
        made.append((22, shown, seen))
    return said(observed(*made, job=known, stopped=stopped))


@pytest.mark.parametrize("stopped", [None, 21])
@pytest.mark.parametrize("job", [Job(failure="BackoffLimitExceeded"), Job("u", at(0), 20.0)])
@pytest.mark.parametrize("file", [valid(14), invalid(14)])
@pytest.mark.parametrize(
    "facts",
    [
        ("ended", "deletion", "file", "job"),
        ("ended", "given up", "file", "job"),
        ("ended", "deletion", "disruption", "file"),
        ("deletion", "disruption", "given up", "file", "job"),
    ],
)
def test_the_order_in_which_facts_arrive_does_not_matter(facts, file, job, stopped):
    """The last look has them all, whichever came first."""
    said = {after(order, file, job, stopped) for order in permutations(facts)}

    assert 1 == len(said)


# Arbitrary JSON where objects of the API are expected.

junk = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.integers(10**300, 10**400),
        st.floats(),
        texts,
        st.sampled_from(
            [
                "9999-12-31T23:59:59Z",
                "9999-12-31T23:59:59-23:59",
                "0001-01-01T00:00:00+23:59",
                "2026-01-02T03:04:05Z",
                "True",
                "Running",
                "Restart",
            ]
        ),
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


STAMP = "2026-01-02T03:04:05Z"


STATUS = {
    "name": "adapter",
    "restartCount": 1,
    "state": {"running": {"startedAt": STAMP}},
    "lastState": {
        "terminated": {
            "exitCode": 1,
            "signal": 9,
            "reason": "Error",
            "message": "m",
            "startedAt": STAMP,
            "finishedAt": STAMP,
        }
    },
}


API_POD = {
    "metadata": {
        "name": "job-x7k2p",
        "uid": "u",
        "creationTimestamp": STAMP,
        "deletionTimestamp": STAMP,
        "deletionGracePeriodSeconds": 30,
        "labels": {"job-name": "job"},
        "annotations": {"kubectl.kubernetes.io/default-container": "adapter"},
    },
    "spec": {
        "restartPolicy": "OnFailure",
        "activeDeadlineSeconds": 600,
        "terminationGracePeriodSeconds": 30,
        "containers": [
            {
                "name": "adapter",
                "restartPolicy": "Never",
                "restartPolicyRules": [
                    {"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}
                ],
                "volumeMounts": [{"name": "results", "mountPath": "/results", "readOnly": False}],
            },
            {"name": "other", "volumeMounts": []},
        ],
        "initContainers": [
            {"name": "status-reporter", "restartPolicy": "Always"},
            {"name": "prepare"},
        ],
    },
    "status": {
        "phase": "Running",
        "reason": "r",
        "message": "m",
        "startTime": STAMP,
        "conditions": [
            {"type": "DisruptionTarget", "status": "True", "reason": "r", "message": "m"},
            {
                "type": "ContainersReady",
                "status": "False",
                "reason": "PodFailed",
                "lastTransitionTime": STAMP,
            },
        ],
        "containerStatuses": [STATUS],
        "initContainerStatuses": [{"name": "prepare", "state": {"terminated": {"exitCode": 6}}}],
    },
}


API_JOB = {
    "metadata": {"name": "job", "uid": "j", "resourceVersion": "41", "annotations": {}},
    "spec": {"activeDeadlineSeconds": 600, "parallelism": 1, "suspend": False},
    "status": {
        "startTime": STAMP,
        "conditions": [
            {"type": "Suspended", "status": "False", "lastTransitionTime": STAMP},
            {
                "type": "Available",
                "status": "True",
                "reason": "r",
                "message": "m",
                "lastProbeTime": STAMP,
                "lastTransitionTime": STAMP,
            },
            {"type": "FailureTarget", "status": "True", "reason": "BackoffLimitExceeded"},
        ],
    },
}


NOTE = {
    "version": 1,
    "final": True,
    "rule": "R",
    "attempt": {
        "pod": "job-x7k2p",
        "podUID": "u",
        "podCreatedAt": STAMP,
        "waitingSince": STAMP,
        "adapterStartedAt": STAMP,
        "adapterRestarts": 0,
    },
    "evidence": {},
}


def places(value, path=()):
    """Every place in a JSON value."""
    yield path
    inner = value.items() if isinstance(value, dict) else []
    inner = enumerate(value) if isinstance(value, list) else inner
    for key, one in inner:
        yield from places(one, (*path, key))


@st.composite
def damaged(draw, whole):
    """A good object with up to three places replaced by junk."""
    value = copy.deepcopy(whole)
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(sorted(places(value), key=str)))
        rubbish = draw(junk)
        if not path:
            return rubbish
        parent = value
        for key in path[:-1]:
            parent = parent[key]
        parent[path[-1]] = rubbish
    return value


@given(damaged(API_POD) | junk, damaged(API_JOB) | junk, files, settings_of_users)
def test_garbage_from_the_api_never_ends_the_reporter(shown, job, file, policy):
    """Read, remembered, judged and written down, whatever the API's objects hold."""
    find_adapter(shown, Names())
    look = PodSeen(read_pod(shown, Names()))
    history = remember(History(0.0, at(0)), 9.0, at(9), look, file)
    read_standing(job, "Available", None)
    o = Observation(9.0, look, attributed(file, look, history), history, read_job(job))

    said = decide(o, policy)

    if not isinstance(said, Pending):
        assert (
            len(encode_annotation(Statement(said.report, True, ATTEMPT, evidence(o, at(9)), 0.0)))
            <= SIZE_LIMIT
        )


@given(damaged(NOTE).map(json.dumps) | junk.map(json.dumps) | texts)
def test_garbage_in_the_annotation_is_none_or_a_note(value):
    """And a note that was read can be compared with any attempt."""
    note = decode_note(value)

    if note is not None:
        assert ATTEMPT.same(note.attempt) or (
            ATTEMPT.older_than(note.attempt) is not note.attempt.older_than(ATTEMPT)
        )


@given(texts | st.datetimes().map(lambda when: f"{when.isoformat()}Z"))
def test_times_are_read_or_not(value):
    """And what is read can be written again."""
    moment = epoch(value)

    assert moment is None or epoch(stamp(moment)) in {None, float(int(moment))}


@given(st.floats() | st.integers())
def test_any_number_is_written_as_a_time(value):
    """20 characters that the API takes."""
    assert 20 == len(stamp(value))


# What stands on the Job after a write.

ATTEMPT = Attempt("job-x7k2p", "u", at(-1), at(0.5), at(1.5), 2)


reports = st.builds(
    Report,
    st.sampled_from(sorted(ROWS)),
    st.sampled_from(["True", "False", "Unknown"]),
    texts.map(lambda text: clean(text, 128, "r")),
    texts.map(lambda text: clean(text, 1024, "m")),
)


def applied(job, patch):
    """The Job after our strategic merge patch, as the API server does it."""
    new = copy.deepcopy(job)
    new["metadata"]["annotations"] |= patch["metadata"]["annotations"]
    merged = merge_conditions(job["status"]["conditions"], patch["status"]["conditions"])
    return new | {"status": job["status"] | {"conditions": merged}}


def read(job):
    """What stands on a Job, and whose it is."""
    note = decode_note(job["metadata"]["annotations"].get("status-reporter.io/Available", ""))
    return read_standing(job, "Available", note)


@given(reports, st.booleans(), st.integers(0, 2**40), st.permutations(range(3)))
def test_a_report_that_was_written_is_not_written_again(report, final, now, order):
    """And every other condition is what it was, wherever it stood."""
    conditions = [API_JOB["status"]["conditions"][place] for place in order]
    job = API_JOB | {"status": {"conditions": conditions}}
    before = read(job)
    note = encode_annotation(Statement(report, final, ATTEMPT, {}, 0.0))
    assert worth_writing(before, ATTEMPT, report, final=final)

    after_it = applied(job, build_patch(before, "Available", report, note, now))

    assert not worth_writing(read(after_it), ATTEMPT, report, final=final)
    assert foreign(job) == foreign(after_it)
    (ours,) = [c for c in after_it["status"]["conditions"] if c["type"] == "Available"]
    kept = STAMP if report.status == "True" else stamp(now)
    assert {
        "type": "Available",
        "status": report.status,
        "reason": report.reason,
        "message": report.message,
        "lastProbeTime": stamp(now),
        "lastTransitionTime": kept,
    } == ours


def foreign(job):
    """The conditions that are not ours, in their order."""
    return [c for c in job["status"]["conditions"] if c["type"] != "Available"]
