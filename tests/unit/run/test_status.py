"""The run as `/status` shows it."""

import json
from dataclasses import replace

import pytest

from reporter.run.entry import Entry, Window, receive, silence
from reporter.run.entry import fail as failed
from reporter.run.heartbeats import Beat
from reporter.run.plan import GLOBAL, Key, Plan, Plugin
from reporter.run.record import Cause
from reporter.run.state import LauncherState, LauncherTrouble, Phase, PodState, Step, Tar
from reporter.run.status import entry_document
from reporter.run.tar_upload import TarUpload, UploadState
from tests.tables import table
from tests.unit.run.world import (
    E2E,
    EVICTED,
    FAILED,
    KILLED,
    NODE1,
    NODE2,
    PASSED,
    RESULT,
    START,
    UNREADABLE,
    UNSENT,
    WORKER_ERROR,
    ours,
    sent,
    snapshot,
    status_document,
)

MONO = 5_000.0
SYSTEMD = Key("systemd", "node1")
SAMPLE = Plan("run-1", (Plugin("systemd", ("node1",)), Plugin("e2e")))


def shown(run):
    """The document as it goes out, through JSON."""
    return json.loads(json.dumps(status_document(run, now=START, mono=MONO)))


def entry(run, key=E2E, **more):
    """One entry of the list."""
    return entry_document(run, key, now=START, mono=MONO, full=False, **more)


def test_the_first_sample_of_the_proposal():
    """K14: one complete, one running; its fields keep their spelling."""
    run = snapshot(
        {SYSTEMD: RESULT},
        plan=SAMPLE,
        beats={SYSTEMD: Beat(MONO - 3.9, True), E2E: Beat(MONO - 17.2, True)},
    )
    document = shown(run)
    expected = [
        {"name": "systemd", "node": "node1", "status": "complete", "last-heartbeat": 3},
        {"name": "e2e", "node": "", "status": "running", "last-heartbeat": 17},
    ]
    names = ("name", "node", "status", "last-heartbeat")
    assert expected == [{name: each[name] for name in names} for each in document["plugins"]]
    del document["plugins"]
    assert {
        "status": "running",
        "percent_complete": 0.5,
        "plugins_reported": 0.5,
        "counts": {"entries": 2, "decided": 1, "received": 1, "failed": 0, "unknown": 0},
        "api_version": "v1",
        "run": "run-1",
        "revision": 42,
        "time": "2026-01-01T00:00:00.000000Z",
        "final": False,
        "result_status": "",
        "result_counts": None,
        "error": None,
        "tar-info": None,
        "retrieved_at": None,
        "upload": None,
        "launcher": None,
        "skipped": [],
        "display": {
            "state": "running",
            "headline": "running",
            "summary": "1 of 2 done (50%)",
            "percent": 50,
            "problems": [],
        },
    } == document


def test_the_second_sample_of_the_proposal():
    """K14: e2e silent for 200 s has timed out; the run has failed and is not final."""
    lost, _ = failed(Entry(E2E), silence(START, 200.0), closed=False)
    run = snapshot(
        plan=SAMPLE,
        entries={E2E: lost},
        beats={SYSTEMD: Beat(MONO - 17, True), E2E: Beat(MONO - 200, True)},
    )
    document = shown(run)
    assert [("running", 17, False), ("timed_out", 200, False)] == [
        (each["status"], each["last-heartbeat"], each["stale"]) for each in document["plugins"]
    ]
    assert ("failed", 0.5, False) == tuple(
        document[name] for name in ("status", "percent_complete", "final")
    )


def test_an_entry_that_nobody_has_heard_of():
    """K1: every field is there."""
    assert {
        "name": "e2e",
        "node": "",
        "status": "running",
        "last-heartbeat": None,
        "key": "e2e/global",
        "result_status": "",
        "result_counts": None,
        "reason": "",
        "message": "",
        "stale": False,
        "late": False,
        "retry_until": None,
        "attempts": 0,
        "received_at": None,
        "digest": None,
        "bytes": None,
        "notes": 0,
        "metadata": None,
        "error": None,
        "progress": None,
        "pod": None,
        "display": {"state": "running", "progress": "", "detail": ""},
    } == entry(snapshot())


def test_a_result_that_came_late():
    """A31: complete, what was received, and no error."""
    late, _ = receive(Entry(E2E, ours(Cause.DEADLINE)), RESULT, closed=False)
    document = entry(snapshot(entries={E2E: late}))
    expected = {
        "status": "complete",
        "late": True,
        "received_at": "2026-01-01T00:00:05.000000Z",
        "digest": "ab" * 32,
        "bytes": 3,
        "notes": 1,
        "error": None,
        "result_status": "",
    }
    assert expected == {name: document[name] for name in expected}


