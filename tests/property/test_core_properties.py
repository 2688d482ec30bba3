"""Laws of the decisions: they never raise, keep their word, and care for no order of arrival."""

import copy
import json
from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from reporter.core.case import Case, Observation, Policy
from reporter.core.condition import (
    Attempt,
    build_patch,
    read_job,
    read_standing,
    worth_writing,
)
from reporter.core.evidence import evidence
from reporter.core.facts import (
    Blocker,
    Container,
    Disruption,
    Form,
    Job,
    Pod,
    PodGone,
    PodNeverSeen,
    PodRefused,
    PodSeen,
    PodUnknown,
    RestartPolicy,
    RestartRule,
    Running,
    Terminated,
    Waiting,
)
from reporter.core.memory import EndedRun, Memory, attributed, remember
from reporter.core.objects import epoch, stamp
from reporter.core.payloads import (
    FileAbsent,
    FileIdentity,
    FileInvalid,
    FileValid,
    Progress,
    ResultPayload,
    Searched,
)
from reporter.core.pod import Names, find_adapter, read_pod
from reporter.core.retry import next_delay
from reporter.core.rows import REASONS, Report
from reporter.core.text import clean
from reporter.core.trouble import AT_ONCE, CONFIG, IMAGE, START, Trouble
from reporter.core.verdict import Pending, Settled, decide, nothing_more, restartable, stays
from reporter.wire.annotation import SIZE_LIMIT, decode_note, encode_note
from reporter.wire.schema import load
from tests.fakekube.merge import merge_conditions
from tests.situations import at, deleted, ended, invalid, observed, pod, running, valid, verdict

# Values of every fact, ordinary ones often, extreme ones too.

INT64 = st.integers(-(2**63), 2**63 - 1)
reals = st.floats(-(2.0**63), 2.0**63, allow_nan=False)
texts = st.sampled_from(["", "Error", "OOMKilled"]) | st.text(
    st.characters(codec=None, exclude_categories=()), max_size=40
)
moments = st.none() | st.integers(-5, 60).map(at) | st.floats(1, 2.0**40)
seconds = st.integers(-5, 400).map(float) | reals
reasons = st.sampled_from(
    [*sorted(IMAGE | CONFIG | START | AT_ONCE), "CrashLoopBackOff", "PodInitializing", ""]
)
runs = st.builds(
    Terminated,
    exit_code=st.sampled_from([0, 1, 137]) | INT64,
    reason=st.sampled_from(["Completed", "OOMKilled", "StartError", "ContainerStatusUnknown"])
    | texts,
    message=texts,
    started_at=moments,
    finished_at=moments,
    signal=INT64,
)
states = st.builds(Waiting, reasons | texts, texts) | st.builds(Running, moments) | runs
containers = st.builds(
    Container, name=texts, state=states, last=st.none() | runs, restarts=st.integers(0, 3) | INT64
)
policies = st.builds(
    RestartPolicy,
    st.sampled_from(["Never", "OnFailure", "Always", ""]),
    st.lists(
        st.builds(RestartRule, st.frozensets(st.sampled_from([0, 1, 137])), among=st.booleans()),
        max_size=2,
    ).map(tuple),
)
pods = st.builds(
    Pod,
    name=texts,
    uid=texts,
    created_at=moments,
    started_at=moments,
    phase=st.sampled_from(["", "Pending", "Running", "Succeeded", "Failed"]),
    reason=st.sampled_from(["", "Evicted", "DeadlineExceeded"]) | texts,
    message=texts,
    form=st.none() | st.sampled_from(Form),
    adapter=st.none() | containers,
    misfit=texts,
    restart=policies,
    own_restart=policies,
    own_restarts=st.none() | st.integers(0, 3) | INT64,
    own_volume=st.booleans(),
    blocker=st.none() | st.builds(Blocker, containers, for_good=st.booleans()),
    disruption=st.none() | st.builds(Disruption, texts, texts, st.booleans()),
    deletion_requested_at=st.none() | moments | reals,
    deletion_grace=st.none() | seconds,
    grace=seconds,
    deadline=st.none() | seconds,
    failing_at=moments,
)
looks = st.one_of(
    st.builds(PodSeen, pods, st.booleans()),
    st.builds(PodGone, pods),
    st.sampled_from([PodUnknown(), PodRefused(), PodNeverSeen()]),
)
identities = st.builds(
    FileIdentity,
    st.integers(0, 3),
    INT64,
    st.integers(-(10**30), 10**30),
    st.integers(-5, 60).map(lambda second: int(at(second)) * 10**9)
    | st.integers(-(10**30), 10**30),
)
results = st.builds(
    ResultPayload,
    st.booleans(),
    texts.map(lambda text: clean(text, 128, "NoReasonProvided")),
    texts.map(lambda text: clean(text, 1024, "No message provided")),
)
files = st.one_of(
    st.just(FileAbsent()),
    st.builds(FileInvalid, texts, st.none() | identities),
    st.builds(FileValid, results, identities),
)
jobs = st.builds(
    Job,
    uid=texts,
    started_at=moments,
    deadline=st.none() | seconds,
    suspended=st.booleans(),
    deleting=st.booleans(),
    failure=st.sampled_from(["", "BackoffLimitExceeded", "DeadlineExceeded"]) | texts,
)
memories = st.builds(
    Memory,
    waiting_since=seconds,
    waiting_since_at=st.floats(1, 2.0**40),
    first_started=st.none() | seconds,
    first_started_at=moments,
    trouble=st.none()
    | st.builds(
        Trouble,
        st.sampled_from(["W1", "W2", "W3"]),
        texts.map(lambda text: f"a: {text}"),
        st.booleans(),
    ),
    trouble_since=seconds,
    last_run=st.none() | st.builds(EndedRun, runs, INT64, files),
    last_pod=st.none() | pods,
    taken_away_since=st.none() | seconds,
    away=st.booleans(),
    returned=st.none() | seconds,
)
progress = st.builds(
    Progress,
    texts,
    st.none() | INT64,
    st.none() | INT64,
    st.lists(texts, max_size=2).map(tuple),
    st.lists(texts, max_size=2).map(tuple),
)
observations = st.builds(
    Observation,
    now=seconds,
    pod=looks,
    file=files,
    memory=memories,
    job=st.none() | jobs,
    progress=st.none() | progress,
    stopping_since=st.none() | seconds,
    searched=st.none() | st.builds(Searched, texts, st.lists(texts, max_size=3).map(tuple)),
)
settings_of_users = st.builds(
    Policy,
    wait=st.integers(1, 10**9).map(float),
    result_required=st.booleans(),
    at_exit=st.booleans(),
    form=st.none() | st.sampled_from(Form),
)
ROWS = {"R", "X", *REASONS}
SCHEMA = Draft202012Validator(load("verdict.v1"))


