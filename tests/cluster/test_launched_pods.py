"""A run's objects and the Jobs of all contracts on the real node, created by hand.

What the launcher and the command do with them is not looked at here: the containers that are added
find what they need, with the rights that the run's Roles give and nothing more.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from reporter.launch.job import job, secret, secret_name
from reporter.run.definition import Definition
from reporter.run.definition_file import read_definitions
from reporter.run.launch_file import Launch, RunLocation
from reporter.run.names import entry_name
from reporter.run.plan import Key, Plan, Plugin
from reporter.runctl.objects import objects
from reporter.runctl.resolve import config_keys
from reporter.runctl.spec import RunSpec, plugin_account
from tests.aggregators.deployed import NAME, POD, Deployed, Object
from tests.bed.node import Node
from tests.blackbox.cluster.test_bed import RESTRICTED
from tests.blackbox.cluster.test_workers import blob_of, entry_of, members_of

pytestmark = [pytest.mark.node, pytest.mark.timeout(300)]

UPLOADS = """
import os, reporter.link as link
config = link.WorkerConfig.from_env(os.environ, scope=os.environ["AGGREGATOR_SCOPE"])
with link.AggregatorClient(config) as client:
    print(client.put_result(link.ResultSource.from_bytes(b"by itself", "r.txt")))
"""
SCRIPTS = {
    # An adapter that passes, and one that never writes; its sidecar says so.
    "passes": 'echo \'{"status": "success", "reason": "Fine", "message": "all"}\''
    " >/results/new; mv /results/new /results/adapter-result.json",
    "crashes": "exit 3",
    # As Sonobuoy's plugins do: the variables that they know, a done file, and no end.
    "sleeps": "cd $RESULTS_DIR; cat $SONOBUOY_CONFIG_DIR/words >r.txt; echo $NODE_NAME >>r.txt;"
    ' until wget -q -O - --post-data \'{"msg": "half", "total": 2, "completed": 1}\''
    " http://localhost:$SONOBUOY_PROGRESS_PORT/progress; do sleep 0.2; done;"
    " echo $SONOBUOY_RESULTS_DIR/r.txt >$RESULTS_DIR/done; sleep 10000",
    # No done file: the worker looks at its Pod, with the rights of the run's account.
    "packed": "echo log >$RESULTS_DIR/log.txt",
}
CONTRACTS = {
    "passes": ("result-file", "Job"),
    "crashes": ("result-file", "Node"),
    "sleeps": ("done-file", "Node"),
    "packed": ("done-file", "Job"),
    "uploads": ("link", "Node"),
}


def definitions() -> tuple[Definition, ...]:
    """Restricted plugins, one of each kind."""
    found = []
    for name, (contract, driver) in CONTRACTS.items():
        container: dict[str, Any] = {"name": "plugin", "image": "busybox"}
        container["securityContext"] = {**RESTRICTED, "readOnlyRootFilesystem": False}
        if contract == "link":
            container |= {"image": "status-reporter", "command": ["python3", "-c", UPLOADS]}
        else:
            container["command"] = ["sh", "-ec", SCRIPTS[name]]
        template = {"spec": {"containers": [container]}}
        spec: dict[str, Any] = {"driver": driver, "contract": contract, "template": template}
        if name == "sleeps":
            spec["config"] = {"words": "of the run\n"}
        document = {"apiVersion": "status-reporter.io/v1", "kind": "Plugin"}
        document |= {"metadata": {"name": name}, "spec": spec}
        read = read_definitions(yaml.safe_dump(document).encode())
        assert not read.mistakes, read.mistakes
        found += [each for _, each in read.definitions]
    return tuple(found)


class ByHand(Deployed):
    """A run whose aggregator launches nothing: its Jobs are created as a launcher would."""

    claim = NAME

    def __init__(self, node: Node, folder: Any) -> None:
        super().__init__(node, folder)
        plugins = tuple(
            Plugin(each.name, (Node.name,) if each.driver == "Node" else ())
            for each in definitions()
        )
        self.plan = Plan(NAME, plugins, timeout_seconds=120)
        self.launch = Launch(
            "status-reporter",
            plugin_account(NAME),
            definitions(),
            kubernetes_version="v1.34.4",
            config_keys=config_keys(definitions()),
        )
        self.place = RunLocation(
            NAME, self.namespace, None, f"https://{NAME}.{self.namespace}.svc:8080"
        )
        self.others = objects(RunSpec(namespace=self.namespace, plan=self.plan, launch=self.launch))

    def fitted(self, found: Object) -> Object:
        """The name of the Service that workers are given, and certificates for us to hand out."""
        found = super().fitted(found)
        if found["kind"] == "Job":
            (alias,) = found["spec"]["template"]["spec"]["hostAliases"]
            alias["hostnames"].append(f"{NAME}.{self.namespace}.svc")
        if found["kind"] == "Job" and found["metadata"]["name"] == NAME:
            (container,) = found["spec"]["template"]["spec"]["containers"]
            kept = [each for each in container["env"] if each["name"] != "LAUNCH"]
            added = {"EXPORT_SECRETS": "/data/export/secrets.yaml", "KEEP_BLOBS": "true"}
            container["env"] = [
                *kept,
                *({"name": name, "value": value} for name, value in added.items()),
            ]
        return found

    @property
    def pod_path(self) -> str:
        """Where the aggregator's Pod is in the API: a Job gives it a name."""
        return super().pod_path.replace(POD, self.pod_of(NAME)["metadata"]["name"])

    def exec(self, *command: str) -> str:
        """The output of a command in the aggregator's container."""
        return self.kubectl("exec", f"job/{NAME}", "--", *command)

    def hand_out(self) -> None:
        """Create a Secret and a Job for each entry."""
        text = self.exec("python3", "-c", 'print(open("/data/export/secrets.yaml").read())')
        made = [found for found in yaml.safe_load_all(text) if found]
        by_plugin = {
            found["metadata"]["annotations"]["status-reporter.io/plugin"]: {
                name: base64.b64decode(data) for name, data in found["data"].items()
            }
            for found in made
        }
        for index, plugin in enumerate(self.plan.plugins):
            (key,) = plugin.keys
            pems = by_plugin[plugin.name]
            name = secret_name(NAME, plugin, key)
            handed = secret(
                self.place,
                name,
                key,
                ca=pems["ca.crt"],
                certificate=pems["tls.crt"],
                private_key=pems["tls.key"],
            )
            launched = job(self.place, self.launch, plugin, key, index=index, timeout=120)
            self.apply([handed, launched])

    def key(self, plugin: str) -> Key:
        """The entry of a plugin."""
        (key,) = next(each.keys for each in self.plan.plugins if each.name == plugin)
        return key

    def ended(self, plugin: str) -> dict[str, int]:
        """The exit codes of a plugin's Pod."""
        pod = self.pod_of(entry_name(NAME, self.key(plugin)))
        return self.wait_pod_ended(pod["metadata"]["name"])

    def condition(self, plugin: str) -> Object:
        """The condition that the sidecar has written on a Job."""
        return self.wait_job(entry_name(NAME, self.key(plugin)))["Available"]