@table(
    ("record", "expected"),
    {
        "passed": (PASSED, ("complete", "passed", {"passed": 1}, "AllGood", "fine")),
        "the check failed": (
            FAILED,
            ("complete", "failed", {"failed": 1}, "DiskSlow", "fsync takes 80 ms"),
        ),
        "not what it says it is": (
            UNREADABLE,
            ("complete", "unknown", {"unknown": 1}, "InvalidResultFormat", "no object"),
        ),
        "the sidecar's own verdict": (
            KILLED,
            ("failed", "failed", {"failed": 1}, "AdapterOOMKilled", "out of memory"),
        ),
        "the sidecar cannot tell": (
            EVICTED,
            ("failed", "unknown", {"unknown": 1}, "AdapterEvicted", "node drained"),
        ),
        "not judged yet": (RESULT, ("complete", "", None, "", "")),
        "a report with many tests": (
            replace(FAILED, counts={"passed": 8, "failed": 2}),
            ("complete", "failed", {"passed": 8, "failed": 2}, "DiskSlow", FAILED.message),
        ),
        "the aggregator's own": (ours(Cause.HEARTBEAT), ("timed_out", "timeout", None, "", "")),
    },
)
def test_the_verdict_on_an_entry(record, expected):
    """As soon as the result is in; reason and message are the worker's."""
    document = entry(snapshot({E2E: record}))
    names = ("status", "result_status", "result_counts", "reason", "message")
    assert expected == tuple(document[name] for name in names)


@table(
    ("records", "expected"),
    {
        "everything is open": ({}, ""),
        "one is open, none failed": ({E2E: PASSED, NODE1: UNREADABLE}, ""),
        "one failed, at once": ({E2E: FAILED}, "failed"),
        "one is missing": ({E2E: ours()}, "failed"),
        "one timed out": ({E2E: ours(Cause.DEADLINE)}, "failed"),
        "a sidecar's verdict": ({E2E: KILLED}, "failed"),
        "one is missing that passed": ({E2E: UNSENT}, "failed"),
        "all passed": ({E2E: PASSED, NODE1: PASSED, NODE2: PASSED}, "passed"),
        "one unknown": ({E2E: PASSED, NODE1: EVICTED, NODE2: PASSED}, "unknown"),
        "one is being judged": ({E2E: PASSED, NODE1: RESULT, NODE2: PASSED}, ""),
        "failed is worst": ({E2E: FAILED, NODE1: EVICTED, NODE2: RESULT}, "failed"),
    },
)
def test_the_verdict_on_the_run(records, expected):
    """Failed at once, else nothing before the end."""
    assert expected == shown(snapshot(records))["result_status"]


def test_a_result_that_never_came_is_counted_as_failed_whatever_it_said():
    """Its Job has its verdict; the run has not passed without it."""
    document = shown(snapshot({E2E: PASSED, NODE1: PASSED, NODE2: UNSENT}))

    assert ("failed", "failed") == (document["status"], document["result_status"])
    expected = {"entries": 3, "decided": 3, "received": 2, "failed": 1, "unknown": 0}
    assert expected == document["counts"]
    assert "passed" == entry(snapshot({E2E: UNSENT}))["result_status"]


def test_the_tests_of_a_run():
    """All that are counted so far, whoever counts them; an error of ours has no tests."""
    many = replace(FAILED, counts={"passed": 8, "failed": 2})
    found = snapshot({E2E: many, NODE1: PASSED, NODE2: ours()})
    assert {"passed": 9, "failed": 2} == shown(found)["result_counts"]
    assert {"worn": 3} == shown(replace(found, tests={"worn": 3}))["result_counts"]
    assert shown(snapshot({NODE1: RESULT}))["result_counts"] is None


def test_a_result_that_was_never_judged_did_not_pass():
    """A run that is over waits for nobody."""
    found = snapshot({E2E: PASSED, NODE1: RESULT, NODE2: PASSED}, phase=Phase.CLOSED)
    assert "unknown" == shown(found)["result_status"]


def test_a_run_without_entries_has_no_verdict():
    """Nothing was judged, and everything is reported."""
    document = shown(snapshot(plan=Plan("r", ())))
    assert ("unknown", 1.0) == (document["result_status"], document["plugins_reported"])


def test_what_is_decided_and_what_has_reported():
    """An entry that was given up is decided without a result."""
    document = shown(snapshot({E2E: FAILED, NODE1: ours()}))
    assert (0.6666, 0.3333) == (document["percent_complete"], document["plugins_reported"])


def test_an_empty_result_has_no_bytes_but_a_digest():
    """A16: zero is a size."""
    assert 0 == entry(snapshot({E2E: replace(RESULT, size=0)}))["bytes"]


