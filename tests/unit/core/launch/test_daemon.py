"""A plugin whose Pods are made by one DaemonSet: when it is made, and what it fails for."""

import pytest

from reporter.core.launch import names
from tests.unit.core.launch.cluster import (
    NODE1,
    NODE2,
    NOW,
    Launcher,
    api_daemon_set,
    api_job,
    api_refusal,
    ended,
    running,
    unscheduled,
    waiting,
)
from tests.unit.core.launch.daemons import (
    BOTH,
    LEAVING,
    LOST,
    POD1,
    POD_FAILED,
    SET,
    SHARED,
    START_FAILED,
    UP,
    begun,
    crashed,
    daemons,
    pod,
)


class TestLaunch:
    """Once for all nodes, whatever happens between two requests."""

    def test_all_nodes_at_once(self):
        """Waves would need a second one."""
        launcher = Launcher(daemons(most=1))
        made = launcher.look(0)
        assert ((NODE1,), ()) == (made.create, made.adopt)
        made = launcher.look(1, **UP)
        assert ((), BOTH) == (made.create, made.adopt)
        launcher.launch(*BOTH, at=NOW + 1)
        made = launcher.look(2, **UP)
        assert ((), ()) == (made.create, made.adopt)

    def test_launches_of_which_only_some_are_stored(self):
        """As after a result that came first: nothing is made again."""
        launcher = Launcher(daemons()).receive(NODE1)
        made = launcher.look(0, **UP)
        assert ((), (NODE2,)) == (made.create, made.adopt)
        assert (NODE2,) == Launcher(daemons()).receive(NODE1).look(0).create

    @pytest.mark.parametrize(
        "theirs",
        [
            api_daemon_set(owner="somebody"),
            api_daemon_set(annotations={}),
            api_daemon_set(annotations=names.annotations(NODE1)),
        ],
    )
    def test_a_name_that_is_taken(self, theirs):
        made = Launcher(daemons()).look(0, sets=[theirs])
        text = f"DaemonSet {SET} exists already and does not belong to this run"
        assert dict.fromkeys(BOTH, ("NameTaken", text, START_FAILED)) == {
            key: (failure.reason, failure.text, failure.cause) for key, failure in made.fail.items()
        }
        assert ((), (), ()) == (made.create, made.adopt, made.delete_sets)

    def test_jobs_of_the_same_names_are_not_its(self):
        """Whoever made them, and whatever they say."""
        named = {"name": SET, "annotations": names.annotations(SHARED)}
        jobs = [api_job(NODE1), api_job(SHARED, **named)]
        made = Launcher(daemons()).look(0, jobs=jobs)
        assert ((NODE1,), (), (), {}) == (made.create, made.adopt, made.delete, made.fail)

    def test_it_is_refused(self):
        made = Launcher(daemons()).look(0, denied={SET: "exceeded quota"})
        expected = ("DaemonSetRefused", f"DaemonSet {SET} was refused: exceeded quota")
        found = {(failure.reason, failure.text) for failure in made.fail.values()}
        assert ({expected}, ()) == (found, made.create)

    def test_one_that_is_there_without_a_record_of_it_is_removed(self):
        """The state was lost: nothing is launched a second time."""
        launcher = Launcher(daemons(), begun=False)
        made = launcher.look(0, **UP)
        assert dict.fromkeys(BOTH, LOST) == {key: each.cause for key, each in made.fail.items()}
        assert (SET,) == launcher.look(1, **UP).delete_sets


REFUSED = api_refusal(SHARED, 'pods "x" is forbidden: exceeded quota')
REFUSED["involvedObject"]["kind"] = "DaemonSet"
GONE = "0/3 nodes are available: 3 node(s) didn't satisfy plugin(s) [NodeAffinity]."
NO_POD = (
    f"not started within 10m0s: DaemonSet {SET} has no Pod on node node1: the node is gone, or the "
    "DaemonSet cannot run there"
)
BEFORE = {
    "it makes no Pod on a node": ([], [], 600, "NoPod", NO_POD),
    "its Pods are refused": (
        [],
        [REFUSED],
        60,
        "exceeded quota",
        None,
    ),
    "its Pod fits no node": (
        [pod(plugin=waiting(""), phase="Pending", node="", conditions=[unscheduled(GONE)])],
        [],
        60,
        "Unschedulable",
        None,
    ),
    "its Pod is always about to start": (
        [pod(plugin=waiting("ContainerCreating"), phase="Pending")],
        [],
        600,
        "ContainerCreating",
        f"not started within 10m0s: Container 'main' of Pod {POD1} has not started yet",
    ),
    "its image cannot be pulled": (
        [pod(plugin=waiting("ErrImagePull", "no such image"), phase="Pending")],
        [],
        300,
        "ErrImagePull",
        "container 'main': ErrImagePull: no such image",
    ),
    "its Pod is deleted before it starts, and does not go": (
        [pod(plugin=waiting("ContainerCreating"), phase="Pending", **LEAVING)],
        [],
        600,
        "PodDeleted",
        f"not started within 10m0s: Pod {POD1} was deleted before its result came",
    ),
}


