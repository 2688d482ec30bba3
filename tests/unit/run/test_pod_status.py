"""A run as the aggregator's Pod tells it: which Pod, what it says, and that as `/status`."""

import json
import time
from dataclasses import replace

import pytest

from reporter.run.annotation import RUN_ANNOTATION, STATUS_ANNOTATION, annotations
from reporter.run.plan import Plan, Plugin
from reporter.run.pod_status import Picked, Reading, of_reading, pick_pod, read_status
from reporter.run.record import Cause
from reporter.run.state import Phase
from reporter.run.view import ReadOutcome, counts, passed, percent, rows
from tests.tables import table
from tests.unit.run.world import FAILED, PASSED, UNREADABLE, ours, snapshot

NEW = {"sonobuoy-component": "aggregator"}
OLD = {"run": "sonobuoy-master"}


def pod(name="p", labels=None, phase="Running", value=None, namespace="n", **status):
    """A Pod as the API shows it."""
    annotated = {} if value is None else {"annotations": {STATUS_ANNOTATION: value}}
    metadata = {"name": name, "namespace": namespace, "labels": labels or {}, **annotated}
    return {"metadata": metadata, "status": {"phase": phase, **status}}


FIRST, SECOND, OTHER = pod("a", NEW), pod("b", {**NEW, **OLD}), pod("c", {"app": "web"})
ELSEWHERE = pod("a", NEW, namespace="o")
MASTER, MASTER2 = pod("m", OLD), pod("m2", OLD)


@table(
    ("pods", "expected"),
    {
        "K4 no pod": ([], Picked(None)),
        "none of ours": ([OTHER, {}, {"metadata": 7}], Picked(None)),
        "by its label": ([OTHER, FIRST], Picked(FIRST)),
        "only the old label": ([MASTER], Picked(MASTER)),
        "K5 both labels: the new one wins": ([MASTER, FIRST], Picked(FIRST)),
        "K5 several pods": (
            [FIRST, SECOND],
            Picked(
                FIRST,
                "found 2 aggregators: n/a, n/b; showing n/a",
            ),
        ),
        "several pods with the old label": (
            [MASTER, MASTER2],
            Picked(MASTER, "found 2 aggregators: n/m, n/m2; showing n/m"),
        ),
        "two runs in two namespaces": (
            [FIRST, ELSEWHERE],
            Picked(
                FIRST,
                "found 2 aggregators: n/a, o/a; showing n/a; choose another with -n NAMESPACE",
            ),
        ),
        "many runs": (
            [FIRST] * 7,
            Picked(FIRST, "found 7 aggregators: n/a, n/a, n/a, n/a, n/a and 2 more; showing n/a"),
        ),
    },
)
def test_which_pod_is_read(pods, expected):
    """The label of today, then that of old versions."""
    assert expected == pick_pod(pods)


def waiting(reason):
    """A container that waits."""
    return {"name": "kube-sonobuoy", "state": {"waiting": {"reason": reason}}}


RUNNING = {"name": "sidecar", "state": {"running": {}}}
NO_KNOWN = f"the annotation {STATUS_ANNOTATION} has no known status"
NOT_JSON = f"the annotation {STATUS_ANNOTATION} is not JSON"
NO_NODE = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "0/1 nodes are available: 1 Too many pods.",
}
PULL = "the pod is Pending: ErrImagePull (container kube-sonobuoy)"


@table(
    ("it", "outcome", "detail"),
    {
        "K4 pending": (pod(phase="Pending"), ReadOutcome.POD_NOT_RUNNING, "the pod is Pending"),
        "K4 pending, the first container is not waiting": (
            pod(phase="Pending", containerStatuses=[RUNNING, waiting("ErrImagePull")]),
            ReadOutcome.POD_NOT_RUNNING,
            PULL,
        ),
        "an init container's image": (
            pod(phase="Pending", initContainerStatuses=[waiting("ErrImagePull")]),
            ReadOutcome.POD_NOT_RUNNING,
            PULL,
        ),
        "no trouble with images": (
            pod(phase="Pending", containerStatuses=[waiting("ContainerCreating"), {}, 7]),
            ReadOutcome.POD_NOT_RUNNING,
            "the pod is Pending",
        ),
        "no node takes it": (
            pod(phase="Pending", conditions=[{"type": "Ready", "status": "False"}, NO_NODE]),
            ReadOutcome.POD_NOT_RUNNING,
            "the pod is Pending: 0/1 nodes are available: 1 Too many pods.",
        ),
        "no node takes it, nobody says why": (
            pod(phase="Pending", conditions=[NO_NODE | {"message": ""}]),
            ReadOutcome.POD_NOT_RUNNING,
            "the pod is Pending",
        ),
        "a node has taken it": (
            pod(phase="Pending", conditions=[NO_NODE | {"status": "True"}]),
            ReadOutcome.POD_NOT_RUNNING,
            "the pod is Pending",
        ),
        "it has ended": (
            pod(phase="Succeeded", value="{}"),
            ReadOutcome.POD_NOT_RUNNING,
            "the pod is Succeeded",
        ),
        "no status": ({}, ReadOutcome.POD_NOT_RUNNING, "the pod is without a phase"),
        "K4 no annotation": (
            pod(),
            ReadOutcome.NO_STATUS,
            f"the pod has no annotation {STATUS_ANNOTATION}",
        ),
        **{
            f"K4 bad JSON {at}": (pod(value=value), ReadOutcome.BAD_STATUS, NOT_JSON)
            for at, value in enumerate(("", "{", "[" * 100_000))
        },
        **{
            f"not a status {value}": (pod(value=value), ReadOutcome.BAD_STATUS, NO_KNOWN)
            for value in ("[]", "null", "{}", '{"status":"great"}', '{"status":["running"]}')
        },
    },
)
def test_a_status_that_cannot_be_read(it, outcome, detail):
    """A typed outcome, the Pod, and what is in the way."""
    assert Reading(outcome, it, None, "w", detail) == read_status(it, "w")


