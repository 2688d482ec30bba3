"""What makes an entry fail, on the real node: with the words a person needs, and not too early.

Everything is one run, which `slow_run.py` has begun before the tests of `test_run.py`.
"""

from __future__ import annotations

import pytest

from tests.blackbox.cluster.scene import REFUSAL
from tests.blackbox.cluster.slow_run import LEFT_OUT, NAME, NAMESPACE, SlowRun, moment

pytestmark = [pytest.mark.node, pytest.mark.timeout(900)]

CLOCKS = 2.0  # seconds: the API has whole ones
AT_ONCE_SECONDS = 45.0
"""What is waited for before it counts takes 60 s at least, what is not a few."""

LATER = {
    "pod-refused": (
        60,
        "start_failed",
        'serviceaccount "nobody" not found',
    ),
    "policy-pod": (60, "start_failed", f"denied request: {REFUSAL}"),
    "unschedulable": (
        70,
        "start_failed",
        "not started within 1m10s: ",
    ),
    "image-name": (60, "start_failed", "InvalidImageName"),
    "never-pulled": (60, "start_failed", "ErrImageNeverPull"),
    "configuration": (60, "start_failed", 'configmap "absent" not found'),
    "crash": (
        60,
        "pod_failed",
        "ended: exit code 3 (Error: last words), and its result never arrived",
    ),
    "memory": (60, "pod_failed", "ran out of memory and was killed (OOMKilled, exit code 137)"),
    "deadline": (20, "deadline", "Plugin timeout while waiting for results"),
}
"""Plugin, seconds, cause, words."""

CUT_OFF = {
    "no-address": f"cannot resolve {NAME}.{NAMESPACE}.svc: ",
    "no-listener": f"cannot connect to {NAME}.{NAMESPACE}.svc: Connection refused",
    "impostor": "is not trusted: certificate of another run (",
}
"""What is said of a sidecar and two workers."""

AT_ONCE = {
    "job-refused": ("start_failed", 'volumeMounts[0].name: Not found: "absent"'),
    "policy-job": ("start_failed", f"denied request: {REFUSAL}"),
    "evicted": ("pod_failed", "was disrupted (EvictionByEvictionAPI: "),
    "deleted": ("pod_failed", "was deleted before its result arrived"),
    "job-deleted": ("pod_failed", "was deleted before its result arrived"),
    "preempted": ("pod_failed", "was disrupted (PreemptionByScheduler: "),
    "node-lost": ("pod_failed", "was disrupted (DeletionByTaintManager: "),
}


@pytest.mark.parametrize("plugin", LATER)
def test_a_failure_that_takes_its_time(slow_run: SlowRun, plugin: str) -> None:
    """L8: counted from when it began, as the API shows it."""
    seconds, cause, words = LATER[plugin]
    found = slow_run.entry(plugin)

    if plugin == "memory":
        (container,) = slow_run.pod(plugin)["status"]["containerStatuses"]
        if container["state"]["terminated"]["reason"] == "Error":
            # On a busy machine containerd may hear of the end first, and of its cause never.
            words = "ended: exit code 137 (Error), and its result never arrived"
    error = found["error"]
    assert (cause, True) == (error["cause"], words in error["text"]), error
    began = moment(slow_run.job(plugin)["metadata"]["creationTimestamp"])
    if plugin not in {"pod-refused", "policy-pod", "unschedulable"}:
        (container,) = slow_run.pod(plugin)["status"]["containerStatuses"]
        state = container["state"]
        if cause == "pod_failed":
            began = moment(state["terminated"]["finishedAt"])
        elif cause == "deadline":
            began = moment(next(iter(state.values()))["startedAt"])
    assert slow_run.given_up(found["key"]) - began > seconds - CLOCKS


@pytest.mark.parametrize("plugin", CUT_OFF)
def test_a_pod_that_cannot_reach_the_aggregator(slow_run: SlowRun, plugin: str) -> None:
    """It fails by its missing heartbeats, with the step that failed."""
    error = slow_run.entry(plugin)["error"]

    assert "heartbeat" == error["cause"], error
    assert "no heartbeat for 1" in error["text"]
    assert CUT_OFF[plugin] in error["text"]


