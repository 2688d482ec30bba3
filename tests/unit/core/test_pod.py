"""Reading the API's Pod: the adapter, the form, states, restart policies, what is in the way."""

import pytest

from reporter.core.facts import (
    Blocker,
    Container,
    Disruption,
    Form,
    Pod,
    PodGone,
    PodRefused,
    PodSeen,
    RestartPolicy,
    RestartRule,
    Running,
    Terminated,
    Waiting,
    pod_of,
)
from reporter.core.objects import epoch, number, stamp
from reporter.core.pod import PROXIES, Names, find_adapter, find_form, read_pod

START = "2026-01-02T03:04:05Z"
AT = 1_767_323_045.0
NAMES = Names()
RESULTS = {"name": "results", "mountPath": "/results"}
READ_ONLY = RESULTS | {"readOnly": True}
OTHER = {"name": "cache", "mountPath": "/cache"}
US = {"name": "status-reporter", "volumeMounts": [READ_ONLY]}
NATIVE_US = US | {"restartPolicy": "Always"}


def container(name, *mounts, **fields):
    """A declared container."""
    return {"name": name, "volumeMounts": list(mounts), **fields}


def pod_with(*containers, init=(), annotations=None, **spec):
    """An API Pod with these containers."""
    return {
        "metadata": {"name": "job-x7k2p", "annotations": annotations or {}},
        "spec": {"containers": list(containers), "initContainers": list(init), **spec},
    }


def shown(state, **fields):
    """An API Pod whose adapter is in that state."""
    pod = pod_with(container("adapter"), init=[NATIVE_US])
    status = {"name": "adapter", "state": state, **fields}
    return pod | {"status": {"containerStatuses": [status]}}


def default(name):
    """The annotation that names a default container."""
    return {"kubectl.kubernetes.io/default-container": name}


FOUND = {
    "the only one that is not ours": (pod_with(US, container("a")), NAMES, "a"),
    "native: the only regular one": (pod_with(container("a"), init=[NATIVE_US]), NAMES, "a"),
    "the setting": (
        pod_with(US, container("a"), container("b"), annotations=default("a")),
        Names(adapter="b"),
        "b",
    ),
    "the annotation": (
        pod_with(US, container("a", RESULTS), container("b"), annotations=default("b")),
        NAMES,
        "b",
    ),
    "an annotation that names us is passed over": (
        pod_with(US, container("a"), annotations=default("status-reporter")),
        NAMES,
        "a",
    ),
    "an annotation that names nobody is passed over": (
        pod_with(US, container("a"), annotations=default("gone")),
        NAMES,
        "a",
    ),
    "an annotation that names an init container is passed over": (
        pod_with(US, container("a"), init=[container("i")], annotations=default("i")),
        NAMES,
        "a",
    ),
    "the only one that can write the results": (
        pod_with(US, container("a", OTHER), container("b", RESULTS), container("c", READ_ONLY)),
        NAMES,
        "b",
    ),
    "a mesh proxy first in the list": (
        pod_with(container("istio-proxy", RESULTS), US, container("b", RESULTS)),
        NAMES,
        "b",
    ),
    "native: our mount says which volume it is": (
        pod_with(
            container("a", OTHER),
            container("b", {"name": "results", "mountPath": "/out"}),
            init=[NATIVE_US],
        ),
        NAMES,
        "b",
    ),
    "the longest mount path leads to the file": (
        pod_with(
            container(
                "status-reporter",
                {"name": "root", "mountPath": "/"},
                {"name": "results", "mountPath": "/results/"},
                {"name": "near", "mountPath": "/result"},
            ),
            container("a", {"name": "root", "mountPath": "/"}),
            container("b", RESULTS),
        ),
        NAMES,
        "b",
    ),
    "our own name is not in the Pod: the writer is found by the others' mounts": (
        pod_with(container("reporter", READ_ONLY), container("b", RESULTS)),
        NAMES,
        "b",
    ),
}


