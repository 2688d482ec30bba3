"""Our worker and our sidecar in a run of the real Sonobuoy: its aggregator, its certificates."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import tarfile
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from reporter.common import log
from reporter.run.annotation import annotations
from reporter.run.state import Phase
from tests.aggregators.served import ROOT
from tests.bed.binaries import program
from tests.bed.controlplane import ControlPlane
from tests.integration.scene import staged
from tests.ports import free_port
from tests.unit.run.world import E2E, FAILED, NODE1, NODE2, PASSED, RESULT, ours, sent, snapshot

pytestmark = pytest.mark.cluster
BOUND = 90.0
PLUGINS = ("worker", "sidecar")
ANNOTATION = "sonobuoy.hept.io/status"
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "sonobuoy", "labels": {"sonobuoy-component": "aggregator"}},
    "spec": {"nodeName": "nowhere", "containers": [{"name": "kube-sonobuoy", "image": "x"}]},
}
STORED = Path("/tmp/sonobuoy")  # whatever it is told


@dataclass
class Run:
    """A Sonobuoy run that waits for its plugins."""

    controlplane: ControlPlane
    namespace: str
    folder: Path
    uuid: str
    process: subprocess.Popen[bytes]

    def objects(self, kind: str) -> list[dict[str, Any]]:
        """Return the namespace's objects of a kind."""
        answer = self.controlplane.kubectl("get", kind, "-n", self.namespace, "-o", "json")
        return list(json.loads(answer)["items"])

    def environ(self, plugin: str) -> dict[str, str]:
        """Return the variables of a plugin's worker, as Sonobuoy gives them to its own."""
        (pod,) = (p for p in self.objects("pods") if _worker(p).get("RESULT_TYPE") == plugin)
        (secret,) = (s for s in self.objects("secrets") if f"-{plugin}-" in s["metadata"]["name"])
        pem = {name: base64.b64decode(text).decode() for name, text in secret["data"].items()}
        found = _worker(pod)
        return {
            **{name: found[name] for name in ("AGGREGATOR_URL", "RESULT_TYPE", "CA_CERT")},
            "CLIENT_CERT": pem["tls.crt"],
            "CLIENT_KEY": pem["tls.key"],
            "SONOBUOY_PROGRESS_PORT": str(free_port()),
        }

    def status(self) -> dict[str, Any]:
        """Return the status on the aggregator's Pod; empty before there is any."""
        (pod,) = (p for p in self.objects("pods") if p["metadata"]["name"] == "sonobuoy")
        found: dict[str, Any] = json.loads(
            pod["metadata"].get("annotations", {}).get(ANNOTATION, "{}")
        )
        return found

    def wait(self, true: Any) -> Any:
        """Return what `true` gives once it is something."""
        end = time.monotonic() + BOUND
        while time.monotonic() < end:
            assert self.process.poll() is None, (self.folder / "log").read_text()[-3000:]
            if found := true():
                return found
            threading.Event().wait(0.2)
        raise AssertionError((self.folder / "log").read_text()[-3000:])


def _worker(pod: dict[str, Any]) -> dict[str, str]:
    return {
        variable["name"]: variable.get("value", "")
        for container in pod["spec"]["containers"]
        if container["name"] == "sonobuoy-worker"
        for variable in container.get("env", [])
    }


@pytest.fixture
def namespace(controlplane: ControlPlane) -> Iterator[str]:
    """A namespace without a Pod security profile: Sonobuoy's Pods fit none."""
    name = f"sonobuoy-{uuid.uuid4().hex[:8]}"
    controlplane.kubectl("create", "namespace", name)
    yield name
    controlplane.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture
