"""Reading the status from the cluster: which Pod, and every way it can go wrong."""

import pytest

from reporter.run.annotation import STATUS_ANNOTATION, annotations
from reporter.run.pod_status import Picked, Reading, pick_pod, read_status
from reporter.run.view import ReadOutcome
from tests.unit.run.world import all_in, snapshot

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


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        pytest.param([], Picked(None), id="K4 no pod"),
        pytest.param([OTHER, {}, {"metadata": 7}], Picked(None), id="none of ours"),
        pytest.param([OTHER, FIRST], Picked(FIRST), id="by its label"),
        pytest.param([MASTER], Picked(MASTER), id="only the old label"),
        pytest.param([MASTER, FIRST], Picked(FIRST), id="K5 both labels: the new one wins"),
        pytest.param(
            [FIRST, SECOND],
            Picked(
                FIRST,
                "found 2 aggregators: n/a, n/b; showing n/a",
            ),
            id="K5 several pods",
        ),
        pytest.param(
            [MASTER, MASTER2],
            Picked(MASTER, "found 2 aggregators: n/m, n/m2; showing n/m"),
            id="several pods with the old label",
        ),
        pytest.param(
            [FIRST, ELSEWHERE],
            Picked(
                FIRST,
                "found 2 aggregators: n/a, o/a; showing n/a; choose another with -n NAMESPACE",
            ),
            id="two runs in two namespaces",
        ),
        pytest.param(
            [FIRST] * 7,
            Picked(FIRST, "found 7 aggregators: n/a, n/a, n/a, n/a, n/a and 2 more; showing n/a"),
            id="many runs",
        ),
    ],
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


@pytest.mark.parametrize(
    ("it", "outcome", "detail"),
    [
        pytest.param(
            pod(phase="Pending"), ReadOutcome.POD_NOT_RUNNING, "the pod is Pending", id="K4 pending"
        ),
        pytest.param(
            pod(phase="Pending", containerStatuses=[RUNNING, waiting("ErrImagePull")]),
            ReadOutcome.POD_NOT_RUNNING,
            PULL,
            id="K4 pending, the first container is not waiting",
        ),
        pytest.param(
            pod(phase="Pending", initContainerStatuses=[waiting("ErrImagePull")]),
            ReadOutcome.POD_NOT_RUNNING,
            PULL,
            id="an init container's image",
        ),
        pytest.param(
            pod(phase="Pending", containerStatuses=[waiting("ContainerCreating"), {}, 7]),
            ReadOutcome.POD_NOT_RUNNING,
            "the pod is Pending",
            id="no trouble with images",
        ),
        pytest.param(
            pod(phase="Pending", conditions=[{"type": "Ready", "status": "False"}, NO_NODE]),
            ReadOutcome.POD_NOT_RUNNING,
            "the pod is Pending: 0/1 nodes are available: 1 Too many pods.",
            id="no node takes it",
        ),
        pytest.param(
            pod(phase="Pending", conditions=[NO_NODE | {"message": ""}]),
            ReadOutcome.POD_NOT_RUNNING,
            "the pod is Pending",
            id="no node takes it, nobody says why",
        ),
        pytest.param(
            pod(phase="Pending", conditions=[NO_NODE | {"status": "True"}]),
            ReadOutcome.POD_NOT_RUNNING,
            "the pod is Pending",
            id="a node has taken it",
        ),
        pytest.param(
            pod(phase="Succeeded", value="{}"),
            ReadOutcome.POD_NOT_RUNNING,
            "the pod is Succeeded",
            id="it has ended",
        ),
        pytest.param({}, ReadOutcome.POD_NOT_RUNNING, "the pod is without a phase", id="no status"),
        pytest.param(
            pod(),
            ReadOutcome.NO_STATUS,
            f"the pod has no annotation {STATUS_ANNOTATION}",
            id="K4 no annotation",
        ),
        *(
            pytest.param(pod(value=value), ReadOutcome.BAD_STATUS, NOT_JSON, id=f"K4 bad JSON {at}")
            for at, value in enumerate(("", "{", "[" * 100_000))
        ),
        *(
            pytest.param(
                pod(value=value), ReadOutcome.BAD_STATUS, NO_KNOWN, id=f"not a status {value}"
            )
            for value in ("[]", "null", "{}", '{"status":"great"}', '{"status":["running"]}')
        ),
    ],
)
def test_a_status_that_cannot_be_read(it, outcome, detail):
    """A typed outcome, the Pod, and what is in the way."""
    assert Reading(outcome, it, None, "w", detail) == read_status(it, "w")


@pytest.mark.parametrize("word", ["running", "post-processing", "complete", "failed"])
def test_a_status(word):
    """The four words, and whatever else is in it."""
    it = pod(value=f'{{"status":"{word}","plugins":null}}')
    assert Reading(ReadOutcome.OK, it, {"status": word, "plugins": None}) == read_status(it)


def test_what_we_write_we_can_read():
    """Both ends of the annotation."""
    for run in (snapshot(), all_in()):
        read = read_status(pod(value=annotations(run, strict=False).status))
        assert ReadOutcome.OK is read.outcome
