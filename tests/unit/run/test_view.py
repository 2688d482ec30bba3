"""What somebody outside reads of a run: rows, counts, verdicts and remarks."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reporter.run.annotation import RUN_ANNOTATION, STATUS_ANNOTATION
from reporter.run.pod_status import of_reading, read_status
from reporter.run.view import (
    FINISHING,
    REMOVING,
    UPLOADING,
    ReadOutcome,
    ending,
    entry_display,
    failed,
    good,
    hindrances,
    launcher_at_work,
    launcher_trouble,
    over,
    own_words,
    passed,
    percent,
    read_document,
    rows,
    run_display,
    upload_words,
    uploaded,
)

OURS = {"status": "failed", "percent_complete": 0.25, "final": False, "revision": 7}


def pod(status="running", plugins=(), ours=None, tar=None):
    shown = {"plugins": list(plugins) or None, "status": status, "tar-info": tar or {"name": ""}}
    annotations = {STATUS_ANNOTATION: json.dumps(shown)}
    if ours is not None:
        annotations[RUN_ANNOTATION] = ours if isinstance(ours, str) else json.dumps(ours)
    return {"metadata": {"annotations": annotations}, "status": {"phase": "Running"}}


def plugin(**changed):
    return {"plugin": "e2e", "node": "global", "status": "running", "result-status": ""} | changed


def look(*arguments, **fields):
    return of_reading(read_status(pod(*arguments, **fields), "careful"))


def test_our_annotation_is_believed():
    """Sonobuoy's never shows an early failure."""
    found = look("running", [plugin()], OURS)

    assert ReadOutcome.OK is found.outcome
    assert "careful" == found.warning
    assert ("failed", 0.25, False, 7) == tuple(
        found.document[key] for key in ("status", "percent_complete", "final", "revision")
    )
    assert failed(found.document)
    assert not over(found.document)


@pytest.mark.parametrize(
    ("status", "final"),
    [("running", False), ("post-processing", False), ("complete", True), ("failed", True)],
)
@pytest.mark.parametrize("ours", [None, "{", "[]", {"status": "odd"}, {"percent_complete": True}])
def test_sonobuoys_annotation_alone(status, final, ours):
    """Its end is final; shares are counted."""
    document = look(status, [plugin(), plugin(node="n", status="complete")], ours).document

    assert (status, final, 0.5) == (
        document["status"],
        document["final"],
        document["percent_complete"],
    )


def test_before_there_are_plugins():
    """Nothing is done yet."""
    document = look().document

    assert ([], 0.0, None) == (
        document["plugins"],
        document["percent_complete"],
        document["tar-info"],
    )


def test_the_tarball_is_shown_once_there_is_one():
    """Sonobuoy writes zero values before."""
    tar = {"name": "x.tar.gz", "sha256": "00", "size": 1, "created": "2030-01-01T12:00:00Z"}
    document = look("complete", tar=tar).document

    assert tar == document["tar-info"]


def test_the_entries_of_an_annotation():
    """Timeouts are told by their result status; global entries have no node."""
    progress = {"total": 4, "completed": 1, "failures": ["a", "b"], "msg": "on it"}
    document = look(
        "running",
        [
            plugin(progress=progress),
            plugin(node="n1", status="failed", **{"result-status": "timeout"}),
        ],
    ).document
    first, second = rows(document)

    assert ("e2e/global", "", "1/4 (2 failed)", "on it") == (
        first.key,
        first.node,
        first.progress,
        first.detail,
    )
    assert ("e2e/n1", "n1", "timed_out", "timeout") == (
        second.key,
        second.node,
        second.status,
        second.result,
    )
    assert (False, False, True, True) == (first.decided, first.bad, second.decided, second.bad)


@pytest.mark.parametrize(
    ("progress", "shown"),
    [
        (None, ""),
        ({}, ""),
        ({"completed": 3}, "3"),
        ({"total": 3}, "0/3"),
        ({"completed": 5, "total": 0}, "5"),
        ({"completed": 0, "total": 0, "msg": "on it"}, ""),
        ({"completed": 0, "total": -1, "failures_total": 2}, "0 (2 failed)"),
        ({"total": 2, "completed": -5}, "-5/2"),
        ({"total": 2, "completed": 1, "failures_total": 30, "failures": ["a"]}, "1/2 (30 failed)"),
        ({"total": "2", "completed": True, "failures": "x"}, ""),
    ],
)
def test_progress(progress, shown):
    """As far as it is known."""
    (row,) = rows({"plugins": [{"name": "e2e", "progress": progress}]})

    assert shown == row.progress