@table(
    ("record", "error", "received", "verdict"),
    {
        "the worker's own": (
            replace(WORKER_ERROR, reason="terminated"),
            {"cause": "worker_error", "reason": "terminated", "text": "boom"},
            "2026-01-01T00:00:06.000000Z",
            "failed",
        ),
        "ours": (
            ours(),
            {"cause": "pod_failed", "reason": "", "text": "the pod is gone"},
            None,
            "failed",
        ),
        "a timeout": (
            ours(Cause.DEADLINE, text="late"),
            {"cause": "deadline", "reason": "", "text": "late"},
            None,
            "timeout",
        ),
        "a long text, no cause": (
            ours(None, text="é" * 1_000),
            {"cause": "", "reason": "", "text": "é" * 512},
            None,
            "failed",
        ),
    },
)
def test_an_error(record, error, received, verdict):
    """Cause, the worker's own word for it, and the text, cut; the verdict once it is over."""
    document = entry(snapshot({E2E: record}, phase=Phase.CLOSED))
    assert (error, received, verdict) == (
        document["error"],
        document["received_at"],
        document["result_status"],
    )


def test_an_entry_that_may_try_again():
    """Running; until when, and how often it has failed."""
    document = entry(
        snapshot(entries={E2E: Entry(E2E, window=Window(START, START + 120, "cut"), attempts=2)})
    )
    assert ("running", "2026-01-01T00:02:00.000000Z", 2) == (
        document["status"],
        document["retry_until"],
        document["attempts"],
    )


@pytest.mark.parametrize(
    ("silent", "interval", "expected"),
    [(44.0, 15.0, False), (45.0, 15.0, True), (45.0, 20.0, False)],
)
def test_a_running_entry_may_be_stale(silent, interval, expected):
    """A52: after three intervals; a setting says how long one is."""
    run = snapshot(beats={E2E: Beat(MONO - silent, True)})
    assert expected is entry(run, interval=interval)["stale"]
    document = status_document(run, now=START, mono=MONO, interval=interval)
    assert expected is document["plugins"][0]["stale"]


def test_a_complete_entry_is_never_stale():
    """Its worker has gone home."""
    assert False is entry(snapshot({E2E: RESULT}, beats={E2E: Beat(0.0, True)}))["stale"]


def test_progress_under_our_names_and_our_time():
    """A24: key and time of arrival, whatever the plugin wrote; empty lists are left out."""
    run = snapshot(progress={NODE1: sent(msg="m", total=5, completed=1)})
    assert {
        "name": "sysd",
        "node": "node1",
        "timestamp": "2026-01-01T00:00:01.000000Z",
        "msg": "m",
        "total": 5,
        "completed": 1,
        "errors_total": 0,
        "failures_total": 0,
    } == entry(run, NODE1)["progress"]


def test_the_list_shows_twenty_failures_and_the_detail_all():
    """The true counts are in both."""
    names = tuple(f"f{n}" for n in range(30))
    run = snapshot(progress={E2E: sent(failures=names, failures_total=40, errors=("e",))})
    short = entry(run)["progress"]
    full = entry_document(run, E2E, now=START, mono=MONO)
    assert (list(names[:20]), ["e"], 40, 1) == (
        short["failures"],
        short["errors"],
        short["failures_total"],
        short["errors_total"],
    )
    assert list(names) == full["progress"]["failures"]
    assert ("run-1", 42, "2026-01-01T00:00:00.000000Z") == (
        full["run"],
        full["revision"],
        full["time"],
    )


def test_a_key_outside_the_plan():
    """The caller makes it a 404."""
    with pytest.raises(KeyError):
        entry(snapshot(), Key("nope", GLOBAL))


def test_the_end_of_a_run():
    """The tarball and the aggregator's own error."""
    tar = Tar("run-1_202601010000.tar.gz", "2026-01-01T00:00:09Z", "ef" * 32, 77)
    document = shown(snapshot(phase=Phase.CLOSED, tar=tar, error="late trouble"))
    assert {"name": tar.name, "created": tar.created, "sha256": tar.sha256, "size": 77} == document[
        "tar-info"
    ]
    assert (True, "late trouble", "failed") == (
        document["final"],
        document["error"],
        document["status"],
    )


def test_a_wall_clock_that_was_set_back_an_hour_shows_the_times_as_it_tells_them():
    def run(at, skew):
        return snapshot(
            {NODE1: replace(RESULT, at=at)},
            entries={E2E: Entry(E2E, window=Window(at, at + 120, "bad archive"))},
            progress={NODE2: sent(at)},
            upload=TarUpload("store.example", UploadState.UPLOADING, at),
            pods={NODE2: PodState("sysd-x7k2p", "node2", "Running", "", "", at, 0)},
            launcher=LauncherState(Step.WATCHING, LauncherTrouble(at, "watching Jobs")),
            skew=skew,
        )

    assert shown(run(START, 0)) == shown(run(START + 3_600, 3_600))
