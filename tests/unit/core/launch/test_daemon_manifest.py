"""The DaemonSet of a plugin, and whose of its Pods is whose."""

from dataclasses import replace

import pytest

from reporter.core.launch import names
from reporter.core.launch.job import manifest
from reporter.core.launch.placement import node_of
from reporter.core.launch.seen import read_pod
from reporter.core.launch.spec import RunLocation
from reporter.core.run.plan import Plugin
from tests.unit.core.launch.cluster import NODE1, NODE2, api_daemon_pod, definition, run_of
from tests.unit.core.launch.daemons import SET, SHARED, daemons, pod


class TestWhatIsMade:
    """One object for all nodes of the plan, with the same Pods otherwise as Jobs have."""

    def made(self, run, key=NODE1):
        place = RunLocation("r", "space", {"kind": "ConfigMap", "uid": "0a"}, "https://r:8080")
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