@pytest.fixture(scope="module")
def run(node: Node, product_image: str) -> Iterator[ByHand]:
    with ByHand(node, node.controlplane.folder / "volumes") as started:
        started.start()
        yield started


def entry(run: ByHand, plugin: str) -> Object:
    """An entry that has ended."""
    return entry_of(run, str(run.key(plugin)))


def test_an_adapters_verdict_is_on_its_job_and_in_the_run(run: ByHand) -> None:
    """The condition is written with the rights of the run's own account for plugins."""
    found = entry(run, "passes")
    assert ("complete", "passed") == (found["status"], found["result_status"])
    condition = run.condition("passes")
    assert ("True", "Fine") == (condition["status"], condition["reason"])
    assert {"status-reporter": 0, "plugin": 0} == run.ended("passes")


def test_an_adapter_that_crashes_on_its_node_is_told(run: ByHand) -> None:
    found = entry(run, "crashes")
    assert ("failed", "worker_error") == (found["status"], found["error"]["cause"])
    assert Node.name == found["node"]
    assert found["error"]["reason"] == run.condition("crashes")["reason"]
    assert {"status-reporter": 0, "plugin": 3} == run.ended("crashes")


def test_a_plugin_of_sonobuoys_that_sleeps_for_ever_delivers(run: ByHand) -> None:
    """Its variables, its configuration, its progress port and its done file."""
    found = entry(run, "sleeps")
    assert "complete" == found["status"]
    assert f"of the run\n{Node.name}\n".encode() == blob_of(run, found).read_bytes()
    assert ("half", 1) == (found["progress"]["msg"], found["progress"]["completed"])


def test_a_plugin_without_a_done_file_is_packed(run: ByHand) -> None:
    """The worker may see its Pod."""
    found = entry(run, "packed")
    assert "complete" == found["status"]
    assert {"log.txt": b"log\n"} == members_of(run, found)
    assert {"status-worker": 0, "plugin": 0} == run.ended("packed")


def test_a_program_uploads_by_itself(run: ByHand) -> None:
    found = entry(run, "uploads")
    assert ("complete", b"by itself") == (found["status"], blob_of(run, found).read_bytes())
    assert {"plugin": 0} == run.ended("uploads")


def test_nothing_that_was_tried_was_refused(run: ByHand) -> None:
    """No 403 in the log of any container of ours: rights and requests fit each other."""
    for plugin, (contract, _) in CONTRACTS.items():
        if contract != "link":
            entry(run, plugin)
            pod = run.pod_of(entry_name(NAME, run.key(plugin)))["metadata"]["name"]
            ours = "status-reporter" if contract == "result-file" else "status-worker"
            lines = run.log(pod, ours)
            assert lines
            assert [] == [line for line in lines if "orbidden" in json.dumps(line)]
            complaints = [line["message"] for line in lines if line["level"] != "info"]
            packed = ["The plugin left no done file: packing its results"]
            assert (packed if plugin == "packed" else []) == complaints