@pytest.mark.parametrize("word", ["running", "post-processing", "complete", "failed"])
def test_a_status(word):
    """The four words, and whatever else is in it."""
    it = pod(value=f'{{"status":"{word}","plugins":null}}')
    assert Reading(ReadOutcome.OK, it, {"status": word, "plugins": None}) == read_status(it)


LARGE = Plan("r", (Plugin("disk", tuple(f"{at:04}" + "n" * 39 for at in range(1_500))),))
KEYS = LARGE.keys


def read(status, run):
    """What the two annotations say; `run` is ours, decoded."""
    told = {STATUS_ANNOTATION: status, RUN_ANNOTATION: json.dumps(run)}
    pod = {"metadata": {"annotations": told}, "status": {"phase": "Running"}}
    return of_reading(read_status(pod)).document


def through(run, **changed):
    """A run as its annotations tell it; `changed` is written into ours."""
    value = annotations(run, strict=False)
    return read(value.status, json.loads(value.run) | changed)


def large(bad, *, closed=True, plan=LARGE):
    """A run that passed except for the records in `bad`."""
    records = dict.fromkeys(plan.keys, PASSED) | bad
    return snapshot(records, plan=plan, phase=Phase.CLOSED if closed else Phase.RUNNING)


def told(document):
    """Node, status, result and detail of each row."""
    return [(row.node, row.status, row.result, row.detail) for row in rows(document)]


THREE = (KEYS[3], KEYS[700], KEYS[1_400])
SLOW = "DiskSlow: fsync takes 80 ms"
REST = ("*", "complete", "passed", "")
THREE_FAILED = large(dict.fromkeys(THREE, FAILED))


def test_a_large_run_has_its_own_counts():
    """Its rows are fewer than its entries."""
    document = through(THREE_FAILED)

    assert {"entries": 1_500, "decided": 1_500, "received": 1_500, "failed": 3, "unknown": 0} == (
        counts(document)
    )
    assert not passed(document)


def test_what_failed_in_a_large_run_is_named():
    """A row each, and none for several: all that it stands for are named."""
    document = through(THREE_FAILED)

    assert [REST, *((key.node, "complete", "failed", SLOW) for key in THREE)] == told(document)
    assert [f"disk/{key.node}" for key in THREE] == [row.key for row in rows(document)][1:]


def test_more_failures_than_are_named_keep_their_row():
    """The first ten by name, the others as one; of another kind the one that is named."""
    bad = dict.fromkeys(KEYS[:12], FAILED) | {KEYS[5]: ours(Cause.DEADLINE)}
    document = through(large(bad))

    assert (12, 1_500) == (counts(document)["failed"], counts(document)["entries"])
    named = {node: (status, result) for node, status, result, _ in told(document) if node != "*"}
    assert {
        key.node: ("timed_out", "timeout") if key == KEYS[5] else ("complete", "failed")
        for key in KEYS[:10]
    } == named
    assert [("*", "complete", "failed"), ("*", "complete", "passed")] == sorted(
        each[:3] for each in told(document) if each[0] == "*"
    )


def test_named_ones_stand_at_the_row_for_the_others():
    """Each kind at its own."""
    bad = dict.fromkeys(KEYS[:4], UNREADABLE) | dict.fromkeys(KEYS[4:20], FAILED)
    shown = [(node[:4], result) for node, _, result, _ in told(through(large(bad)))]

    assert [
        *((f"{at:04}", "unknown") for at in range(4)),
        *((f"{at:04}", "failed") for at in range(4, 10)),
        ("*", "failed"),
        ("*", "passed"),
    ] == shown