@pytest.mark.parametrize(
    ("entry", "state"),
    [
        ({"status": "running"}, "running"),
        ({"status": "running", "retry_until": "x"}, "retrying"),
        ({"status": "running", "retry_until": "x", "stale": True}, "stale"),
        ({"status": "complete", "result_status": "passed"}, "complete"),
        ({"status": "complete", "result_status": ""}, "complete"),
        ({"status": "complete", "result_status": "failed"}, "check_failed"),
        ({"status": "complete", "result_status": "unknown"}, "unknown"),
        ({"status": "timed_out", "result_status": "timeout"}, "timed_out"),
        ({"status": "failed", "result_status": "unknown"}, "unknown"),
        ({"status": "of a later version"}, "running"),
    ],
)
def test_the_state_of_an_entry(entry, state):
    """As the counts of the run have it: who could not tell is unknown, not failed."""
    assert state == entry_display(entry)["state"]


@pytest.mark.parametrize(
    ("document", "state", "headline"),
    [
        ({"status": "running"}, "running", "running"),
        ({"status": "failed", "failed": 2}, "failed", "failed, still running, 2 of 3 failed"),
        ({"status": "failed", "final": True, "failed": 2}, "failed", "failed, 2 of 3 failed"),
        (
            {"status": "complete", "upload": {"state": "failed"}, "unknown": 1},
            "failed",
            "complete, 1 of 3 unknown, upload failed",
        ),
        (
            {"status": "complete", "failed": 2, "unknown": 1},
            "failed",
            "complete, 2 of 3 failed, 1 of 3 unknown",
        ),
        ({"status": "complete", "unknown": 1}, "unknown", "complete, 1 of 3 unknown"),
        ({"status": "complete", "entries": 0}, "unknown", "complete, no results expected"),
    ],
)
def test_the_headline(document, state, headline):
    """A failed check is as bad as a missing result; a run without results has not passed."""
    counted = {"entries": 3, "decided": 0, "received": 0, "failed": 0, "unknown": 0}
    counted |= {name: document.pop(name) for name in counted if name in document}
    shown = run_display(
        {"final": document["status"] == "complete"} | document | {"counts": counted}
    )

    assert (state, headline) == (shown["state"], shown["headline"])


TAR = {"name": "x.tar.gz"}


@pytest.mark.parametrize(
    ("more", "summary"),
    [
        ({}, "may still change if a late result arrives"),
        ({"launcher": {"step": "removing"}}, "finishing"),
        ({"tar-info": TAR, "upload": {"state": "uploading"}}, "uploading the results"),
        ({"tar-info": TAR, "upload": {"state": "waiting"}}, ""),
        ({"error": "disk full"}, ""),
        ({"final": True}, "final"),
        ({"final": True, "launcher": {"step": "removing"}}, "final, removing the plugins"),
    ],
)
def test_whether_a_failed_run_may_still_change(more, summary):
    """Not any more once the results are packed."""
    plugins = [{"name": "p", "status": "failed"}]
    document = {"status": "failed", "final": False, "percent_complete": 1.0, "plugins": plugins}
    shown = run_display(document | more)["summary"]

    assert ", ".join(filter(None, ("1 of 1 done (100%)", summary))) == shown


def test_the_first_of_many_problems():
    """An upload that goes well is none."""
    skipped = [{"name": "p", "node": f"n{each}", "reason": "cordoned"} for each in range(7)]
    upload = {"host": "store", "state": "uploading", "error": None}
    document = {"status": "running", "plugins": [], "skipped": skipped, "upload": upload}
    first, *_, last = run_display(document)["problems"]
    failing = run_display(document | {"error": "full", "upload": upload | {"error": "503"}})

    assert ("plugin p skips node n0: cordoned", "2 more") == (first, last)
    assert [
        "the aggregator itself failed: full",
        "uploading the results to store; it is tried again: 503",
        first,
    ] == failing["problems"][:3]


@pytest.mark.parametrize(
    ("error", "detail"),
    [
        ({"text": "t", "reason": "r"}, "r: t"),
        ({"text": "t", "reason": ""}, "t"),
        ({"text": "", "reason": "r"}, "r"),
        ({"text": "", "reason": "", "cause": "pod_failed"}, "pod failed"),
        (None, "on it"),
        ("x", "on it"),
    ],
)
def test_what_is_said_of_an_entry(error, detail):
    """The error's reason and text, else the last message."""
    (row,) = rows({"plugins": [{"error": error, "progress": {"msg": "on it"}}]})

    assert detail == row.detail


