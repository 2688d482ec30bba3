"""API objects as small values; what is foreign or damaged is read as what it is worth."""

import pytest

from reporter.launch.seen import SeenPod, newest_pods, node_is_away, read_event, read_pod
from reporter.launch.situation import Row, Situation
from reporter.run import names
from tests.unit.launch.cluster import (
    CHECK,
    NOW,
    api_pod,
    api_refusal,
    check_run,
    running,
    unscheduled,
    waiting,
)

NAME = names.entry_name("r", CHECK)
LAUNCH = check_run().launch


def test_a_pod_of_no_plugin_of_ours():
    stranger = api_pod(CHECK, running(), running())
    stranger["metadata"]["labels"][names.PLUGIN_LABEL] = "another"
    assert read_pod(stranger, LAUNCH) is None
    assert read_pod({}, LAUNCH) is None


def test_an_event_that_is_no_refusal_of_a_job():
    event = api_refusal(CHECK, "no")
    found = read_event(event)
    assert ("FailedCreate", "no", NOW) == (found.reason, found.message, found.at)
    assert read_event(event | {"reason": "SuccessfulCreate"}) is None
    pod = event["involvedObject"] | {"kind": "ReplicaSet"}
    assert read_event(event | {"involvedObject": pod}) is None
    assert read_event({}) is None


def test_of_several_pods_the_newest_counts():
    """Of two of one second the one with the greater UID, as everywhere."""
    pods = [
        SeenPod("b", "2", job="x", created_at=5.0),
        SeenPod("c", "3", job="x", created_at=5.0),
        SeenPod("a", "9", job="x", created_at=4.0),
        SeenPod("d", "1", job="y"),
    ]
    for order in (pods, pods[::-1]):
        assert ["c", "d"] == sorted(pod.name for pod in newest_pods(order).values())


def test_a_pod_that_is_taken_away_counts_last():
    """As the second one does that a Job controller has made by mistake, and deletes."""
    taken = Situation(Row.TAKEN_AWAY, "PodDeleted")
    pods = [
        SeenPod("first", "1", job="x", created_at=4.0),
        SeenPod("second", "2", job="x", created_at=5.0, taken_away=taken),
        SeenPod("old", "3", job="y", created_at=1.0, taken_away=taken),
        SeenPod("alone", "4", job="y", created_at=2.0, taken_away=taken),
    ]
    for order in (pods, pods[::-1]):
        shown = sorted(pod.name for pod in newest_pods(order).values())
        assert ["alone", "first"] == shown


def test_gated_is_not_unschedulable():
    """Whoever gates a Pod may use any words."""
    words = "no nodes available to schedule pods"
    pod = api_pod(CHECK, node="", conditions=[unscheduled(words, "SchedulingGated")])
    assert Row.SCHEDULING is read_pod(pod, LAUNCH).trouble.row


def test_what_a_stranger_says_is_made_fit_to_be_shown():
    pod = api_pod(CHECK, waiting("ErrImagePull", "\x1b[31mred\n" + "x" * 5_000), running())
    trouble = read_pod(pod, LAUNCH).trouble
    assert "[31mred x" == trouble.message[:9]
    assert 1024 == len(trouble.text)


ASIDE = "node(s) didn't satisfy plugin(s) [NodeAffinity]"
REST = (
    " no new claims to deallocate, preemption: 0/3 nodes are available: "
    "3 Preemption is not helpful for scheduling."
)


@pytest.mark.parametrize(
    "message",
    [
        f"0/3 nodes are available: 3 {ASIDE}.{REST}",
        f"0/3 nodes are available: 3 {ASIDE}.",
        f"0/3 nodes are available: 1 node(s) were unschedulable, 2 {ASIDE}.{REST}",
        f"0/2 nodes are available: 1 {ASIDE}, 1 node(s) were unschedulable.{REST}",
        f"0/12 nodes are available: 1 node(s) were unschedulable, 11 {ASIDE}.{REST}",
        "0/1 nodes are available: 1 node(s) were unschedulable.",
        "0/3 nodes are available: 3 node is filtered out by the prefilter result.",
        "no nodes available to schedule pods",
    ],
)
def test_the_node_is_gone_or_cordoned(message: str) -> None:
    assert node_is_away(message)


@pytest.mark.parametrize(
    "message",
    [
        "",
        "something else",
        f"0/3 nodes are available: 1 Insufficient cpu, 2 {ASIDE}.{REST}",
        f"0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 {ASIDE}.{REST}",
        f"0/3 nodes are available: 2 {ASIDE}, x {ASIDE}.",
        "0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu.",
        "0/3 nodes are available: 2 node(s) were unschedulable, "
        "1 node(s) didn't match Pod's node affinity/selector.",
        "0/3 nodes are available: 3 node(s) were unschedulable.",
        f"0/3 nodes are available: 1 {ASIDE}, 2 node(s) were unschedulable.",
        'persistentvolumeclaim "x" not found',
        '0/3 nodes are available: persistentvolumeclaim "x" not found.',
    ],
)
def test_the_node_may_still_take_it(message: str) -> None:
    assert not node_is_away(message)
