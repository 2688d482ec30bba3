"""What keeps a plugin from starting: shown at once, a failure after its time and not before."""

import pytest

from reporter.run.names import entry_name
from reporter.run.plan import Plugin
from reporter.run.record import Cause
from tests.unit.launch.cluster import (
    CHECK,
    NODE1,
    NOW,
    Launcher,
    api_job,
    api_pod,
    api_refusal,
    check_run,
    definition,
    run_of,
    running,
    unscheduled,
    waiting,
)

JOB = api_job(CHECK)
NAME = entry_name("r", CHECK)
POD = f"{NAME}-x7k2p"
WHO = f"Container 'main' of Pod {POD}"
QUOTA = 'Error creating: pods "r-check-1" is forbidden: exceeded quota: none'
ACCOUNT = 'Error creating: pods "r-check-1" is forbidden: error looking up service account n/x'
ASIDE = "node(s) didn't satisfy plugin(s) [NodeAffinity]"
GONE = f"0/3 nodes are available: 3 {ASIDE}."
CORDONED = f"0/3 nodes are available: 1 node(s) were unschedulable, 2 {ASIDE}."
FULL = f"0/3 nodes are available: 1 Insufficient cpu, 2 {ASIDE}."
START_FAILED, POD_FAILED = Cause.START_FAILED, Cause.POD_FAILED


def pod(plugin=None, ours=None, **fields):
    """The Pod of the plugin for the whole cluster."""
    return api_pod(CHECK, plugin, ours, **fields)


def pinned(*conditions, **fields):
    """The Pod of a plugin on a node that no node has taken yet."""
    return api_pod(NODE1, node="", conditions=conditions, **fields)


def seen(*pods, jobs=(JOB,), events=()):
    """A world."""
    return {"jobs": jobs, "pods": pods, "events": events}


NODE_RUN = run_of(
    Plugin("disk", ("node1",)), definitions=[definition("disk", "done-file", driver="Node")]
)
NODE_JOB = api_job(NODE1)
NODE_POD = f"{entry_name('r', NODE1)}-x7k2p"

