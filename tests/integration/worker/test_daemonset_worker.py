"""The worker as a process, with the environment that a plugin's DaemonSet gives it."""

from pathlib import Path

from reporter.core.launch.job import manifest
from reporter.core.launch.spec import Launch, RunLocation
from reporter.core.run.definition import Definition
from reporter.core.run.plan import Plugin
from tests.aggregators.scripted import Scripted
from tests.blackbox.worker.process import environment, worker
from tests.blackbox.worker.test_worker_process import results, scripted

__all__ = ["results", "scripted"]


def test_sigterm_beside_a_plugin_that_a_daemonset_replaces(
    scripted: Scripted, results: Path
) -> None:
    """With the environment its Pod has: nothing is said that would end the entry."""
    plugin = Plugin("e2e", ("node1",))
    template = {"spec": {"containers": [{"name": "main"}]}}
    asked = Definition("e2e", "Node", "done-file", template, dispatch="daemonset")
    launch = Launch("ours:1", "r-plugin", (asked,))
    place = RunLocation("r", "space", {}, scripted.url)
    made = manifest(place, launch, plugin, plugin.keys[0], index=0, timeout=60)
    ours, _ = made["spec"]["template"]["spec"]["containers"]
    given = {v["name"]: v["value"] for v in ours["env"] if v["name"].startswith("WORKER_")}
    given["WORKER_GRACE_SECONDS"] = "6"
    environ = environment(scripted, results, NODE_NAME="node1", **given)
    with worker(*ours["args"], environ=environ) as process:
        process.wait_log("Progress relay listening")
        process.signal()
        assert 1 == process.join()

    assert [] == scripted.heard(0, "results")
