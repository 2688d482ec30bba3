"""The annotations: Sonobuoy's exact shape, the end value, the budget."""

import json
from dataclasses import replace

import pytest

from reporter.run.annotation import BUDGET, RUN_ANNOTATION, STATUS_ANNOTATION, annotations
from reporter.run.plan import Plan, Plugin
from reporter.run.record import Cause
from reporter.run.state import Phase, Tar
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
    WORKER_ERROR,
    all_in,
    ours,
    sent,
    snapshot,
    status_document,
)

NO_TAR = '"tar-info":{"name":"","created":"0001-01-01T00:00:00Z","sha256":"","size":0}'
TAR = Tar("x.tar.gz", "2026-01-01T00:00:09Z", "ef" * 32, 77)


def both(run, *, strict=False, **more):
    """The two values, decoded."""
    value = annotations(run, strict=strict, **more)
    return json.loads(value.status), json.loads(value.run)


def row(plugin, node, status="running", verdict="", **more):
    """An entry of Sonobuoy's list."""
    return {
        "plugin": plugin,
        "node": node,
        "status": status,
        "result-status": verdict,
        "result-counts": None,
        **more,
    }


def test_the_exact_text():
    """K11: field order, no spaces, Go's zero time."""
    run = snapshot(
        plan=Plan("r", (Plugin("e2e"),)),
        progress={E2E: sent(msg="..", total=3, completed=1, failures=("f",))},
    )
    assert (
        '{"plugins":[{"plugin":"e2e","node":"global","status":"running","result-status":"",'
        '"result-counts":null,"progress":{"name":"e2e","node":"global",'
        '"timestamp":"2026-01-01T00:00:01.000000Z","msg":"..","total":3,"completed":1,'
        '"failures":["f"]}}],"status":"running",' + NO_TAR + "}"
    ) == annotations(run, strict=False).status
    assert ("sonobuoy.hept.io/status", "status-reporter.io/run-status") == (
        STATUS_ANNOTATION,
        RUN_ANNOTATION,
    )


def test_our_own_annotation():
    """The exact text of the second one."""
    assert (
        '{"run":"run-1","status":"failed","result_status":"failed","percent_complete":0.3333,'
        '"plugins_reported":0.0,'
        '"counts":{"entries":3,"decided":1,"received":0,"failed":1,"unknown":0},'
        '"final":false,"retrieved_at":null,"upload":null,'
        '"revision":42,"failed":["sysd/node2"],'
        '"why":{"sysd/node2":{"status":"failed","result_status":"",'
        '"reason":"pod_failed","message":"the pod is gone","alike":1}},'
        '"truncated":false}'
    ) == annotations(snapshot({NODE2: ours()}), strict=False).run


def test_a_download_is_shown_in_both_places():
    """Who deletes a run asks for it."""
    fetched = snapshot(retrieved_at=START + 1.5)
    shown = status_document(fetched, now=START, mono=0.0)

    assert shown["retrieved_at"] == both(fetched)[1]["retrieved_at"]
    assert "2026-01-01T00:00:01.500000Z" == shown["retrieved_at"]


def test_why_entries_failed():
    """The worker's reason and message; of an error of ours the cause. Long texts are cut."""
    long = replace(KILLED, text="x" * 1_024)
    why = both(snapshot({E2E: FAILED, NODE1: long, NODE2: EVICTED}))[1]["why"]
    said = {key: {name: each[name] for name in ("reason", "message")} for key, each in why.items()}
    assert {
        "e2e/global": {"reason": "DiskSlow", "message": "fsync takes 80 ms"},
        "sysd/node1": {"reason": "AdapterOOMKilled", "message": "x" * 256},
        "sysd/node2": {"reason": "AdapterEvicted", "message": "node drained"},
    } == said


def test_how_entries_failed():
    """In our words; and how many of the plugin's entries failed alike, it and others."""
    plan = Plan("r", (Plugin("p", tuple(f"n{n:02}" for n in range(40))), Plugin("q")))
    late, *others = plan.keys
    run = snapshot(dict.fromkeys(others, FAILED) | {late: ours(Cause.DEADLINE)}, plan=plan)
    why = both(run)[1]["why"]
    assert [("timed_out", "timeout", 1), *[("complete", "failed", 39)] * 9] == [
        (each["status"], each["result_status"], each["alike"]) for each in why.values()
    ]


def test_both_fit_into_what_the_api_server_allows():
    """Ten failures with texts that JSON makes longest, and names as long as they may be."""
    plan = Plan("r", (Plugin("p" * 63, tuple(f"{n:02}" + "n" * 251 for n in range(20))),))
    record = replace(FAILED, reason='"' * 128, message='"' * 1_024)
    value = annotations(snapshot(dict.fromkeys(plan.keys, record), plan=plan), strict=False)
    assert len(value.run.encode()) < 16 * 1024


def test_before_plugins_start():
    """Go's empty list is null."""
    value = annotations(snapshot(plan=Plan("r", ())), strict=False).status
    assert '{"plugins":null,"status":"post-processing",' + NO_TAR + "}" == value