def run(controlplane: ControlPlane, namespace: str, tmp_path: Path) -> Iterator[Run]:
    """Sonobuoy's aggregator as a process, with two plugins whose Pods no node runs."""
    folder, port, name = tmp_path / "sonobuoy", free_port(), str(uuid.uuid4())
    (folder / "plugins.d").mkdir(parents=True)
    for plugin in PLUGINS:
        (folder / "plugins.d" / f"{plugin}.yaml").write_text(
            "sonobuoy-config:\n  driver: Job\n  result-format: raw\n"
            f"  plugin-name: {plugin}\n  result-type: {plugin}\n"
            "spec:\n  image: plugin\n  name: plugin\n"
        )
    config = {
        "UUID": name,
        "Resources": [],
        "ResultsDir": "/tmp/sonobuoy/results",  # inside its Pods
        "Server": {
            "bindaddress": "127.0.0.1",
            "bindport": port,
            "advertiseaddress": f"127.0.0.1:{port}",
            "timeoutseconds": 600,
        },
        "Plugins": [{"name": plugin} for plugin in PLUGINS],
        "PluginSearchPath": [str(folder / "plugins.d")],
        "Namespace": namespace,
        "WorkerImage": "worker",
        "ServiceAccountName": "sonobuoy-serviceaccount",
    }
    (folder / "config.json").write_text(json.dumps(config))
    controlplane.kubectl("create", "serviceaccount", "sonobuoy-serviceaccount", "-n", namespace)
    controlplane.kubectl("create", "-n", namespace, "-f", "-", input=json.dumps(POD))
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "SONOBUOY_CONFIG": str(folder / "config.json"),
    }
    command = [str(program("sonobuoy")), "aggregator", "--no-exit"]
    command += ["--kubeconfig", str(controlplane.kubeconfig)]
    with (folder / "log").open("wb") as out:
        process = subprocess.Popen(
            command, cwd=folder, env=environ, stdout=out, stderr=subprocess.STDOUT
        )
    started = Run(controlplane, namespace, folder, name, process)
    try:
        started.wait(lambda: len(started.objects("secrets")) == len(PLUGINS))
        started.wait(lambda: len(started.objects("pods")) == 1 + len(PLUGINS))
        yield started
    finally:
        process.kill()
        process.wait(BOUND)
        shutil.rmtree(STORED / name, ignore_errors=True)
        for archive in STORED.glob(f"*_{name}.tar.gz"):
            archive.unlink()


def test_our_worker_and_our_sidecar_complete_the_run(run: Run, tmp_path: Path) -> None:
    """Certificates that OpenSSL refuses, no heartbeats, results as Sonobuoy stores them."""
    results = tmp_path / "results"
    results.mkdir()
    environ = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        "SONOBUOY_RESULTS_DIR": str(results),
        "SONOBUOY_DONE_FILE_DELAY": "0s",
        **run.environ("worker"),
    }
    command = [sys.executable, str(ROOT / "cmd" / "sonobuoy.py"), "worker", "global"]
    with subprocess.Popen(command, env=environ) as worker:
        (results / "out").mkdir()
        (results / "out" / "a.txt").write_text("from our worker")
        (results / "done").write_text(str(results / "out"))
        try:
            assert 0 == worker.wait(BOUND)
        finally:
            worker.kill()
    with log.capture() as logs, staged(tmp_path / "scene", logs) as scene:
        scene.create()
        reporter = scene.start(**run.environ("sidecar"))
        scene.write_result()
        assert 0 == reporter.join()
        assert "AllGood" == scene.condition()["reason"]
        assert 1 == len(scene.said("Delivered to the aggregator"))

    run.wait(lambda: {"complete"} == {p["status"] for p in run.status().get("plugins", [])})
    run.wait(lambda: "Results available at" in (run.folder / "log").read_text())
    (archive,) = STORED.glob(f"*_sonobuoy_{run.uuid}.tar.gz")
    with tarfile.open(archive) as opened:
        stored = {
            name.removeprefix("./"): opened.extractfile(name).read().decode()  # type: ignore[union-attr]
            for name in opened.getnames()
            if name.endswith(("global/a.txt", "adapter-result.json"))
        }
    assert {
        "plugins/worker/results/global/a.txt": "from our worker",
        "plugins/sidecar/results/global/adapter-result.json": json.dumps(
            {"status": "success", "reason": "AllGood", "message": "fine"}
        ),
    } == stored