def test_the_verdict_is_said_before_the_last_message():
    """Reason and message of the result; that an upload failed comes before it as well."""
    said = {"reason": "DiskSlow", "message": "80 ms"}
    trying = {"retry_until": "2026-01-01T00:02:00.000000Z", "attempts": 2}
    entry = {"progress": {"msg": "on it"}}
    first, second = rows({"plugins": [entry | said | trying, entry | trying]})

    assert "DiskSlow: 80 ms" == first.detail
    assert "failed uploads: 2, may be retried until 2026-01-01T00:02:00Z" == second.detail


@pytest.mark.parametrize(
    ("entry", "key"),
    [
        ({"name": "e2e", "node": "", "key": "e2e/global"}, "e2e/global"),
        ({"name": "e2e", "node": ""}, "e2e/global"),
        ({"name": "sysd", "node": "n1", "key": ""}, "sysd/n1"),
        ({"name": "sysd", "node": "n1", "key": "another/key"}, "another/key"),
    ],
)
def test_the_key_of_an_entry(entry, key):
    """The document's own; Sonobuoy's has none, and then it is plugin and node."""
    (row,) = rows({"plugins": [entry]})

    assert key == row.key


@pytest.mark.parametrize(
    ("status", "heard"),
    [("running", 7), ("complete", None), ("failed", None), ("timed_out", None)],
)
def test_a_worker_that_has_finished_is_not_heard(status, heard):
    """The age of its last heartbeat says nothing any more."""
    (row,) = rows({"plugins": [{"status": status, "last-heartbeat": 7}]})

    assert heard == row.heard


def test_a_failure_is_explained_through_the_annotation():
    """By our own one: Sonobuoy's has no place for it."""
    why = {"e2e/global": {"reason": "DiskSlow", "message": "80 ms"}}
    ours = {**OURS, "run": "r", "result_status": "failed", "plugins_reported": 0.5, "why": why}
    document = look(
        "running", [plugin(status="complete", **{"result-status": "failed"})], ours
    ).document
    (row,) = rows(document)

    assert ("failed", "DiskSlow: 80 ms", False) == (row.result, row.detail, row.passed)
    assert ("r", "failed", 0.5) == tuple(
        document[name] for name in ("run", "result_status", "plugins_reported")
    )


@pytest.mark.parametrize(
    ("entries", "verdict", "good"),
    [
        ([plugin(status="complete")], "", True),
        ([plugin(status="complete", **{"result-status": "passed"})], "", True),
        ([plugin(status="complete", **{"result-status": "failed"})], "failed", False),
        ([plugin(status="complete", **{"result-status": "unknown"})], "", False),
        ([plugin(status="failed", **{"result-status": "timeout"})], "failed", False),
    ],
)
def test_the_verdict_by_sonobuoys_annotation_alone(entries, verdict, good):
    """A failed check is no pass there either."""
    document = look("complete", entries).document

    assert (verdict, good) == (document["result_status"], passed(document))


@pytest.mark.parametrize(
    ("document", "good"),
    [
        ({"status": "complete", "plugins": [{}]}, True),
        ({"status": "complete", "plugins": [{}], "result_status": "passed"}, True),
        ({"status": "complete", "plugins": [{}], "result_status": "unknown"}, True),
        ({"status": "complete", "plugins": [{}], "result_status": "failed"}, False),
        ({"status": "complete", "plugins": []}, False),
        ({"status": "running", "plugins": []}, True),
        ({"status": "failed"}, False),
        ({"status": "running", "plugins": [{"result_status": "failed"}]}, False),
        ({"status": "complete", "plugins": [{"result_status": "unknown"}]}, False),
        ({"status": "complete", "plugins": [{"result_status": ""}]}, True),
    ],
)
def test_a_run_that_passed(document, good):
    """What nobody judges is no failure; a run that says neither, or had no plugins, is no pass."""
    assert good is passed(document)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff",
        b"[]",
        b"[" * 100_000,
        b"{}",
        b'{"status": "odd", "plugins": []}',
        b'{"status": [], "plugins": []}',
        b'{"status": "running", "plugins": null}',
        b'{"status": "running", "plugins": [1]}',
        b'{"status": "running", "plugins": [], "percent_complete": NaN}',
        b'{"status": "running", "plugins": [], "percent_complete": 1e999}',
    ],
)
def test_what_is_no_status(data):
    """Nothing, and no exception."""
    assert None is read_document(data)


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (0.29, 29),
        (0.9995, 99),
        (0.6667, 66),
        (1, 100),
        (1.0, 100),
        (10**400, 100),
        (-3, 0),
        ("half", 0),
        (None, 0),
    ],
)
def test_how_much_is_decided(said, shown):
    """A whole number from 0 to 100, whatever is written there; one of 2,000 is missed."""
    assert shown == percent({"percent_complete": said})