def test_errors_come_before_failures_as_in_sonobuoys_structure():
    """And neither when empty, nor ever the append fields."""
    run = snapshot(progress={E2E: sent(errors=("e",), failures=("f",), appendcompleted=3)})
    progress = both(run)[0]["plugins"][0]["progress"]
    names = ["name", "node", "timestamp", "msg", "total", "completed", "errors", "failures"]
    assert names == list(progress)


@pytest.mark.parametrize(
    ("record", "closed", "expected"),
    [
        (None, False, ("running", "")),
        (RESULT, False, ("complete", "")),
        (RESULT, True, ("complete", "")),
        (WORKER_ERROR, False, ("failed", "")),
        (WORKER_ERROR, True, ("failed", "failed")),
        (ours(Cause.LOST), True, ("failed", "failed")),
        (ours(Cause.UPLOAD_FAILED), True, ("failed", "failed")),
        (ours(Cause.START_FAILED), True, ("failed", "failed")),
        (ours(Cause.POD_FAILED), True, ("failed", "failed")),
        (ours(Cause.DEADLINE), False, ("failed", "timeout")),
        (ours(Cause.HEARTBEAT), True, ("failed", "timeout")),
        (PASSED, False, ("complete", "passed")),
        (FAILED, False, ("complete", "failed")),
        (UNREADABLE, False, ("complete", "unknown")),
        (KILLED, False, ("failed", "failed")),
        (EVICTED, True, ("failed", "unknown")),
    ],
)
def test_the_words_for_an_entry(record, closed, expected):
    """Only words that Sonobuoy's tools know; `failed` as a verdict once it is over."""
    run = snapshot({E2E: record}, phase=Phase.CLOSED if closed else Phase.RUNNING)
    entry = both(run)[0]["plugins"][0]
    assert expected == (entry["status"], entry["result-status"])


def test_the_counts_of_an_entry():
    """An adapter's result is one test; entries shown as one are counted."""
    plan = Plan("r", (Plugin("p", tuple(f"n{n}" for n in range(40))),))
    run = snapshot(dict.fromkeys(plan.keys, FAILED), plan=plan)
    (first, *_) = both(run)[0]["plugins"]
    (merged,) = both(run, budget=1_000)[0]["plugins"]
    assert ("n0", {"failed": 1}) == (first["node"], first["result-counts"])
    assert ("*", {"failed": 40}) == (merged["node"], merged["result-counts"])


ONE_FAILED = {E2E: RESULT, NODE1: RESULT, NODE2: ours()}


@table(
    ("run", "sonobuoy", "strict", "own"),
    {
        "never an early failed: pollers stop at it": (
            snapshot({E2E: ours()}),
            "running",
            "running",
            "failed",
        ),
        "K2 one failed, all in": (
            snapshot(ONE_FAILED, phase=Phase.POST_PROCESSING),
            "post-processing",
            "post-processing",
            "failed",
        ),
        "K2 one failed, at the end": (
            snapshot(ONE_FAILED, phase=Phase.CLOSED, tar=TAR),
            "complete",
            "failed",
            "failed",
        ),
        "K3 all in": (
            all_in(phase=Phase.POST_PROCESSING),
            "post-processing",
            "post-processing",
            "post-processing",
        ),
        "K3 all complete": (
            all_in(phase=Phase.CLOSED, tar=TAR),
            "complete",
            "complete",
            "complete",
        ),
        "packing is tried again: pollers would stop at `failed`": (
            all_in(phase=Phase.POST_PROCESSING, error="disk full"),
            "post-processing",
            "post-processing",
            "failed",
        ),
        "no tarball: there are no results to fetch": (
            all_in(phase=Phase.CLOSED, error="disk full"),
            "failed",
            "failed",
            "failed",
        ),
    },
)
def test_the_status_of_the_run(run, sonobuoy, strict, own):
    """Sonobuoy's tools read `failed` as "no results", so it stands only for that."""
    assert (sonobuoy, own) == tuple(value["status"] for value in both(run))
    assert (strict, own) == tuple(value["status"] for value in both(run, strict=True))


def test_the_tarball():
    """K3: as it was measured."""
    status, run = both(all_in(phase=Phase.CLOSED, tar=TAR))
    expected = {"name": "x.tar.gz", "created": TAR.created, "sha256": TAR.sha256, "size": 77}
    assert (expected, True) == (status["tar-info"], run["final"])


def test_the_first_ten_failed_keys():
    """In the order of the plan."""
    plan = Plan("r", (Plugin("p", tuple(f"n{n:02}" for n in range(20))),))
    run = snapshot({key: ours() for key in plan.keys[1:]}, plan=plan)
    assert [f"p/n{n:02}" for n in range(1, 11)] == both(run)[1]["failed"]


def test_names_beyond_the_kept_ones_are_counted():
    """Readers count the list."""
    run = snapshot(progress={E2E: sent(failures=("a", "b"), failures_total=4)})
    status, own = both(run)
    assert ["a", "b", "", ""] == status["plugins"][0]["progress"]["failures"]
    assert False is own["truncated"]