def moments(status: dict[str, Any]) -> dict[str, Any]:
    """Return a status with times as such: Go leaves out the zeros at the end of a fraction."""
    for entry in status["plugins"]:
        if "progress" in entry:
            progress = entry["progress"]
            progress["timestamp"] = datetime.fromisoformat(progress["timestamp"])
    return status


class TestReadBySonobuoy:
    """K11: Sonobuoy's own command reads the annotation that our aggregator writes."""

    @pytest.fixture(autouse=True)
    def pod(self, controlplane: ControlPlane, namespace: str) -> None:
        """The aggregator's Pod, as far as Sonobuoy looks at it."""
        pod = {**POD, "metadata": {**POD["metadata"], "name": "status-aggregator-0"}}
        controlplane.kubectl("create", "-n", namespace, "-f", "-", input=json.dumps(pod))
        running = json.dumps({"status": {"phase": "Running"}})
        patch = ("patch", "pod", "status-aggregator-0", "-n", namespace, "--subresource=status")
        controlplane.kubectl(*patch, "--type=merge", "-p", running)

    @pytest.fixture
    def sonobuoy(self, controlplane: ControlPlane, namespace: str, tmp_path: Path) -> Any:
        """The command, given the annotation to be read."""

        def call(value: str, *arguments: str) -> subprocess.CompletedProcess[str]:
            controlplane.kubectl(
                *("annotate", "--overwrite", "pod", "status-aggregator-0", "-n", namespace),
                f"{ANNOTATION}={value}",
            )
            command = [str(program("sonobuoy")), *arguments, "-n", namespace]
            return subprocess.run(
                [*command, "--kubeconfig", str(controlplane.kubeconfig)],
                env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
                capture_output=True,
                text=True,
                timeout=BOUND,
                check=False,
            )

        return call

    def test_status_is_the_same_after_a_way_through_its_structures(self, sonobuoy: Any) -> None:
        """Every field is known to it and none gets lost."""
        progress = sent(msg="m", total=3, completed=1, failures=("f",), errors=("e",))
        ours_now = snapshot({E2E: FAILED, NODE1: ours()}, progress={NODE2: progress})
        written = annotations(ours_now, strict=False).status
        read = sonobuoy(written, "status", "--json")

        assert (0, "") == (read.returncode, read.stderr)
        assert moments(json.loads(written)) == moments(json.loads(read.stdout))

    def test_progress_is_shown_in_its_words(self, sonobuoy: Any) -> None:
        """Passed, failed, remaining."""
        progress = sent(msg="m", total=3, completed=1, failures=("f",))
        running = annotations(snapshot(progress={NODE2: progress}), strict=False).status

        assert (
            "Passed:  1, Failed:  1, Remaining:  1"
            in sonobuoy(running, "status", "--show-all").stdout
        )

    def test_a_failed_check_is_shown_as_a_failed_result(self, sonobuoy: Any) -> None:
        """Delivered, so `complete`; its own column says what the result is."""
        over = snapshot({E2E: FAILED, NODE1: PASSED, NODE2: PASSED}, phase=Phase.CLOSED)
        read = sonobuoy(annotations(over, strict=False).status, "status")

        assert 0 == read.returncode
        assert [["e2e", "complete", "failed"], ["sysd", "complete", "passed"]] == [
            line.split()[:3] for line in read.stdout.splitlines()[1:3]
        ]

    @pytest.mark.long
    def test_wait_ends_with_the_run(self, sonobuoy: Any) -> None:
        """Well, also when a plugin failed: its scripts go on to fetch the results then."""
        failed = snapshot({E2E: ours(), NODE1: RESULT, NODE2: RESULT}, phase=Phase.CLOSED)
        value = annotations(failed, strict=False).status

        assert 0 == sonobuoy(value, "wait", "--wait=1").returncode
