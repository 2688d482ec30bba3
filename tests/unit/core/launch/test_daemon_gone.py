"""A DaemonSet or a Pod of it goes: replaced, deleted by somebody, or removed at the end."""

import pytest

from tests.unit.core.launch.cluster import (
    NODE1,
    NODE2,
    NOW,
    Launcher,
    api_daemon_set,
    ended,
    running,
    waiting,
)
from tests.unit.core.launch.daemons import (
    BOTH,
    LEAVING,
    POD1,
    POD_FAILED,
    SET,
    UP,
    begun,
    crashed,
    daemons,
    pod,
)


class TestReplaced:
    """A Pod that goes is replaced by its DaemonSet: the entry goes on with the next one."""

    def test_its_result_counts_and_its_clock_goes_on(self):
        launcher = begun()
        launcher.look(0, **UP, pods=[pod(), pod(NODE2)])
        for after, pods in (
            (10, [pod(**LEAVING)]),
            (40, []),
            (50, [pod(number=2, phase="Pending", plugin=waiting("ContainerCreating"))]),
            (60, [pod(number=2, plugin=running(NOW + 55))]),
        ):
            made = launcher.look(after, **UP, pods=[*pods, pod(NODE2)])
            assert ({}, {}) == (made.fail, made.start)
        assert f"{SET}-node1-2" == made.shown[NODE1].name
        assert NOW == launcher.entries[NODE1].started_at

    def test_it_is_shown(self):
        launcher = begun()
        launcher.look(0, **UP, pods=[pod(), pod(NODE2)])
        shown = launcher.look(10, **UP, pods=[pod(**LEAVING), pod(NODE2)]).shown[NODE1]
        text = f"Pod {POD1} was deleted before its result came"
        assert ("PodDeleted", text) == (shown.reason, shown.message)
        shown = launcher.look(40, **UP, pods=[pod(NODE2)]).shown[NODE1]
        text = f"DaemonSet {SET} has no Pod on node node1: it is being replaced"
        assert ("NoPod", text) == (shown.reason, shown.message)

    @pytest.mark.parametrize(
        ("pods", "text"),
        [
            ([], f"DaemonSet {SET} has no Pod on node node1"),
            ([pod(**LEAVING)], f"Pod {POD1} was deleted before its result came"),
            (
                [pod(plugin=waiting("ContainerCreating"), phase="Pending", number=2)],
                f"Container 'main' of Pod {SET}-node1-2 has not started yet",
            ),
        ],
        ids=["no other one", "one that does not go", "one that does not start"],
    )
    def test_the_next_one_does_not_come(self, pods, text):
        """It has as long as the first one had: its node may be gone for ever."""
        launcher = begun(start_timeout_seconds=90)
        launcher.look(0, **UP, pods=[pod(), pod(NODE2)])
        look = {**UP, "pods": [*pods, pod(NODE2)]}
        assert {} == launcher.look(10, **look).fail
        assert {} == launcher.look(99.9, **look).fail
        (failure,) = launcher.look(100, **look).fail.values()
        assert (POD_FAILED, text) == (failure.cause, failure.text)

    def test_the_third_one_after_the_first_is_too_many(self):
        """A node that evicts all of them would otherwise do so until the deadline."""
        launcher = begun()
        out = {"phase": "Failed", "status": {"reason": "Evicted", "message": "low on memory"}}
        for number in range(1, 4):
            made = launcher.look(number, **UP, pods=[pod(number=number, **out), pod(NODE2)])
            assert {} == made.fail
        (failure,) = launcher.look(9, **UP, pods=[pod(number=4), pod(NODE2)]).fail.values()
        text = f"The Pod of DaemonSet {SET} on node node1 was replaced 3 times: "
        assert (POD_FAILED, "Replaced") == (failure.cause, failure.reason)
        assert failure.text.startswith(text)
        assert "low on memory" in failure.text

    def test_pods_that_went_unseen_count_too(self):
        launcher = begun()
        for number in range(1, 4):
            assert {} == launcher.look(number, **UP, pods=[pod(number=number), pod(NODE2)]).fail
        (failure,) = launcher.look(9, **UP, pods=[pod(number=4), pod(NODE2)]).fail.values()
        assert failure.text == f"The Pod of DaemonSet {SET} on node node1 was replaced 3 times"

    def test_a_pod_that_the_node_does_not_take(self):
        """Failed without a word that we know; its DaemonSet tries again."""
        launcher = begun()
        out = pod(phase="Failed", status={"reason": "OutOfcpu", "phase": "Failed"})
        made = launcher.look(0, **UP, pods=[out, pod(NODE2)])
        shown = made.shown[NODE1]
        assert ({}, f"Pod {POD1} has ended: Failed") == (made.fail, shown.message)

    def test_a_node_that_is_not_ready(self):
        conditions = [
            {"type": "Ready", "status": "False", "lastTransitionTime": "2026-01-01T00:00:00Z"},
            {"type": "ContainersReady", "status": "True"},
        ]
        made = begun().look(0, **UP, pods=[pod(conditions=conditions), pod(NODE2)])
        assert ({}, "NodeNotReady") == (made.fail, made.shown[NODE1].reason)