FAILURES = tuple(f"{n:02}" + "x" * 98 for n in range(30))
MESSAGE = "é" * 500
DETAILED = {
    E2E: sent(msg=MESSAGE, total=50, completed=9, failures=FAILURES, errors=FAILURES[:11]),
    NODE1: sent(msg=MESSAGE, total=2, completed=2),
    NODE2: sent(msg="short", failures=("one",)),
}
MANY_NODES = Plan("r", (Plugin("e2e"), Plugin("sysd", tuple(f"node{n:02}" for n in range(40)))))


def steps(run):
    """The values as the budget gets smaller, each just too small for the value before."""
    value = annotations(run, strict=False)
    seen = [json.loads(value.status)]
    assert False is json.loads(value.run)["truncated"]
    while seen[-1]["plugins"]:
        budget = len(value.status.encode()) - 1
        value = annotations(run, strict=False, budget=budget)
        assert len(value.status.encode()) <= budget
        assert True is json.loads(value.run)["truncated"]
        seen.append(json.loads(value.status))
    return seen


def progress_of(status):
    """What is left of the progress, by node."""
    return {each["node"]: each.get("progress") for each in status["plugins"] or []}


def test_what_goes_first_when_there_is_no_room():
    """K12: names and the ends of messages, then all progress; then the last rows."""
    run = snapshot({NODE1: RESULT}, progress=DETAILED)
    whole, cut, bare, *rest = steps(run)
    full = progress_of(whole)
    assert (list(FAILURES), MESSAGE) == (full["global"]["failures"], full["global"]["msg"])

    kept = progress_of(cut)
    assert [*FAILURES[:10], *[""] * 20] == kept["global"]["failures"]
    assert [*FAILURES[:10], ""] == kept["global"]["errors"]
    assert ["é" * 64, "é" * 64, "short"] == [each["msg"] for each in kept.values()]
    assert full["node2"] == kept["node2"]

    assert {"global": None, "node1": None, "node2": None} == progress_of(bare)
    assert [["global", "node1"], ["global"], []] == [list(progress_of(status)) for status in rest]


def test_equal_entries_become_one():
    """K12: all of a plugin that say the same."""
    sysd = [key for key in MANY_NODES.keys if key.plugin == "sysd"]
    records = dict.fromkeys(sysd[:20], RESULT) | dict.fromkeys(sysd[20:30], ours())
    run = snapshot({**records, sysd[30]: WORKER_ERROR, E2E: RESULT}, plan=MANY_NODES)
    whole, alike, *_ = steps(run)
    assert 41 == len(whole["plugins"])
    assert [
        row("e2e", "global", "complete"),
        row("sysd", "*", "complete"),
        row("sysd", "*", "failed"),
        row("sysd", "*"),
    ] == alike["plugins"]


def wide(nodes, plugins, **fields):
    """A run of many entries, each with progress, a third of them complete."""
    names = tuple(
        f"ip-10-0-{n // 256}-{n % 256}.eu-central-1.compute.internal" for n in range(nodes)
    )
    plan = Plan("r", tuple(Plugin(f"plugin-{n}", names) for n in range(plugins)))
    records = dict.fromkeys(plan.keys[::3], RESULT)
    return snapshot(records, plan=plan, progress=dict.fromkeys(plan.keys, sent(**fields)))


@table(
    "run",
    {
        "5,000 entries": wide(1_000, 5, msg="working", total=9, completed=3),
        "200 x 10,000 failures": wide(
            100, 2, failures=tuple(f"{n}" * 200 for n in range(1_000)), failures_total=10_000
        ),
        "counts without end": wide(5_000, 1, failures_total=2**60),
        "5,000 plugins": wide(1, 5_000),
    },
)
def test_the_largest_runs_fit(run):
    """K12: at most 192 KiB, true counts where there are any, and it says that it is cut."""
    value = annotations(run, strict=False)
    assert len(value.status.encode()) <= BUDGET
    assert True is json.loads(value.run)["truncated"]
    for each in progress_of(json.loads(value.status)).values():
        assert each is None or len(each["failures"]) == 10_000


def test_text_in_any_script_counts_in_bytes():
    """And is written as it is."""
    run = snapshot(progress={E2E: sent(msg="ελληνικά 🎉")})
    value = annotations(run, strict=False).status
    assert "ελληνικά 🎉" in value
    size = len(value.encode())
    assert value == annotations(run, strict=False, budget=size).status
    assert value != annotations(run, strict=False, budget=size - 1).status


def test_a_run_of_thirteen_hundred_entries_fits_by_name():
    """K12: about so many have room before entries become one."""
    plan = Plan("r", (Plugin("sysd", tuple(f"node-{n:04}" for n in range(1_300))),))
    status, own = both(snapshot(plan=plan))
    assert (1_300, False) == (len(status["plugins"]), own["truncated"])