@pytest.mark.parametrize(("pod", "names", "expected"), FOUND.values(), ids=FOUND.keys())
def test_the_adapter_is_found_without_a_remark(pod, names, expected):
    """By the setting, the annotation, being alone, or being the only writer."""
    assert (expected, "", ()) == find_adapter(pod, names)


@pytest.mark.parametrize("proxy", sorted(PROXIES))
def test_known_proxies_are_no_adapters(proxy):
    """Whatever an injected proxy mounts."""
    pod = pod_with(container(proxy, RESULTS), US, container("b", RESULTS))

    assert ("b", "", ()) == find_adapter(pod, NAMES)


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(pod_with(US, container("a"), container("b")), id="no writer"),
        pytest.param(
            pod_with(US, container("a", RESULTS), container("b", RESULTS)), id="two writers"
        ),
        pytest.param(
            pod_with(container("status-reporter"), container("a", OTHER), container("b", RESULTS)),
            id="we do not mount the results",
        ),
    ],
)
def test_where_nothing_tells_the_first_is_taken_with_a_remark(pod):
    """As the older product does, but loudly."""
    assert (
        "a",
        "",
        ("adapter container guessed: 'a' is the first of a, b",),
    ) == find_adapter(pod, NAMES)


MISFITS = {
    "no such container": (
        pod_with(US, container("a"), init=[container("i")]),
        Names(adapter="b"),
        "'b' is not a container of the Pod; containers: status-reporter, a; init containers: i",
    ),
    "an init container named as adapter": (
        pod_with(container("a"), init=[NATIVE_US, container("i")]),
        Names(adapter="i"),
        "'i' is an init container of the Pod; containers: a; init containers: status-reporter, i",
    ),
    "the reporter named as adapter": (
        pod_with(US, container("a")),
        Names(adapter="status-reporter"),
        "'status-reporter' is the reporter itself;"
        " containers: status-reporter, a; init containers: none",
    ),
    "nobody besides us": (
        pod_with(US),
        NAMES,
        "the Pod has no container besides 'status-reporter'",
    ),
    "nobody at all": ({}, NAMES, "the Pod has no container besides 'status-reporter'"),
    "our own name is not in the Pod, and nothing tells": (
        pod_with(container("reporter"), container("a")),
        NAMES,
        "'status-reporter' is not a container of the Pod;"
        " containers: reporter, a; init containers: none",
    ),
    "a container without a name": (
        pod_with(US, {"image": "x"}),
        NAMES,
        "the Pod has no container besides 'status-reporter'",
    ),
    "no containers where one is named": (
        {},
        Names(adapter="a"),
        "'a' is not a container of the Pod; containers: none; init containers: none",
    ),
}


@pytest.mark.parametrize(("pod", "names", "expected"), MISFITS.values(), ids=MISFITS.keys())
def test_settings_that_do_not_fit_name_the_containers_that_exist(pod, names, expected):
    """No adapter, and the reason for row M."""
    assert ("", expected, ()) == find_adapter(pod, names)
    assert (None, expected) == (read_pod(pod, names).adapter, read_pod(pod, names).misfit)


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(pod_with(US, container("a")), Form.CLASSIC, id="regular container"),
        pytest.param(pod_with(container("a"), init=[NATIVE_US]), Form.NATIVE, id="init container"),
        pytest.param(pod_with(container("a")), None, id="not in the Pod"),
    ],
)
def test_the_form_is_where_our_container_stands(pod, expected):
    """By our own name in the Pod's spec."""
    assert expected is find_form(pod["spec"], "status-reporter")
    assert expected is read_pod(pod, NAMES).form