@given(observations, settings_of_users)
def test_every_observation_has_a_verdict(o, policy):
    """`decide` never raises, and what it says can be written as it stands."""
    said = decide(o, policy)

    if isinstance(said, Pending):
        assert o.stopping_since is not None
        assert said.next_look > o.now
        return
    report = said.report
    assert report.row in ROWS
    assert report.status in {"True", "False", "Unknown"}
    assert 1 <= len(report.reason.encode()) <= 128
    assert 1 <= len(report.message.encode()) <= 1024
    assert isinstance(said, Settled) or said.next_look > o.now


@given(observations, settings_of_users, st.floats(0, 2.0**40))
def test_settled_stays_settled_when_only_time_passes(o, policy, passing):
    """No clock alone takes a final verdict back."""
    said = decide(o, policy)

    if isinstance(said, Settled):
        assert said == decide(replace(o, now=o.now + passing), policy)


@given(observations, settings_of_users)
def test_nothing_changes_before_the_next_look(o, policy):
    """`next_look` misses no moment at which time alone changes the verdict."""
    said = decide(o, policy)

    if not isinstance(said, Settled) and said.next_look < float("inf"):
        between = decide(replace(o, now=o.now + (said.next_look - o.now) / 2), policy)
        if isinstance(said, Pending):
            assert isinstance(between, Pending)
        else:
            assert said.report == between.report


@given(observations, settings_of_users)
def test_the_times_after_sigterm_are_in_order(o, policy):
    """First the API is no longer asked, or the adapter no longer heard, then the reporter ends."""
    case = Case(o, policy)
    stays(o, policy), restartable(o), nothing_more(o, policy)

    if o.stopping_since is not None:
        assert case.stop_deadline >= o.stopping_since
        assert case.hear_until <= case.stop_deadline
        assert case.poll_until <= case.stop_deadline


@given(observations, st.integers(-(2**40), 2**40), st.sampled_from(sorted(ROWS)), st.booleans())
def test_every_observation_makes_an_annotation(o, wall, row, final):
    """At most 4 KiB, fit for the published schema, and read back as it was."""
    adapter = Attempt("job-x7k2p", "pod-uid", at(-1), at(0), at(1), 2)
    report = Report(row, "True", "r", "m")

    value = encode_note(adapter, report, evidence(o, wall), final=final)

    assert len(value.encode()) <= SIZE_LIMIT
    assert [] == list(SCHEMA.iter_errors(json.loads(value)))
    note = decode_note(value)
    assert (adapter, row, final) == (note.attempt, note.row, note.final)


@given(memories, seconds, st.floats(1, 2.0**40), looks, files)
def test_remembering_the_same_look_twice_changes_nothing(memory, now, wall, look, file):
    """The loop may look as often as it likes."""
    once = remember(memory, now, wall, look, file)
    twice = remember(once, now, wall, look, file)

    assert once == twice
    assert attributed(file, look, once) == attributed(file, look, twice)


@given(memories, looks, files)
def test_a_file_counts_as_it_is_or_not_at_all(memory, look, file):
    """Attribution never changes a file."""
    assert attributed(file, look, memory) in {file, FileAbsent()}


@given(
    st.integers(0, 10**9),
    st.floats(0, 1, exclude_max=True),
    st.none() | st.floats(-1, 10**6),
    st.none() | st.floats(-1, 10**6),
)
def test_a_delay_is_never_negative_nor_beyond_the_end(attempt, roll, retry_after, remaining):
    """Whatever was asked for."""
    delay = next_delay(attempt, lambda: roll, retry_after=retry_after, remaining=remaining)

    if remaining is not None and remaining <= 0:
        assert delay is None
    else:
        assert 0 <= delay <= 30
        assert remaining is None or delay <= remaining


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
    return verdict(observed(*made, job=known, stopped=stopped))


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
    memory = remember(Memory(0.0, at(0)), 9.0, at(9), look, file)
    read_standing(job, "Available", None)
    o = Observation(9.0, look, attributed(file, look, memory), memory, read_job(job))

    said = decide(o, policy)

    assert len(encode_note(ATTEMPT, said.report, evidence(o, at(9)), final=True)) <= SIZE_LIMIT


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
    note = encode_note(ATTEMPT, report, {}, final=final)
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