# Before the container has begun: what is seen, seconds, cause, reason, text.
BEFORE = {
    "its Pod is refused by a quota": (
        seen(events=[api_refusal(CHECK, QUOTA)]),
        60,
        "FailedCreate",
        f"The Job cannot create its Pod (FailedCreate: {QUOTA})",
    ),
    "so is that of somebody else's object of that name": (
        seen(events=[api_refusal(CHECK, QUOTA), api_refusal(CHECK, ACCOUNT, uid="other")]),
        60,
        "FailedCreate",
        f"The Job cannot create its Pod (FailedCreate: {QUOTA})",
    ),
    "its Pod has no service account": (
        seen(events=[api_refusal(CHECK, ACCOUNT)]),
        60,
        "FailedCreate",
        f"The Job cannot create its Pod (FailedCreate: {ACCOUNT})",
    ),
    "no Pod is made": (seen(), 600, "NoPod", "not started within 10m0s: The Job has no Pod"),
    "no node has room": (
        seen(pod(node="", conditions=[unscheduled(FULL)])),
        600,
        "Unschedulable",
        f"not started within 10m0s: Pod {POD} is pending: it cannot be scheduled ({FULL})",
    ),
    "the only node of a cluster is cordoned, and the plugin may run anywhere": (
        seen(pod(node="", conditions=[unscheduled(CORDONED)])),
        600,
        "Unschedulable",
        f"not started within 10m0s: Pod {POD} is pending: it cannot be scheduled ({CORDONED})",
    ),
    "its Pod is gated": (
        seen(pod(node="", conditions=[unscheduled("", "SchedulingGated")])),
        600,
        "SchedulingGated",
        f"not started within 10m0s: Pod {POD} is pending: it has scheduling gates (unnamed)",
    ),
    "no scheduler has spoken yet": (
        seen(pod(node="")),
        600,
        "StartTimeout",
        f"not started within 10m0s: {WHO} has not started yet",
    ),
    "its containers are being created": (
        seen(pod(waiting("ContainerCreating"), waiting("PodInitializing"))),
        600,
        "ContainerCreating",
        f"not started within 10m0s: {WHO} has not started yet",
    ),
    "its image cannot be pulled": (
        seen(pod(waiting("ErrImagePull", "not found"), running())),
        300,
        "ErrImagePull",
        "container 'main': ErrImagePull: not found",
    ),
    "the kubelet waits before it pulls again": (
        seen(pod(waiting("ImagePullBackOff", 'Back-off pulling image "a"'), running())),
        300,
        "ImagePullBackOff",
        "container 'main': ImagePullBackOff: Back-off pulling image \"a\"",
    ),
    "the registry is away": (
        seen(pod(waiting("RegistryUnavailable", "no route"), running())),
        300,
        "RegistryUnavailable",
        "container 'main': RegistryUnavailable: no route",
    ),
    "the image has an invalid name": (
        seen(pod(waiting("InvalidImageName", "bad"), running())),
        60,
        "InvalidImageName",
        "container 'main': InvalidImageName: bad",
    ),
    "the image is not there and must not be pulled": (
        seen(pod(waiting("ErrImageNeverPull", "absent"), running())),
        60,
        "ErrImageNeverPull",
        "container 'main': ErrImageNeverPull: absent",
    ),
    "a ConfigMap is missing": (
        seen(pod(waiting("CreateContainerConfigError", 'configmap "x" not found'), running())),
        60,
        "CreateContainerConfigError",
        "container 'main': CreateContainerConfigError: configmap \"x\" not found",
    ),
    "its container cannot be created": (
        seen(pod(waiting("CreateContainerError", "no command"), running())),
        60,
        "CreateContainerError",
        "container 'main': CreateContainerError: no command",
    ),
    "our own image cannot be pulled": (
        seen(pod(waiting("PodInitializing"), waiting("ErrImagePull", "not found"))),
        300,
        "ErrImagePull",
        "init container 'status-reporter': ErrImagePull: not found",
    ),
}


@pytest.mark.parametrize("case", BEFORE.values(), ids=BEFORE)
def test_a_start_that_fails(case):
    """Not a moment before its time, which the look before has named."""
    look, seconds, reason, text = case
    launcher = Launcher(check_run()).launch(CHECK)
    _fails_after(launcher, CHECK, look, seconds, (START_FAILED, reason, text))


@pytest.mark.parametrize(
    ("message", "seconds"),
    [(GONE, 60), (CORDONED, 60), (FULL, 600)],
    ids=["gone", "cordoned", "full"],
)
def test_the_node_of_an_entry_takes_no_pod(message, seconds):
    """Nobody waits long for a node that is gone; for room the start timeout is there."""
    launcher = Launcher(NODE_RUN).launch(NODE1)
    text = f"Pod {NODE_POD} is pending: it cannot be scheduled ({message})"
    if seconds == 600:
        text = f"not started within 10m0s: {text}"
    look = seen(pinned(unscheduled(message), contract="done-file"), jobs=[NODE_JOB])
    _fails_after(launcher, NODE1, look, seconds, (START_FAILED, "Unschedulable", text))


def test_a_start_timeout_of_its_own():
    launcher = Launcher(check_run(start_timeout_seconds=90)).launch(CHECK)
    text = "not started within 1m30s: The Job has no Pod"
    _fails_after(launcher, CHECK, seen(), 90, (START_FAILED, "NoPod", text))


def _fails_after(launcher, key, look, seconds, expected):
    first = launcher.look(0, **look)
    assert {} == first.fail
    before = launcher.look(seconds - 0.1, **look)
    assert {} == before.fail
    assert key in before.pods
    assert NOW + seconds == pytest.approx(before.next_look)
    failure = launcher.look(seconds, **look).fail[key]
    assert expected == (failure.cause, failure.reason, failure.text)
    assert launcher.now == failure.at