def test_the_form_that_was_set_is_kept():
    """REPORTER_FORM needs no right to read Pods, and no search."""
    pod = pod_with(container("a"), init=[NATIVE_US])

    assert Form.CLASSIC is read_pod(pod, Names(form=Form.CLASSIC)).form


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        pytest.param({}, Waiting(), id="nothing"),
        pytest.param({"waiting": {}}, Waiting(), id="waiting without a word"),
        pytest.param(
            {"waiting": {"reason": "ErrImagePull", "message": "m"}},
            Waiting("ErrImagePull", "m"),
            id="waiting",
        ),
        pytest.param({"running": {"startedAt": START}}, Running(AT), id="running"),
        pytest.param({"running": {}}, Running(), id="running without a time"),
        pytest.param(
            {
                "terminated": {
                    "exitCode": 137,
                    "signal": 9,
                    "reason": "OOMKilled",
                    "message": "m",
                    "startedAt": START,
                    "finishedAt": "2026-01-02T03:04:06Z",
                }
            },
            Terminated(137, "OOMKilled", "m", AT, AT + 1, 9),
            id="terminated",
        ),
        pytest.param(
            {
                "terminated": {
                    "exitCode": 128,
                    "reason": "StartError",
                    "startedAt": "1970-01-01T00:00:00Z",
                }
            },
            Terminated(128, "StartError"),
            id="never started: the API's zero time is none",
        ),
    ],
)
def test_states(state, expected):
    """As the API shows them; what is missing reads as empty."""
    assert Container("adapter", expected) == read_pod(shown(state), NAMES).adapter


def test_last_state_and_restarts():
    """The run before, and how often there was one."""
    pod = shown({"running": {}}, restartCount=2, lastState={"terminated": {"exitCode": 1}})

    assert Container("adapter", Running(), Terminated(1), 2) == read_pod(pod, NAMES).adapter


def test_a_pod_without_status_has_not_started():
    """The first event has none of the lists."""
    pod = read_pod(pod_with(container("adapter"), init=[NATIVE_US]), NAMES)

    assert (Container("adapter"), None) == (pod.adapter, pod.blocker)
    assert (Waiting(), False) == (pod.adapter_state, pod.ended_for_good)


POLICIES = {
    "the Pod's": (container("adapter"), {"restartPolicy": "OnFailure"}, RestartPolicy("OnFailure")),
    "the API's default": (container("adapter"), {}, RestartPolicy("Always")),
    "the container's own": (
        container("adapter", restartPolicy="Never"),
        {"restartPolicy": "OnFailure"},
        RestartPolicy("Never"),
    ),
    "the container's rules": (
        container(
            "adapter",
            restartPolicy="Never",
            restartPolicyRules=[
                {"action": "Restart", "exitCodes": {"operator": "In", "values": [42, 43]}},
                {
                    "action": "RestartAllContainers",
                    "exitCodes": {"operator": "NotIn", "values": [1]},
                },
                {"action": "SomethingNew", "exitCodes": {"operator": "In", "values": [1]}},
                {"action": "Restart"},
            ],
        ),
        {},
        RestartPolicy(
            "Never",
            (
                RestartRule(frozenset({42, 43}), among=True),
                RestartRule(frozenset({1}), among=False),
            ),
        ),
    ),
}


@pytest.mark.parametrize(("declared", "spec", "expected"), POLICIES.values(), ids=POLICIES.keys())
def test_restart_policies(declared, spec, expected):
    """The container's own come before the Pod's."""
    pod = pod_with(declared, init=[NATIVE_US], **spec)

    assert expected == read_pod(pod, NAMES).restart


def test_our_own_restart_policy():
    """It tells whether our exit code is counted, whatever holds for the adapter."""
    adapter = container("adapter", restartPolicy="Never")

    pod = read_pod(pod_with(US, adapter, restartPolicy="OnFailure"), NAMES)

    assert (RestartPolicy("Never"), RestartPolicy("OnFailure")) == (pod.restart, pod.own_restart)