@pytest.mark.parametrize("case", BEFORE.values(), ids=BEFORE)
def test_a_start_that_fails(case):
    """No deadline runs before a plugin has started: the start timeout ends each of these."""
    pods, events, seconds, reason, text = case
    launcher = Launcher(daemons()).launch(*BOTH).started(NODE2)
    look = {**UP, "pods": [*pods, pod(NODE2)], "events": events}
    assert {} == launcher.look(0, **look).fail
    before = launcher.look(seconds - 0.1, **look)
    assert ({}, True) == (before.fail, NODE1 in before.shown)
    (failure,) = launcher.look(seconds, **look).fail.values()
    assert (START_FAILED, True) == (failure.cause, reason in f"{failure.reason} {failure.text}")
    assert text is None or text == failure.text


def test_a_plugin_that_ends_again_and_again():
    """Shown from the first end on; after the third restart it has failed."""
    launcher = begun()
    look = {**UP, "pods": [crashed(restarts=0, state=ended(1)), pod(NODE2)]}
    made = launcher.look(0, **look)
    text = f"Container 'main' of Pod {POD1} ended: exit code 1 (Error)"
    assert ({}, text) == (made.fail, made.shown[NODE1].message)
    look["pods"][0] = crashed(restarts=2)
    made = launcher.look(500, **look)
    shown = made.shown[NODE1]
    assert ({}, "CrashLoopBackOff", 2) == (made.fail, shown.reason, shown.restarts)
    assert f"{text}; restarts: 2" == shown.message
    look["pods"][0] = crashed(restarts=3)
    (failure,) = launcher.look(501, **look).fail.values()
    assert (POD_FAILED, "Restarted") == (failure.cause, failure.reason)
    assert failure.text == (
        f"Container 'main' of Pod {POD1} was restarted 3 times; the last time it ended: exit code "
        "1 (Error)"
    )


def test_a_plugin_that_ends_again_while_its_result_is_being_uploaded():
    """That upload decides; when it has failed, the restarts do."""
    launcher = begun()
    look = {**UP, "pods": [crashed(), pod(NODE2)]}
    made = launcher.look(0, **look, uploading=frozenset({NODE1}))
    assert ({}, "Restarted") == (made.fail, made.shown[NODE1].reason)
    assert made.next_look is None or made.next_look > NOW, "it would look again and again"
    assert {} == launcher.look(600, **look, uploading=frozenset({NODE1})).fail
    made = launcher.look(601, **look, uploading=frozenset({NODE2}))
    assert {NODE1: "Restarted"} == {key: each.reason for key, each in made.fail.items()}


def test_a_plugin_whose_ends_nobody_knows():
    shown = {"state": running(), "restartCount": 3}
    (failure,) = begun().look(0, **UP, pods=[pod(plugin=shown), pod(NODE2)]).fail.values()
    assert f"Container 'main' of Pod {POD1} was restarted 3 times" == failure.text


def test_a_plugin_that_ends_well_again_and_again():
    """It should have waited: its worker may be sending a result, so its deadline decides."""
    launcher = begun()
    assert {} == launcher.look(0, **UP, pods=[crashed(0, 9), pod(NODE2)]).fail
    look = {**UP, "pods": [crashed(0, 9, ours=ended(1)), pod(NODE2)]}
    assert {NODE1} == launcher.look(1, **look).fail.keys()
    linked = begun("link")
    look = {**UP, "pods": [crashed(0, 3, contract="link"), pod(NODE2, contract="link")]}
    assert {NODE1} == linked.look(0, **look).fail.keys()
