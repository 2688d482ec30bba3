"""The evidence of a verdict: every fact a rule used, and nothing that is too long or unsafe."""

from dataclasses import replace

import pytest

from reporter.verdict.evidence import contradiction, evidence
from reporter.verdict.facts import (
    Blocker,
    Container,
    Disruption,
    FileIdentity,
    FileInvalid,
    FileValid,
    Job,
    PodGone,
    PodNeverSeen,
    PodRefused,
    PodSeen,
    PodUnknown,
    Running,
    Searched,
    Terminated,
    Waiting,
)
from tests.situations import (
    GOOD,
    ON_FAILURE,
    OOM,
    at,
    deleted,
    ended,
    invalid,
    later,
    observed,
    pod,
    running,
    valid,
)


def shown(o, part):
    """One part of the evidence."""
    return evidence(o, at(o.now)).get(part)


def test_the_end_of_the_adapters_log():
    """The kubelet takes it for the termination message; a traceback's last line is what counts."""
    frames = "".join(f'  File "check.py", line {at}, in f\n    f()\n' for at in range(200))
    message = f"Traceback (most recent call last):\n{frames}ValueError: no quota\n"
    o = observed((12.0, pod(Terminated(1, "Error", message))))

    assert "ValueError: no quota" == shown(o, "adapter")["message"]


def test_an_ended_adapter_without_a_file():
    """The whole of it, to the letter."""
    o = observed((12.3456, pod(ended(1))), job=Job(uid="u", started_at=at(-2)))

    assert {
        "observedAt": "2026-01-02T03:04:17Z",
        "file": {"state": "absent"},
        "pod": {"look": "seen", "phase": "Running", "restartPolicy": "Never", "form": "native"},
        "adapter": {
            "container": "adapter",
            "restarts": 0,
            "state": "terminated",
            "exitCode": 1,
            "reason": "Error",
            "startedAt": "2026-01-02T03:04:06Z",
            "finishedAt": "2026-01-02T03:04:15Z",
        },
        "job": {"startedAt": "2026-01-02T03:04:03Z"},
        "waitedSeconds": 11.346,
    } == evidence(o, at(o.now))


@pytest.mark.parametrize(
    ("look", "expected"),
    [
        (PodUnknown(), {"look": "unknown"}),
        (PodRefused(), {"look": "forbidden"}),
        (PodNeverSeen(), {"look": "neverSeen"}),
    ],
)
def test_a_pod_that_is_not_shown(look, expected):
    """Why the file alone decided."""
    o = observed((3, look))

    assert (expected, None, None) == (shown(o, "pod"), shown(o, "adapter"), shown(o, "job"))


def test_a_pod_that_has_gone_and_one_that_is_not_current():
    """What is shown then is the last answer."""
    gone = shown(observed((3, PodGone(pod()))), "pod")
    stale = shown(observed((3, PodSeen(pod(), current=False))), "pod")

    assert ("gone", None) == (gone["look"], gone.get("stale"))
    assert ("seen", True) == (stale["look"], stale["stale"])


def test_what_takes_a_pod_away():
    """Deletion, deadline, disruption, and who is in the way."""
    blocker = Blocker(Container("prepare", ended(6, start=0, end=1)), for_good=True)
    taken = deleted(
        pod(
            restart=ON_FAILURE,
            reason="Evicted",
            form=None,
            failing_at=at(2),
            deadline=600.0,
            disruption=Disruption("Evicted", "low on memory"),
            blocker=blocker,
            only_adapters_write=True,
        ),
        5,
    )

    assert {
        "look": "seen",
        "phase": "Running",
        "reason": "Evicted",
        "restartPolicy": "OnFailure",
        "ownVolume": True,
        "deletionRequestedAt": "2026-01-02T03:04:10Z",
        "failingAt": "2026-01-02T03:04:07Z",
        "activeDeadlineSeconds": 600.0,
        "disruption": "Evicted: low on memory",
        "blockedBy": {
            "container": "prepare",
            "restarts": 0,
            "state": "terminated",
            "exitCode": 6,
            "reason": "Error",
            "startedAt": "2026-01-02T03:04:05Z",
            "finishedAt": "2026-01-02T03:04:06Z",
        },
    } == shown(observed((6, taken)), "pod")


def test_a_misfit_has_no_adapter():
    """Which containers exist is the evidence."""
    o = observed((3, pod(adapter=None, misfit="'b' is not a container of the Pod")))

    assert "'b' is not a container of the Pod" == shown(o, "pod")["misfit"]
    assert shown(o, "adapter") is None


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (Running(), {"state": "running"}),
        (running(1), {"state": "running", "startedAt": "2026-01-02T03:04:06Z"}),
        (Waiting(), {"state": "waiting"}),
        (
            Waiting("ErrImagePull", "404"),
            {"state": "waiting", "reason": "ErrImagePull", "message": "404"},
        ),
        (
            Terminated(137, "Error"),
            {"state": "terminated", "exitCode": 137, "reason": "Error", "maybeOutOfMemory": True},
        ),
        (
            Terminated(137, "OOMKilled", "m", signal=9),
            {
                "state": "terminated",
                "exitCode": 137,
                "reason": "OOMKilled",
                "message": "m",
                "signal": 9,
            },
        ),
    ],
)
def test_the_adapters_state(state, expected):
    """Exit code 137 without the word may have been an OOM kill: said here, and only here."""
    o = observed((3, pod(state)))

    assert {"container": "adapter", "restarts": 0, **expected} == shown(o, "adapter")