@pytest.mark.parametrize(
    ("policy", "code", "expected"),
    [
        (RestartPolicy("Never"), 0, False),
        (RestartPolicy("Never"), 1, False),
        (RestartPolicy("OnFailure"), 0, False),
        (RestartPolicy("OnFailure"), 1, True),
        (RestartPolicy("Always"), 0, True),
        (RestartPolicy("Never", (RestartRule(frozenset({42}), among=True),)), 42, True),
        (RestartPolicy("Never", (RestartRule(frozenset({42}), among=True),)), 1, False),
        (RestartPolicy("Never", (RestartRule(frozenset({42}), among=False),)), 42, False),
        (RestartPolicy("Never", (RestartRule(frozenset({42}), among=False),)), 1, True),
    ],
)
def test_who_is_started_again(policy, code, expected):
    """Rules first, then the policy; exit 0 is a success under OnFailure."""
    assert expected is policy.restarts_after(code)


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (RestartPolicy("Never"), False),
        (RestartPolicy("OnFailure"), True),
        (RestartPolicy("Never", (RestartRule(frozenset({42}), among=True),)), True),
    ],
)
def test_who_can_be_started_again(policy, expected):
    """Only Never without rules ends for good whatever happens."""
    assert expected is policy.can_restart


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
        pytest.param([(MESH, FAILED_6)], "Never", None, id="a sidecar that is started again"),
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

    assert (pod, pod, None) == (
        pod_of(PodSeen(pod)),
        pod_of(PodGone(pod)),
        pod_of(PodRefused()),
    )


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (START, AT),
        ("2026-01-02T04:04:05+01:00", AT),
        ("2026-01-02T03:04:05.5Z", AT + 0.5),
        ("1970-01-01T00:00:00Z", None),
        ("0001-01-01T00:00:00Z", None),
        ("0001-01-01T00:00:00+23:59", None),
        ("2026-01-02T03:04:05", None),
        ("2026-01-02", None),
        ("soon", None),
        ("", None),
    ],
)
def test_times_of_the_api(shown, expected):
    """RFC 3339 with an offset; zero times are no times."""
    assert expected == epoch(shown)


def test_the_last_moment_of_the_calendar():
    """A far offset on the last day of the year 9999 is a time like any other."""
    assert stamp(epoch("9999-12-31T23:59:59-23:59")) == "9999-12-31T23:59:59Z"


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (AT + 0.9, START),
        (0, "1970-01-01T00:00:00Z"),
        (-1, "1970-01-01T00:00:00Z"),
        (253_402_300_799, "9999-12-31T23:59:59Z"),
        (253_402_300_800, "9999-12-31T23:59:59Z"),
        (2**63, "9999-12-31T23:59:59Z"),
        (float("inf"), "9999-12-31T23:59:59Z"),
        (float("-inf"), "1970-01-01T00:00:00Z"),
        (float("nan"), "1970-01-01T00:00:00Z"),
    ],
)
def test_times_are_written_whole_and_always_have_a_date(seconds, expected):
    """An adapter can set its file's times to anything."""
    assert expected == stamp(seconds)


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (5, 5),
        (-(2**63), -(2**63)),
        (2**63 - 1, 2**63 - 1),
        (2**63, None),
        (10**400, None),
        (True, None),
        (5.0, None),
        ("5", None),
        (None, None),
    ],
)
def test_numbers_of_the_api(shown, expected):
    """Integers of 64 bits, nothing else."""
    assert expected == number({"n": shown}, "n")


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        ({}, None),
        ({"initContainerStatuses": [{"name": "status-reporter", "restartCount": 2}]}, 2),
        ({"containerStatuses": [{"name": "status-reporter", "restartCount": 0}]}, 0),
        ({"containerStatuses": [{"name": "adapter", "restartCount": 3}]}, None),
        ({"containerStatuses": [{"name": "status-reporter"}]}, None),
    ],
)
def test_how_often_the_reporter_was_restarted(statuses, expected):
    """In both forms; nothing where the API does not show it."""
    assert expected == read_pod({"status": statuses}, NAMES).own_restarts
