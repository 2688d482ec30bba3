"""Reading the API's Pod: what is in the adapter's way, disruptions, the end."""

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


FAILED_6 = {"terminated": {"exitCode": 6}}


DONE = {"terminated": {"exitCode": 0}}


FIRST, SECOND = container("first"), container("second")


MESH = container("mesh", restartPolicy="Always")


NO_IMAGE = {"waiting": {"reason": "ImagePullBackOff"}}


MESH_WAITS = Blocker(Container("mesh", Waiting("ImagePullBackOff")), for_good=False)


@pytest.mark.parametrize(
    ("init", "policy", "expected"),
    [
        pytest.param([(NATIVE_US, {"running": {}})], "Never", None, id="only us"),
        pytest.param([(FIRST, DONE), (SECOND, DONE)], "Never", None, id="all done"),
        pytest.param(
            [(FIRST, DONE), (SECOND, FAILED_6)],
            "Never",
            Blocker(Container("second", Terminated(6)), for_good=True),
            id="failed",
        ),
        pytest.param(
            [(FIRST, FAILED_6)],
            "OnFailure",
            Blocker(Container("first", Terminated(6)), for_good=False),
            id="OnFailure: failed, is run again",
        ),
        pytest.param(
            [(FIRST | {"restartPolicy": "OnFailure"}, FAILED_6)],
            "Never",
            Blocker(Container("first", Terminated(6)), for_good=False),
            id="its own policy: is run again",
        ),
        pytest.param(
            [(FIRST, {"waiting": {"reason": "ErrImagePull"}}), (SECOND, None)],
            "Never",
            Blocker(Container("first", Waiting("ErrImagePull")), for_good=False),
            id="waiting",
        ),
        pytest.param(
            [(FIRST, {"running": {}})],
            "Never",
            Blocker(Container("first", Running()), for_good=False),
            id="running",
        ),
        pytest.param(
            [(MESH, FAILED_6)],
            "Never",
            Blocker(Container("mesh", Terminated(6)), for_good=False),
            id="a sidecar that failed and will be started again",
        ),
        pytest.param([(MESH, DONE)], "Never", None, id="a sidecar that has ended well"),
        pytest.param([(MESH, {"running": {}})], "Never", None, id="a sidecar that runs"),
        pytest.param(
            [(NATIVE_US, {"running": {}}), (MESH, NO_IMAGE)],
            "Never",
            MESH_WAITS,
            id="a sidecar that cannot start",
        ),
        pytest.param([(NATIVE_US, NO_IMAGE)], "Never", None, id="we are never in the way"),
        pytest.param(
            [(MESH, NO_IMAGE), (FIRST, {"waiting": {"reason": "PodInitializing"}})],
            "Never",
            MESH_WAITS,
            id="a sidecar before an init container",
        ),
        pytest.param(
            [(MESH, NO_IMAGE), (container("other", restartPolicy="Always"), NO_IMAGE)],
            "Never",
            MESH_WAITS,
            id="the first of two sidecars",
        ),
        pytest.param(
            [(MESH, NO_IMAGE), (FIRST, FAILED_6)],
            "Never",
            Blocker(Container("first", Terminated(6)), for_good=True),
            id="an init container failed though a sidecar is down again",
        ),
        pytest.param(
            [(MESH, NO_IMAGE), (FIRST, {"running": {}})],
            "Never",
            Blocker(Container("first", Running()), for_good=False),
            id="an init container runs though a sidecar is down again",
        ),
    ],
)
def test_the_init_container_in_the_way(init, policy, expected):
    """The first that has to end well and has not, or a sidecar that cannot start."""
    assert expected == blocked(*init, policy=policy)


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
        pytest.param({"state": {"waiting": {}}}, MESH_WAITS, id="has not started"),
        pytest.param({"state": {"running": {}}}, None, id="runs"),
        pytest.param({"state": RAN}, None, id="ended"),
        pytest.param({"state": {"waiting": {}}, "lastState": RAN}, None, id="waits for its turn"),
    ],
)
def test_a_sidecar_holds_up_no_regular_container_that_has_started(shown, expected):
    """What is down again later keeps nobody from starting."""
    shown = {"name": "adapter"} | shown

    assert expected == blocked((MESH, NO_IMAGE), regular=[shown])


DISRUPTION = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "EvictionByEvictionAPI",
    "message": "m",
}


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param({}, None, id="none"),
        pytest.param(
            {"conditions": [DISRUPTION]},
            Disruption("EvictionByEvictionAPI", "m"),
            id="the API's eviction",
        ),
        pytest.param(
            {"conditions": [{"type": "DisruptionTarget", "status": "False", "reason": "r"}]},
            None,
            id="taken back",
        ),
        pytest.param(
            {"reason": "Evicted", "message": "low on memory"},
            Disruption("Evicted", "low on memory", under_way=True),
            id="the kubelet's eviction",
        ),
        pytest.param(
            {"conditions": [DISRUPTION | {"reason": "TerminationByKubelet"}]},
            Disruption("TerminationByKubelet", "m", under_way=True),
            id="the kubelet's, by its condition",
        ),
        pytest.param(
            {"conditions": [DISRUPTION], "reason": "Evicted", "message": "low on memory"},
            Disruption("EvictionByEvictionAPI", "m", under_way=True),
            id="announced by one, carried out by the other",
        ),
        pytest.param(
            {"reason": "Preempting"}, Disruption("Preempting", "", under_way=True), id="preempted"
        ),
        pytest.param(
            {"reason": "Terminated"},
            Disruption("Terminated", "", under_way=True),
            id="node shutdown",
        ),
        pytest.param({"reason": "DeadlineExceeded"}, None, id="a deadline is none"),
    ],
)
def test_disruptions(status, expected):
    """The Pod's condition, else the reasons of the kubelet."""
    assert expected == read_pod(pod_with(US) | {"status": status}, NAMES).disruption


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        pytest.param([], None, id="not shown"),
        pytest.param([{"type": "ContainersReady", "status": "True"}], None, id="ready"),
        pytest.param(
            [
                {
                    "type": "ContainersReady",
                    "status": "False",
                    "reason": "ContainersNotReady",
                    "lastTransitionTime": START,
                }
            ],
            None,
            id="only not ready",
        ),
        pytest.param(
            [
                {"type": "Ready", "status": "False"},
                {
                    "type": "ContainersReady",
                    "status": "False",
                    "reason": "PodFailed",
                    "lastTransitionTime": START,
                },
            ],
            AT,
            id="given up",
        ),
    ],
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


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(Pod("p"), False, id="no adapter"),
        pytest.param(Pod("p", adapter=Container("a", Running()), phase="Failed"), True, id="over"),
        pytest.param(Pod("p", adapter=Container("a", Running())), False, id="running"),
        pytest.param(Pod("p", adapter=Container("a")), False, id="waiting"),
        pytest.param(
            Pod(
                "p",
                adapter=Container("a", Running()),
                blocker=Blocker(Container("i"), for_good=True),
            ),
            False,
            id="running whatever an init container says",
        ),
        pytest.param(
            Pod("p", adapter=Container("a"), blocker=Blocker(Container("i"), for_good=True)),
            True,
            id="can never start",
        ),
        pytest.param(
            Pod("p", adapter=Container("a", Terminated(1)), restart=RestartPolicy("OnFailure")),
            False,
            id="OnFailure: exit 1",
        ),
        pytest.param(
            Pod(
                "p",
                adapter=Container("a", Terminated(1)),
                restart=RestartPolicy("OnFailure"),
                failing_at=AT,
            ),
            True,
            id="OnFailure: exit 1, the Pod given up",
        ),
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
