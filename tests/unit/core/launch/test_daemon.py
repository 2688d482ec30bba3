"""A plugin whose Pods are made by one DaemonSet: what is made, watched, failed for, and removed."""

from dataclasses import replace

import pytest

from reporter.core.launch import names
from reporter.core.launch.job import manifest
from reporter.core.launch.placement import node_of
from reporter.core.launch.seen import read_pod
from reporter.core.launch.spec import Place
from reporter.core.run.plan import Key, Plugin
from reporter.core.run.record import Cause
from tests.unit.core.launch.cluster import (
    NODE1,
    NODE2,
    NOW,
    Launcher,
    api_daemon_pod,
    api_daemon_set,
    api_job,
    api_refusal,
    definition,
    ended,
    run_of,
    running,
    unscheduled,
    waiting,
)

LOST, POD_FAILED, START_FAILED = Cause.LOST, Cause.POD_FAILED, Cause.START_FAILED
SET = names.shared_name("r", "disk")
SHARED = Key("disk", "*")
BOTH = (NODE1, NODE2)
UP = {"sets": [api_daemon_set()]}


def daemons(contract="done-file", nodes=("node1", "node2"), most=200, **fields):
    """A run of one plugin with a DaemonSet."""
    made = definition("disk", contract, driver="Node", dispatch="daemonset", **fields)
    return run_of(Plugin("disk", nodes), definitions=[made], most=most)


def begun(contract="done-file", **fields):
    """Its containers have begun on both nodes."""
    launcher = Launcher(daemons(contract, **fields)).launch(*BOTH)
    return launcher.started(NODE1).started(NODE2)


def pod(key=NODE1, plugin=None, ours=None, **fields):
    """A Pod that runs unless said otherwise."""
    return api_daemon_pod(
        key, plugin or running(), ours or running(), **({"phase": "Running"} | fields)
    )


def crashed(code=1, restarts=3, state=None, **fields):
    """The plugin's container was restarted so often, and ended with that code the last time."""
    state = state or waiting("CrashLoopBackOff", "back-off 40s")
    shown = {"state": state, "restartCount": restarts, "lastState": ended(code)}
    return pod(plugin=shown, **fields)