@pytest.mark.parametrize("plugin", AT_ONCE)
def test_a_failure_at_once(slow_run: SlowRun, plugin: str) -> None:
    """L8: nothing is to be hoped for."""
    cause, words = AT_ONCE[plugin]
    found = slow_run.entry(plugin)

    error = found["error"]
    assert (cause, True) == (error["cause"], words in error["text"]), error
    since = slow_run.given_up(found["key"]) - slow_run.disturbed.get(plugin, slow_run.created)
    print(f"{plugin}: given up after {since:.1f} s")
    assert 0 < since < AT_ONCE_SECONDS


def test_a_verdict_whose_upload_never_came_is_taken_from_the_condition(slow_run: SlowRun) -> None:
    """The reporter's own words stand on the Job; nobody reached the aggregator."""
    found = slow_run.entry("verdict")

    error = found["error"]
    assert ("failed", "DiskFull", "no room") == (
        found["result_status"],
        error["reason"],
        error["text"],
    )


class TestNodes:
    """L7: resolved once; what changes later keeps nobody waiting."""

    def test_are_chosen_or_left_out_with_the_reason(self, slow_run: SlowRun) -> None:
        plugins = {each["name"]: each for each in slow_run.plan["plugins"]}
        reasons = {
            "windows": "its operating system is windows",
            "virtual": "it is virtual: type=virtual-kubelet",
            "broken": "it is not Ready: container runtime is down",
        }
        taint = "the template does not tolerate its taint team=a:NoSchedule"
        expected = {
            "facts": (["cordoned", "gone", "node1", "tainted"], reasons),
            "shy": (["cordoned", "gone", "node1"], reasons | {"tainted": taint}),
        }

        assert LEFT_OUT.keys() == reasons.keys()
        for name, (nodes, skipped) in expected.items():
            assert nodes == sorted(plugins[name]["nodes"])
            assert skipped == {each["node"]: each["reason"] for each in plugins[name]["skipped"]}
        shown = slow_run.over["skipped"]
        assert {(name, node) for name, (_, left) in expected.items() for node in left} == {
            (each["name"], each["node"]) for each in shown if each["name"] in expected
        }

    @pytest.mark.parametrize("plugin", ["facts", "shy"])
    def test_the_one_that_is_well(self, slow_run: SlowRun, plugin: str) -> None:
        assert "complete" == slow_run.entry(plugin, "node1")["status"]

    @pytest.mark.parametrize(
        ("plugin", "node"), [("facts", "gone"), ("shy", "gone"), ("shy", "cordoned")]
    )
    def test_one_that_is_gone_or_cordoned_after_the_plan(
        self, slow_run: SlowRun, plugin: str, node: str
    ) -> None:
        """L7: its Pod has had a minute to find it."""
        found = slow_run.entry(plugin, node)

        assert "start_failed" == found["error"]["cause"]
        assert "it cannot be scheduled (0/" in found["error"]["text"]
        began = moment(slow_run.job(plugin, node)["metadata"]["creationTimestamp"])
        assert slow_run.given_up(found["key"]) - began > 60 - CLOCKS

    @pytest.mark.parametrize("plugin", ["facts", "shy"])
    def test_one_that_joined_after_the_plan(self, slow_run: SlowRun, plugin: str) -> None:
        """The run waits for nobody else, and starts nothing there."""
        (planned,) = (each for each in slow_run.plan["plugins"] if each["name"] == plugin)

        assert "joined" not in planned["nodes"]
        assert sorted(planned["nodes"]) == sorted(slow_run.jobs(plugin))

    @pytest.mark.parametrize("node", ["tainted", "cordoned"])
    def test_one_that_accepts_the_pod_and_never_answers(self, slow_run: SlowRun, node: str) -> None:
        """Tolerated, as everything is without tolerations; only time ends the waiting."""
        found = slow_run.entry("facts", node)

        assert ("timed_out", "deadline") == (found["status"], found["error"]["cause"])


def test_an_image_that_cannot_be_pulled_has_more_time(slow_run: SlowRun) -> None:
    """L8: its trouble is shown before, and it fails after five minutes. Last, as they pass."""
    found = slow_run.wait_decided("pull")

    assert slow_run.pulling["reason"] in {"ErrImagePull", "ImagePullBackOff"}
    assert "localhost:1/nobody/has:this" in slow_run.pulling["message"]
    error = found["error"]
    assert "start_failed" == error["cause"]
    assert "localhost:1/nobody/has:this" in error["text"]
    began = moment(slow_run.job("pull")["metadata"]["creationTimestamp"])
    assert slow_run.given_up(found["key"]) - began > 300 - CLOCKS