def test_what_failed_beyond_the_last_row_is_named():
    """With too many plugins even for a row each, a failure is not left out."""
    plan = Plan("r", tuple(Plugin(f"{'p' * 50}-{at:04}") for at in range(5_000)))
    last = plan.keys[-1]
    document = through(large({last: FAILED}, plan=plan))

    assert (5_000, 1) == (counts(document)["entries"], counts(document)["failed"])
    assert (last.plugin, "", "failed", SLOW) == next(
        (row.plugin, row.node, row.result, row.detail) for row in rows(document) if not row.passed
    )


def test_a_small_run_has_each_row_once():
    """What is listed by name is not named again."""
    plan = Plan("r", (Plugin("disk", ("n1", "n2")), Plugin("e2e")))
    run = large({plan.keys[1]: FAILED, plan.keys[2]: UNREADABLE}, plan=plan)

    assert [
        ("n1", "complete", "passed", ""),
        ("n2", "complete", "failed", SLOW),
        ("", "complete", "unknown", "InvalidResultFormat: no object"),
    ] == told(through(run))


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        "all",
        {},
        {"entries": 1_500},
        {"entries": 9, "decided": 9, "received": 9, "failed": True, "unknown": 0},
        {"entries": 9, "decided": 9, "received": 9, "failed": "1", "unknown": 0},
        {"entries": 9, "decided": -1, "received": 9, "failed": 1, "unknown": 0},
        {"entries": 9, "decided": 10, "received": 9, "failed": 1, "unknown": 0},
        {"entries": 3, "decided": 3, "received": 3, "failed": 3, "unknown": 0},
        {"entries": 10**40, "decided": 9, "received": 9, "failed": 1, "unknown": 0},
    ],
)
def test_counts_that_make_no_sense(value):
    """The rows are counted."""
    document = through(THREE_FAILED, counts=value)

    assert {"entries": 4, "decided": 4, "received": 4, "failed": 3, "unknown": 0} == (
        counts(document)
    )


def test_counts_without_shares():
    """The shares are those of the counts."""
    run = snapshot(dict.fromkeys(KEYS[:375], PASSED), plan=LARGE)
    document = through(run, percent_complete=None, plugins_reported="half")

    assert (25, 0.25) == (percent(document), document["plugins_reported"])


SAID = {"status": "complete", "result_status": "failed", "reason": "R", "message": "m", "alike": 1}


@pytest.mark.parametrize(
    "why",
    [
        None,
        [],
        {"disk/n": None},
        {"disk/n": SAID | {"status": "odd"}},
        {"disk/n": SAID | {"status": ["complete"]}},
        {"disk/n": {"reason": "R", "message": "m"}},
        {"disk": SAID},
        {"/n": SAID},
        {"disk/": SAID},
        {"disk/*": SAID},
        {"": SAID},
    ],
)
def test_reasons_that_name_no_entry(why):
    """They make no row, and take none away."""
    shown = [each[:3] for each in told(through(THREE_FAILED, why=why))]

    assert [("*", "complete", "passed"), ("*", "complete", "failed")] == shown


@pytest.mark.parametrize("alike", [None, 0, 2, -1, True, "1", 10**40])
def test_a_row_for_several_stays_unless_all_are_named(alike):
    """Whatever is said of their number."""
    document = through(THREE_FAILED, why={"disk/n": SAID | {"alike": alike}})

    assert [REST, ("n", "complete", "failed", "R: m"), ("*", "complete", "failed", "")] == told(
        document
    )


def test_a_timeout_is_named_as_one():
    """Though Sonobuoy's annotation has no word for it."""
    late = dict.fromkeys(THREE[:2], ours(Cause.HEARTBEAT))
    gone = replace(ours(Cause.POD_FAILED), text="evicted")
    shown = told(through(large(late | {THREE[2]: gone}, closed=False)))

    assert {
        (THREE[0].node, "timed_out", "timeout", "heartbeat: the pod is gone"),
        (THREE[1].node, "timed_out", "timeout", "heartbeat: the pod is gone"),
        (THREE[2].node, "failed", "", "pod_failed: evicted"),
        REST,
    } == set(shown)


def test_the_largest_annotations_take_no_longer_than_their_size():
    """Anybody who may patch the Pod writes them, and a list of runs reads each one's."""
    many = {"plugins": [{"plugin": "a", "node": "*"}] * 4_500, "status": "running"}
    why = {f"b/{at}": {"status": "failed"} for at in range(4_050)}
    began = time.process_time()
    document = read(json.dumps(many), {"status": "running", "why": why})

    assert 8_550 == len(document["plugins"])
    assert 2 > time.process_time() - began  # it takes a tenth of that
