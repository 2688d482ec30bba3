"""Reading the API's Pod: what is in the adapter's way, disruptions, the end."""

from dataclasses import replace

import pytest

from reporter.verdict.facts import (
    Blocker,
    Container,
    Disruption,
    Form,
    Pod,
    PodGone,
    PodRefused,
    PodSeen,
    RestartPolicy,
    Running,
    Terminated,
    Waiting,
    pod_of,
)
from reporter.verdict.not_starting import Trouble, trouble_of
from reporter.verdict.pod import read_pod
from tests.unit.verdict.api_pods import AT, NAMES, NATIVE_US, START, US, container, pod_with


def blocked(*init, policy="Never", regular=()):
    """What is in the adapter's way: (declared init container, its state or None)."""
    pod = pod_with(
        container("adapter"), init=[declared for declared, _ in init], restartPolicy=policy
    )
    statuses = [{"name": one["name"], "state": state} for one, state in init if state is not None]
    status = {"initContainerStatuses": statuses, "containerStatuses": list(regular)}
    return read_pod(pod | {"status": status}, NAMES).blocker


def by(name, state, *, for_good=False):
    """The init container that is in the way, in that state."""
    return Blocker(Container(name, state), for_good=for_good)


FAILED_6 = {"terminated": {"exitCode": 6}}
DONE, RUNS = {"terminated": {"exitCode": 0}}, {"running": {}}
PULLING, NO_IMAGE = (
    {"waiting": {"reason": "ErrImagePull"}},
    {"waiting": {"reason": "ImagePullBackOff"}},
)
FIRST, SECOND = container("first"), container("second")
MESH, OTHER_MESH = (container(name, restartPolicy="Always") for name in ("mesh", "other"))
MESH_WAITS = by("mesh", Waiting("ImagePullBackOff"))
IN_THE_WAY = {
    "only us": ([(NATIVE_US, RUNS)], None),
    "all done": ([(FIRST, DONE), (SECOND, DONE)], None),
    "failed": ([(FIRST, DONE), (SECOND, FAILED_6)], by("second", Terminated(6), for_good=True)),
    "OnFailure: failed, is run again": (
        [(FIRST, FAILED_6)],
        by("first", Terminated(6)),
        "OnFailure",
    ),
    "its own policy: is run again": (
        [(FIRST | {"restartPolicy": "OnFailure"}, FAILED_6)],
        by("first", Terminated(6)),
    ),
    "waiting": ([(FIRST, PULLING), (SECOND, None)], by("first", Waiting("ErrImagePull"))),
    "running": ([(FIRST, RUNS)], by("first", Running())),
    "a sidecar that failed and will be started again": (
        [(MESH, FAILED_6)],
        by("mesh", Terminated(6)),
    ),
    "a sidecar that has ended well": ([(MESH, DONE)], None),
    "a sidecar that runs": ([(MESH, RUNS)], None),
    "a sidecar that cannot start": ([(NATIVE_US, RUNS), (MESH, NO_IMAGE)], MESH_WAITS),
    "we are never in the way": ([(NATIVE_US, NO_IMAGE)], None),
    "a sidecar before an init container": (
        [(MESH, NO_IMAGE), (FIRST, {"waiting": {"reason": "PodInitializing"}})],
        MESH_WAITS,
    ),
    "the first of two sidecars": ([(MESH, NO_IMAGE), (OTHER_MESH, NO_IMAGE)], MESH_WAITS),
    "an init container failed though a sidecar is down again": (
        [(MESH, NO_IMAGE), (FIRST, FAILED_6)],
        by("first", Terminated(6), for_good=True),
    ),
    "an init container runs though a sidecar is down again": (
        [(MESH, NO_IMAGE), (FIRST, RUNS)],
        by("first", Running()),
    ),
}


@pytest.mark.parametrize("situation", IN_THE_WAY)
def test_the_init_container_in_the_way(situation):
    """The first that has to end well and has not, or a sidecar that cannot start."""
    init, expected, *policy = IN_THE_WAY[situation]

    assert expected == blocked(*init, policy=policy[0] if policy else "Never")


NO_COMMAND = {"terminated": {"exitCode": 128, "reason": "StartError", "message": "no such file"}}


def test_a_sidecar_whose_process_cannot_be_started():
    """Under `Never` it is shown as ended between its tries, and still it is the trouble."""
    pod = pod_with(container("adapter"), init=[NATIVE_US, MESH], restartPolicy="Never")
    waits = {"name": "adapter", "state": {"waiting": {"reason": "PodInitializing"}}}
    statuses = [{"name": "mesh", "state": NO_COMMAND, "restartCount": 3}]
    status = {"initContainerStatuses": statuses, "containerStatuses": [waits]}
    read = read_pod(pod | {"status": status}, NAMES)

    assert Trouble("W3", "init container 'mesh': StartError: no such file") == trouble_of(read)
    assert not read.ended_for_good


RAN = {"terminated": {"exitCode": 1}}


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        ({"state": {"waiting": {}}}, MESH_WAITS),
        ({"state": {"running": {}}}, None),
        ({"state": RAN}, None),
        ({"state": {"waiting": {}}, "lastState": RAN}, None),
    ],
    ids=["has not started", "runs", "ended", "waits for its turn"],
)
def test_a_sidecar_holds_up_no_regular_container_that_has_started(shown, expected):
    """What is down again later keeps nobody from starting."""
    shown = {"name": "adapter"} | shown

    assert expected == blocked((MESH, NO_IMAGE), regular=[shown])