def test_the_run_before():
    """Restarts and the last state."""
    o = observed((30, pod(running(20), last=ended(1), restarts=1)))

    assert {
        "container": "adapter",
        "restarts": 1,
        "state": "running",
        "startedAt": "2026-01-02T03:04:25Z",
        "last": {
            "exitCode": 1,
            "reason": "Error",
            "startedAt": "2026-01-02T03:04:06Z",
            "finishedAt": "2026-01-02T03:04:15Z",
        },
    } == shown(o, "adapter")
    assert shown(o, "lastEndedRun") is None


def test_the_remembered_run_where_the_api_shows_it_no_longer():
    """At the back-off limit the verdict rests on it."""
    first = pod(ended(1), restart=ON_FAILURE)
    second = deleted(pod(running(12), restarts=1, restart=ON_FAILURE), 13)
    expected = {
        "restarts": 0,
        "exitCode": 1,
        "reason": "Error",
        "startedAt": "2026-01-02T03:04:06Z",
        "finishedAt": "2026-01-02T03:04:15Z",
        "file": "valid",
        "resultReason": "AllChecked",
    }

    assert expected == shown(observed((11, first, valid(9)), (14, second)), "lastEndedRun")
    assert expected == shown(observed((11, first, valid(9)), (14, PodUnknown())), "lastEndedRun")


def test_trouble_and_its_age():
    """Rows W rest on how long it has lasted."""
    o = later(observed((3, pod(Waiting("ErrImagePull")))), 70.5)

    assert {"rule": "W1", "forSeconds": 67.5} == shown(o, "trouble")


def test_the_job():
    """Everything of it that a rule can have used."""
    job = Job("u", at(-2), 600.0, suspended=True, deleting=True, failure="DeadlineExceeded")

    assert {
        "startedAt": "2026-01-02T03:04:03Z",
        "activeDeadlineSeconds": 600.0,
        "suspended": True,
        "deleting": True,
        "failure": "DeadlineExceeded",
    } == shown(observed((3, pod()), job=job), "job")


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        (
            FileInvalid("the file is a symbolic link", None),
            {"state": "invalid", "cause": "the file is a symbolic link"},
        ),
        (
            invalid(2.5),
            {
                "state": "invalid",
                "cause": "the file is empty",
                "inode": 7,
                "size": 20,
                "mtime": "2026-01-02T03:04:07.500000000Z",
                "ctime": "2026-01-02T03:04:07.500000000Z",
            },
        ),
        (
            FileValid(GOOD, FileIdentity(1, 2, 10**29, 10**18 * 2)),
            {
                "state": "valid",
                "resultReason": "AllChecked",
                "inode": 1,
                "size": 2,
                "mtime": "9999-12-31T23:59:59.000000000Z",
                "ctime": "2033-05-18T03:33:20.000000000Z",
            },
        ),
    ],
)
def test_the_file(file, expected):
    """Which state of which file; never its content. Its times can be anything."""
    assert expected == shown(observed((3, PodRefused(), file)), "file")


def test_where_the_file_was_looked_for():
    """What lies there instead; a name of which nothing can be shown is left out."""
    o = replace(observed((11, pod(ended(0)))), searched=Searched("/results/a", ("b", "\x1b")))

    assert {"state": "absent", "path": "/results/a", "beside": ["b"]} == shown(o, "file")
    empty = replace(o, searched=Searched("/results/a"))
    assert {"state": "absent", "path": "/results/a"} == shown(empty, "file")


def test_how_long_was_waited():
    """From the adapter's first start, before that from our own; and since our SIGTERM."""
    started = replace(observed((9, pod(running(5)))), stopping_since=8.5)

    assert (9.0, None) == (
        shown(observed((9, pod())), "waitedSeconds"),
        shown(observed((9, pod())), "stoppedForSeconds"),
    )
    assert (4.0, 0.5) == (shown(started, "waitedSeconds"), shown(started, "stoppedForSeconds"))


def test_text_from_outside_is_short_and_safe():
    """160 bytes of each, without control characters."""
    said = Waiting("ErrImagePull", "\x1b[31m" + "ä" * 500)

    assert "[31m" + "ä" * 78 == shown(observed((3, pod(said))), "adapter")["message"]


@pytest.mark.parametrize(
    ("row", "status", "run", "expected"),
    [
        ("R", "True", ended(0), None),
        ("R", "True", ended(1), 1),
        ("R", "True", OOM, 137),
        ("R", "True", ended(0, "OOMKilled"), 0),
        ("R", "False", ended(1), None),
        ("S", "True", ended(1), None),
    ],
)
def test_what_contradicts_a_good_verdict(row, status, run, expected):
    """An end that does not fit the adapter's own word."""
    after = contradiction(row, status, run)

    assert expected == (after and after["exitCode"])