class TestWhatIsMade:
    """One object for all nodes of the plan, with the same Pods otherwise as Jobs have."""

    def made(self, run, key=NODE1):
        place = Place("r", "space", {"kind": "ConfigMap", "uid": "0a"}, "https://r:8080")
        plugin = run.plan.plugin("disk")
        return manifest(place, run.launch, plugin, key, index=0, timeout=60)

    def test_it_is_the_same_for_each_entry(self):
        found = self.made(daemons())
        assert found == self.made(daemons(), NODE2)
        assert ("DaemonSet", SET) == (found["kind"], found["metadata"]["name"])
        assert SHARED == names.key_of(found)
        selected = found["spec"]["selector"]["matchLabels"]
        labels = found["spec"]["template"]["metadata"]["labels"]
        assert selected.items() <= labels.items()
        assert {names.RUN_LABEL: "r", names.PLUGIN_LABEL: "disk"} == selected

    def test_its_pods_run_on_the_nodes_of_the_plan_only(self):
        """Also on those that a person has left out it would start, and on those that join later."""
        spec = self.made(daemons())["spec"]["template"]["spec"]
        required = spec["affinity"]["nodeAffinity"][
            "requiredDuringSchedulingIgnoredDuringExecution"
        ]
        named = [term["matchFields"][0]["values"] for term in required["nodeSelectorTerms"]]
        assert [["node1"], ["node2"]] == named
        assert [{"operator": "Exists"}] == spec["tolerations"]
        assert "Always" == spec["restartPolicy"]

    def test_every_term_of_the_templates_own_holds_on_each_node(self):
        run = daemons()
        zones = [
            {"matchExpressions": [{"key": "zone", "operator": "In", "values": [z]}]} for z in "ab"
        ]
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": zones}}
        asked = replace(
            run.launch.definition("disk"),
            template={
                "spec": {"containers": [{"name": "main"}], "affinity": {"nodeAffinity": required}}
            },
        )
        run = replace(run, launch=replace(run.launch, definitions=(asked,)))
        spec = self.made(run)["spec"]["template"]["spec"]
        required = spec["affinity"]["nodeAffinity"][
            "requiredDuringSchedulingIgnoredDuringExecution"
        ]
        terms = [
            (term["matchExpressions"][0]["values"][0], term["matchFields"][0]["values"][0])
            for term in required["nodeSelectorTerms"]
        ]
        assert [("a", "node1"), ("a", "node2"), ("b", "node1"), ("b", "node2")] == terms

    def test_the_worker_stays_when_it_has_sent_its_result(self):
        """The kubelet would start it again, and it would send the result again."""
        worker, _ = self.made(daemons())["spec"]["template"]["spec"]["containers"]
        assert ["worker", "single-node", "--sleep=-1"] == worker["args"]

    def test_the_worker_says_nothing_when_its_pod_goes(self):
        """Another Pod follows; in a Job none does."""
        job = definition("disk", driver="Node")
        jobs = run_of(Plugin("disk", ("node1", "node2")), definitions=[job])
        for run, expected in ((daemons(), ["false"]), (jobs, [])):
            (worker, *_) = self.made(run)["spec"]["template"]["spec"]["containers"]
            found = [v["value"] for v in worker["env"] if v["name"] == "WORKER_REPORT_TERMINATED"]
            assert expected == found

    def test_a_plugin_that_uploads_by_itself_gets_no_worker(self):
        (plugin,) = self.made(daemons("link"))["spec"]["template"]["spec"]["containers"]
        assert "main" == plugin["name"]

    def test_a_job_for_each_node_is_made_without_the_word(self):
        made = definition("disk", driver="Node")
        run = run_of(Plugin("disk", ("node1", "node2")), definitions=[made])
        assert names.entry_name("r", NODE2) == self.made(run, NODE2)["metadata"]["name"]


@pytest.mark.parametrize(
    ("spec", "node"),
    [
        ({"nodeName": "a"}, "a"),
        ({}, ""),
        (api_daemon_pod(NODE2, node="")["spec"], "node2"),
        (api_daemon_pod(NODE2, node="a")["spec"], "a"),
    ],
)
def test_the_node_of_a_pod(spec, node):
    """Where it is, or before that the only one where it may be."""
    assert node == node_of(spec)


@pytest.mark.parametrize(
    "fields",
    [
        [{"key": "metadata.name", "operator": "In", "values": "node1"}],
        [{"key": "metadata.uid", "operator": "In", "values": ["node1"]}],
        [{"key": "metadata.name", "operator": "In", "values": ["node1", "node2"]}],
    ],
)
def test_a_pod_that_is_bound_to_no_one_node(fields):
    terms = {"nodeSelectorTerms": [{"matchFields": fields}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    assert "" == node_of({"affinity": {"nodeAffinity": required}})


def test_the_entry_of_a_pod():
    """By its node and the UID of its DaemonSet; its annotations are the same on every node."""
    launch = daemons().launch
    for found in (pod(NODE2), pod(NODE2, node="")):
        read = read_pod(found, launch)
        assert (names.entry_name("r", NODE2), f"uid-{SET}") == (read.job, read.job_uid)
    found["metadata"]["annotations"] |= names.annotations(SHARED)
    assert NODE2 == names.key_of(found)
    found["metadata"]["ownerReferences"] = [{"kind": "ReplicaSet", "uid": f"uid-{SET}"}]
    assert "" == read_pod(found, launch).job_uid


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
POD1 = f"{SET}-node1-1"
GONE = "0/3 nodes are available: 3 node(s) didn't satisfy plugin(s) [NodeAffinity]."
NO_POD = (
    f"not started within 10m0s: DaemonSet {SET} has no Pod on node node1: the node is gone, or the "
    "DaemonSet may not run there"
)
LEAVING = {"deletionTimestamp": "2026-01-01T00:00:30Z", "deletionGracePeriodSeconds": 30}
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