class TestDeleted:
    """Somebody has deleted the DaemonSet: nothing replaces its Pods."""

    def test_with_its_pods(self):
        launcher = begun()
        launcher.look(0, **UP, pods=[pod(), pod(NODE2)])
        pods = [pod(**LEAVING), pod(NODE2, **LEAVING)]
        assert {} == launcher.look(1, pods=pods).fail
        assert {} == launcher.look(40.9, pods=pods).fail, "a result may still be sent"
        made = launcher.look(41, pods=pods)
        text = f"DaemonSet {SET} was deleted before its result came"
        assert dict.fromkeys(BOTH, (POD_FAILED, "DaemonSetDeleted", text)) == {
            key: (each.cause, each.reason, each.text) for key, each in made.fail.items()
        }

    def test_its_pods_are_gone(self):
        launcher = begun()
        launcher.look(0, **UP, pods=[pod(), pod(NODE2)])
        assert {} == launcher.look(1).fail
        assert set(BOTH) == launcher.look(3).fail.keys()

    def test_it_waits_for_a_finalizer(self):
        leaving = {"sets": [api_daemon_set(**LEAVING)]}
        launcher = begun()
        pods = [pod(ours=ended(0), **LEAVING), pod(NODE2)]
        assert {} == launcher.look(0, **leaving, pods=pods).fail
        assert {NODE1} == launcher.look(2, **leaving, pods=pods).fail.keys()

    def test_one_that_was_not_seen_yet(self):
        """Just created, or we have just begun to look: that takes its time."""
        launcher = Launcher(daemons()).launch(*BOTH)
        assert {} == launcher.look(0).fail
        assert {} == launcher.look(59.9).fail
        assert set(BOTH) == launcher.look(60).fail.keys()


class TestRemoved:
    """When all entries are decided, as a Job is when its one entry is."""

    def test_only_when_all_are_decided(self):
        launcher = begun().receive(NODE1)
        look = {**UP, "pods": [pod(**LOGS), pod(NODE2, **LOGS)]}
        made = launcher.look(0, **look)
        assert ((NODE1,), ()) == (made.take_logs, made.delete_sets)
        launcher.receive(NODE2)
        look["taken_logs"] = frozenset({NODE1})
        made = launcher.look(1, **look)
        assert ((NODE2,), ()) == (made.take_logs, made.delete_sets)
        look["taken_logs"] = frozenset(BOTH)
        look["secrets"] = frozenset({SET})
        made = launcher.look(2, **look)
        assert ((SET,), (), ()) == (made.delete_sets, made.delete, made.delete_secrets)
        made = launcher.look(3, **look | {"sets": []})
        assert ((SET,), False) == (made.delete_secrets, made.through), "its Pods end"
        assert launcher.look(4).through

    def test_what_stays_is_named(self):
        launcher = begun().receive(NODE1).receive(NODE2)
        look = {**UP, "taken_logs": frozenset(BOTH)}
        launcher.look(0, **look)
        why = "its deletion has not been confirmed yet"
        assert {f"DaemonSet {SET}": why} == launcher.look(60, **look).stays

        launcher = begun().receive(NODE1).receive(NODE2)
        launcher.look(0, pods=[pod(NODE2)])
        stays = launcher.look(60, pods=[pod(NODE2)]).stays
        assert {f"DaemonSet {SET}": f"its Pod {SET}-node2-1 has not ended yet"} == stays

    @pytest.mark.parametrize(
        ("cleanup", "verdict", "goes"),
        [
            ("always", "failed", True),
            ("success", "passed", True),
            ("success", "failed", False),
            ("never", "passed", False),
        ],
    )
    def test_what_the_definition_keeps(self, cleanup, verdict, goes):
        """One node that has not passed keeps it for all of them."""
        launcher = begun(cleanup=cleanup).receive(NODE1, verdict).receive(NODE2)
        made = launcher.look(0, **UP, taken_logs=frozenset(BOTH))
        assert ((SET,) if goes else (), not goes) == (made.delete_sets, made.through)

    def test_a_verdict_that_is_not_known_yet(self):
        launcher = begun(cleanup="success").receive(NODE1, "").receive(NODE2)
        made = launcher.look(0, **UP, taken_logs=frozenset(BOTH))
        assert ((), False) == (made.delete_sets, made.through)

    def test_a_worker_in_the_middle_of_an_upload(self):
        """Its plugin was restarted too often, and has failed; a result that comes would count."""
        launcher = begun().receive(NODE2)
        look = {**UP, "pods": [crashed(), pod(NODE2)], "taken_logs": frozenset(BOTH)}
        assert {NODE1} == launcher.look(0, **look).fail.keys()
        assert () == launcher.look(19.9, **look).delete_sets
        assert (SET,) == launcher.look(20, **look).delete_sets


LOGS = {"status": {"containerStatuses": [{"name": "main", "state": running()}]}}