@pytest.mark.parametrize(
    ("document", "ended"),
    [
        ({"status": "failed", "final": False}, False),
        ({"status": "post-processing", "final": True}, True),
        ({"status": "running"}, False),
        ({"status": "post-processing"}, False),
        ({"status": "complete"}, True),
        ({"status": "failed"}, True),
    ],
)
def test_the_end_of_a_run(document, ended):
    """`final` says it; a status with the proposal's fields alone ends with its last word."""
    assert ended is over(document)


def test_a_reading_without_a_status():
    """Its outcome and its words are passed on."""
    found = of_reading(read_status({"status": {"phase": "Pending"}}))

    assert (ReadOutcome.POD_NOT_RUNNING, None) == (found.outcome, found.document)
    assert "Pending" in found.detail


NUMBERS = st.floats(allow_nan=False, allow_infinity=False)  # JSON has no others
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | NUMBERS | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["name", "plugin", "node", "progress", "total"]), inner)
    ),
    max_leaves=8,
)


@given(st.lists(JSON, max_size=4), JSON, JSON)
def test_any_document_can_be_shown(plugins, share, final):
    """A newer aggregator may send anything below `plugins`."""
    document = {"status": "running", "plugins": plugins, "percent_complete": share, "final": final}

    assert len([each for each in plugins if isinstance(each, dict)]) == len(list(rows(document)))


@given(JSON, JSON)
def test_any_annotation_can_be_read(plugins, ours):
    """Whoever wrote it."""
    annotations = {
        STATUS_ANNOTATION: json.dumps({"status": "running", "plugins": plugins, "tar-info": ours}),
        RUN_ANNOTATION: json.dumps(ours),
    }
    read = of_reading(
        read_status({"metadata": {"annotations": annotations}, "status": {"phase": "Running"}})
    )

    assert ReadOutcome.OK is read.outcome


@pytest.mark.parametrize(
    ("shown", "detail"),
    [
        (
            {"phase": "Pending", "reason": "Unschedulable", "message": "0/3 nodes are available"},
            "Pending: Unschedulable: 0/3 nodes are available",
        ),
        ({"phase": "", "reason": "NoPod", "message": "The Job has no Pod"}, None),
        ({"phase": "Running", "reason": "", "message": ""}, "pulling"),
        (None, "pulling"),
        ("odd", "pulling"),
    ],
)
def test_what_a_pod_waits_for_is_said_of_its_entry(shown, detail):
    """Before the last message of its worker; a Pod that runs has nothing to say."""
    entry = {"name": "p", "status": "running", "pod": shown, "progress": {"msg": "pulling"}}
    (row,) = rows({"plugins": [entry]})

    assert ("NoPod: The Job has no Pod" if detail is None else detail) == row.detail


def test_entries_whose_pods_wait():
    """Those that have something to say; the others run, or are decided and have no Pod."""
    pull = {"phase": "Pending", "reason": "ErrImagePull", "message": "not found"}
    entries = [
        {"name": "p", "key": "p/n1", "pod": pull},
        {"name": "p", "key": "p/n2", "pod": {"phase": "Running", "reason": ""}},
        {"name": "q", "key": "q/global", "pod": None},
    ]

    waiting, *others = rows({"plugins": entries})
    assert ("ErrImagePull", "Pending: ErrImagePull: not found") == (waiting.held_up, waiting.pod)
    assert {("", "")} == {(row.held_up, row.pod) for row in others}


HELD_UP = {"since": "2026-01-01T00:00:05.100000Z", "reason": "watching Jobs: 403"}


def run(step=None, status="post-processing", entries=("complete", "complete"), **more):
    """Return a run whose entries are so far."""
    return {
        "status": status,
        "final": False,
        "plugins": [{"name": "p", "status": each} for each in entries],
        "launcher": None if step is None else {"step": step},
    } | more


