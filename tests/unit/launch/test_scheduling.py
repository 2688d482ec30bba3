"""What the scheduler says of a Pod that may run on one node only. Words of kube-scheduler."""

import pytest

from reporter.launch.seen import node_is_away

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