def taken(reason, status="True"):
    """A condition of the Pod that says so."""
    return {"type": "DisruptionTarget", "status": status, "reason": reason, "message": "m"}


DISRUPTIONS = {
    "none": ({}, None),
    "the API's eviction": (
        {"conditions": [taken("EvictionByEvictionAPI")]},
        Disruption("EvictionByEvictionAPI", "m"),
    ),
    "taken back": ({"conditions": [taken("r", "False")]}, None),
    "the kubelet's eviction": (
        {"reason": "Evicted", "message": "low on memory"},
        Disruption("Evicted", "low on memory", under_way=True),
    ),
    "the kubelet's, by its condition": (
        {"conditions": [taken("TerminationByKubelet")]},
        Disruption("TerminationByKubelet", "m", under_way=True),
    ),
    "announced by one, carried out by the other": (
        {"conditions": [taken("EvictionByEvictionAPI")], "reason": "Evicted", "message": "x"},
        Disruption("EvictionByEvictionAPI", "m", under_way=True),
    ),
    "preempted": ({"reason": "Preempting"}, Disruption("Preempting", "", under_way=True)),
    "node shutdown": ({"reason": "Terminated"}, Disruption("Terminated", "", under_way=True)),
    "a deadline is none": ({"reason": "DeadlineExceeded"}, None),
}


@pytest.mark.parametrize("situation", DISRUPTIONS)
def test_disruptions(situation):
    """The Pod's condition, else the reasons of the kubelet."""
    status, expected = DISRUPTIONS[situation]

    assert expected == read_pod(pod_with(US) | {"status": status}, NAMES).disruption


def unready(reason):
    """Conditions of a Pod whose containers are not ready."""
    given = {"type": "ContainersReady", "status": "False", "reason": reason}
    return [{"type": "Ready", "status": "False"}, given | {"lastTransitionTime": START}]


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ([], None),
        ([{"type": "ContainersReady", "status": "True"}], None),
        (unready("ContainersNotReady"), None),
        (unready("PodFailed"), AT),
    ],
    ids=["not shown", "ready", "only not ready", "given up"],
)
def test_the_moment_the_kubelet_gave_the_pod_up(conditions, expected):
    """The only sign of a Pod deadline while containers still run."""
    pod = pod_with(US) | {"status": {"conditions": conditions}}

    assert expected == read_pod(pod, NAMES).failing_at


def test_a_pod_in_full():
    """Every other field is taken as it stands; deletion is dated back to when it was asked for."""
    pod = pod_with(
        container("adapter"),
        init=[NATIVE_US],
        terminationGracePeriodSeconds=10,
        activeDeadlineSeconds=600,
        restartPolicy="Never",
    )
    pod["metadata"] |= {
        "uid": "u",
        "creationTimestamp": START,
        "deletionTimestamp": "2026-01-02T03:04:35Z",
        "deletionGracePeriodSeconds": 10,
        "labels": {"job-name": "old", "batch.kubernetes.io/job-name": "job", "controller-uid": "j"},
    }
    pod["status"] = {"phase": "Running", "reason": "r", "message": "m", "startTime": START}

    assert Pod(
        name="job-x7k2p",
        uid="u",
        created_at=AT,
        started_at=AT,
        phase="Running",
        reason="r",
        message="m",
        job_name="job",
        job_uid="j",
        form=Form.NATIVE,
        adapter=Container("adapter"),
        own_restart=RestartPolicy("Always"),
        not_empty_dir=True,
        deletion_requested_at=AT + 20,
        deletion_grace=10.0,
        grace=10.0,
        deadline=600.0,
    ) == read_pod(pod, NAMES)


def test_a_deletion_without_a_grace_period():
    """The moment shown is the moment asked for."""
    pod = pod_with(US)
    pod["metadata"]["deletionTimestamp"] = START

    read = read_pod(pod, NAMES)

    assert (AT, None, 30.0) == (read.deletion_requested_at, read.deletion_grace, read.grace)


RUNNING = Container("a", Running())
NEVER_STARTS = Blocker(Container("i"), for_good=True)
FAILING = Pod("p", adapter=Container("a", Terminated(1)), restart=RestartPolicy("OnFailure"))


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        (Pod("p"), False),
        (Pod("p", adapter=RUNNING, phase="Failed"), True),
        (Pod("p", adapter=RUNNING), False),
        (Pod("p", adapter=Container("a")), False),
        (Pod("p", adapter=RUNNING, blocker=NEVER_STARTS), False),
        (Pod("p", adapter=Container("a"), blocker=NEVER_STARTS), True),
        (FAILING, False),
        (replace(FAILING, failing_at=AT), True),
    ],
    ids=[
        *("no adapter", "over", "running", "waiting"),
        *("running whatever an init container says", "can never start"),
        *("OnFailure: exit 1", "OnFailure: exit 1, the Pod given up"),
    ],
)
def test_ended_for_good(pod, expected):
    """Terminated and not to be restarted, or never to be started."""
    assert expected is pod.ended_for_good
    assert (pod.restart.can_restart and not expected) is pod.may_run_again


def test_the_pod_of_a_look():
    """The last known Pod, whether or not it is still there."""
    pod = Pod("p")

    assert (pod, pod, None) == (pod_of(PodSeen(pod)), pod_of(PodGone(pod)), pod_of(PodRefused()))