def test_what_hinders_a_run():
    """The launcher's trouble, what it could not remove, and the nodes that were left out."""
    document = {
        "launcher": {
            "degraded": HELD_UP,
            "stays": [{"object": "Job r1-p-1", "reason": "it is being deleted"}],
        },
        "skipped": [{"name": "p", "node": "win1", "reason": "not Linux"}],
    }
    assert [
        "the launcher has been blocked since 2026-01-01T00:00:05Z: watching Jobs: 403",
        "Job r1-p-1 could not be removed: it is being deleted",
        "plugin p skips node win1: not Linux",
    ] == hindrances(document)
    assert [] == hindrances({}) + hindrances({"launcher": None, "skipped": None})


@pytest.mark.parametrize(
    ("launcher", "trouble", "at_work"),
    [
        (None, False, False),
        ({"step": "watching", "degraded": HELD_UP}, True, False),
        ({"step": "removing", "degraded": None}, False, True),
        ({"step": "done", "degraded": None}, False, False),
    ],
)
def test_whether_the_launcher_is_held_up(launcher, trouble, at_work):
    """One that has ended tells of no trouble any more: that is no news that it works again."""
    document = {"launcher": launcher}

    assert (trouble, at_work) == (bool(launcher_trouble(document)), launcher_at_work(document))


def test_what_the_aggregator_says_of_itself():
    """Its own failure, and the upload."""
    upload = {"host": "store", "state": "uploaded"}

    assert [] == own_words({"error": None, "upload": None})
    assert ["the aggregator itself failed: disk full"] == own_words({"error": "disk full"})
    assert ["the results were uploaded to store"] == own_words({"upload": upload})


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (run("watching", "running", ("complete", "running")), ""),
        (run("launching", "failed", ("failed", "running")), ""),
        (run("watching"), ""),  # the launcher has not looked yet
        (run("removing"), FINISHING),
        (run("removing", "failed", ("complete", "failed")), FINISHING),
        (run("done"), FINISHING),
        (run("done", "failed", ("complete", "timed_out")), FINISHING),
        (run("of the future"), ""),
        (run(), FINISHING),  # nobody launches
        (run(status="failed", entries=("failed",)), ""),  # a late result may still come
        (run("done", upload={"state": "waiting"}), FINISHING),
        (run("done", upload={"state": "uploading"}), UPLOADING),
        (run(upload={"state": "uploading"}), UPLOADING),
        (run("done", upload={"state": "uploaded"}, **{"tar-info": {"name": "x"}}), ""),
        (run("removing", "complete", final=True), REMOVING),  # it waits for no removal
        (run("done", "complete", final=True), ""),
        (run("done", "complete", final=True, upload={"state": "uploading"}), ""),
    ],
)
def test_the_phases_of_the_end(document, words):
    """From the last decision to the tarball in its place; nothing is guessed."""
    assert words == ending(document)


def test_the_end_in_the_annotations():
    """They do not tell of the launcher, which may be at work; of the upload they do."""
    document = run()
    del document["launcher"]

    assert "" == ending(document)
    assert UPLOADING == ending(document | {"upload": {"state": "uploading"}})


STATES = {
    "waiting": ("", "the results will be uploaded to store"),
    "waiting doubtfully": (
        "too large",
        "the results will be uploaded to store; this may fail: too large",
    ),
    "uploading": ("", "uploading the results to store"),
    "uploading again": ("503", "uploading the results to store; it is tried again: 503"),
    "uploaded": ("", "the results were uploaded to store"),
    "failed": ("403", "the results could not be uploaded to store: 403"),
    "of the future": ("", ""),
}


@pytest.mark.parametrize("case", STATES)
def test_what_is_said(case):
    """A run whose results could not be uploaded has not passed, whatever its verdict."""
    error, words = STATES[case]
    state = case.removesuffix(" again").removesuffix(" doubtfully")
    document = {
        "status": "complete",
        "plugins": [{}],
        "upload": {"host": "store", "state": state, "error": error or None, "at": ""},
    }
    assert words == upload_words(document)
    assert (state == "uploaded") is uploaded(document)
    for delivery_only in (True, False):
        assert (state != "failed") == good(document, delivery_only=delivery_only)


def test_a_run_that_uploads_nothing():
    """Or an aggregator that does not know of it."""
    for more in ({"upload": None}, {}):
        document = {"status": "complete", "plugins": [{}], **more}
        assert ("", True) == (upload_words(document), good(document))
