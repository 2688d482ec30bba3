"""The launcher beside a real API server, its controllers and its scheduler, on hollow nodes.

The aggregator is a process of this machine: as a container, one that is killed again and again
would be kept waiting by the kubelet. LAUNCH_KILL_SEED=NUMBER in the environment repeats the kills,
LAUNCH_NODES=NUMBER tries it smaller.
"""

from __future__ import annotations

import base64
import json
import os
import random
import ssl
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from http.client import HTTPException
from pathlib import Path
from typing import Any, Self

import pytest
import yaml

from reporter.run.names import selector
from tests.aggregators import load
from tests.aggregators.load import Target
from tests.aggregators.served import LAUNCHER, ROOT, Usage, usage
from tests.aggregators.worker import Worker
from tests.bed import binaries
from tests.bed.attached import attached
from tests.bed.controlplane import ControlPlane
from tests.bed.hollow import MERGE, HollowNodes
from tests.bench.figures import Percentiles
from tests.bench.launching import NO_IMAGE, Pods, waiting_for_images
from tests.plugin_definitions import ours
from tests.ports import free_port

pytestmark = [pytest.mark.long, pytest.mark.cluster, pytest.mark.timeout(900)]

NODES = int(os.environ.get("LAUNCH_NODES", "1000"))
KILLS = 10
SEED = int(os.environ.get("LAUNCH_KILL_SEED", "0")) or random.SystemRandom().randrange(1, 10**6)
MB = 10**6
BOUND = 300.0
LOOK = 1.0  # seconds: the status of many entries takes the time of the one that launches them
TROUBLES = 20
# Wanted are 60 s for the creation, 60 s for the removal, 200 MB and 1 s until a Pod's trouble is
# shown, which are printed; what is asserted is what only a fault can reach: on a machine that
# others use too, everything waits.
SLOWEST, LARGEST, LATEST = 240.0, 300 * MB, 10.0
REQUESTS = 4  # per Job
DEFINITION = ours(
    *("load", "done-file", '{spec: {containers: [{name: main, image: "nowhere.invalid/a:1"}]}}'),
    driver="Node",
    timeoutSeconds="3600",
    heartbeats="false",
)

Object = dict[str, Any]


@pytest.fixture(scope="module")
def hollow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HollowNodes]:
    """A cluster of hollow nodes only."""
    if reason := binaries.why_not():
        pytest.skip(reason)
    binaries.programs("kube-scheduler", "kubectl", "load")
    folder = tmp_path_factory.mktemp("fleet")
    with (
        attached(folder),
        ControlPlane(folder, scheduler=True, loses_nodes=False) as cluster,
        HollowNodes(cluster) as nodes,
    ):
        nodes.add_many(f"n{number}" for number in range(NODES))
        yield nodes


class Launched:
    """A run as `status-ctl run` prints it, whose aggregator is a process outside of the cluster."""

    def __init__(
        self,
        cluster: ControlPlane,
        folder: Path,
        name: str,
        nodes: int,
        *,
        at_once: int = NODES,
        definition: str = DEFINITION,
    ) -> None:
        self.cluster, self.name, self.folder = cluster, name, folder
        self.namespace = f"status-reporter-{name}"
        self._port, self._status_port = free_port(), free_port()
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True)
        (folder / "plugin.yaml").write_text(definition)
        chosen = ",".join(f"n{number}" for number in range(nodes))
        self._create(self._printed("--node", chosen, "--max-nodes-at-once", str(at_once)))

    def status_ctl(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the command as an administrator."""
        return subprocess.run(
            [sys.executable, str(ROOT / "cmd" / "status-ctl.py"), *arguments],
            env={
                "KUBECONFIG": str(self.cluster.kubeconfig),
                "PATH": "/usr/bin:/bin",
                "STATUS_CTL_IMAGE": "nowhere.invalid/ours:1",
            },
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=BOUND,
            check=False,
        )

    def _printed(self, *options: str) -> list[Object]:
        done = self.status_ctl(
            *("run", "-f", "plugin.yaml", "--name", self.name, "--storage", "none", *options),
            *("--dry-run", "-o", "yaml"),
        )
        assert 0 == done.returncode, done.stderr
        return list(yaml.safe_load_all(done.stdout))

    def _create(self, objects: list[Object]) -> None:
        (config,) = (each for each in objects if each["kind"] == "ConfigMap")
        for name in ("plan.json", "launch.json"):
            (self.folder / name).write_text(config["data"][name])
        self.cluster.kubectl("create", "-f", "-", input=yaml.safe_dump_all(objects))

    def start(self) -> Self:
        """Start the process; return at once."""
        token = self.folder / "token"
        token.write_text(self.cluster.create_token(self.namespace, f"{self.name}-aggregator"))
        environ = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            "SERVER": self.cluster.url,
            "CA_FILE": str(self.cluster.ca_file),
            "TOKEN_FILE": str(token),
            "PLAN": "plan.json",
            "LAUNCH": "launch.json",
            "STATE": "state",
            "OUTPUT": "output",
            "LISTEN": f"127.0.0.1:{self._port}",
            "STATUS_LISTEN": f"127.0.0.1:{self._status_port}",
            "ADVERTISE_ADDRESS": f"127.0.0.1:{self._port}",
            "POD_NAME": f"{self.name}-0",
            "POD_NAMESPACE": self.namespace,
        }
        program = ROOT / "tests" / "blackbox" / "in_pod.py"
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, str(program), str(LAUNCHER), "run"],
                env=environ,
                cwd=self.folder,
                stdout=log,
                stderr=log,
            )
        return self

    def kill(self) -> None:
        """End the process without a warning."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def usage(self) -> Usage:
        """Return what the process has used so far."""
        assert self._process is not None
        return usage(self._process.pid)

    def wait(self, wanted: Callable[[Object], Any], pause: float = LOOK) -> Object:
        """Return the run's status once it is as wanted; so many seconds between two looks."""
        end = time.monotonic() + BOUND
        while True:
            found: Object = {}
            with suppress(OSError):
                url = f"http://127.0.0.1:{self._status_port}/status"
                with urllib.request.urlopen(url, timeout=30) as answer:
                    found = json.loads(answer.read())
            if found and wanted(found):
                return found
            assert time.monotonic() < end, (self.folder / "log").read_text()[-3000:]
            threading.Event().wait(pause)

    def certificates(self) -> list[Path]:
        """Return the files of the plugin's Secret: CA, certificate and key."""
        listed = self.listed("secrets")
        (secret,) = (each for each in listed if each["type"] == "kubernetes.io/tls")
        for name, data in secret["data"].items():
            (self.folder / name).write_bytes(base64.b64decode(data))
        return [self.folder / name for name in ("ca.crt", "tls.crt", "tls.key")]

    def upload(self, count: int) -> load.Load:
        """Send a result for each of the first nodes, with the certificate of the plugin."""
        target = Target(f"https://127.0.0.1:{self._port}", *self.certificates(), "load")
        return load.run(target, "results", count=count, size=1024)

    def worker(self) -> Worker:
        """Return one that speaks for the plugin."""
        ca, *pair = self.certificates()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(ca)
        context.load_cert_chain(*pair)
        return Worker(self._port, context)

    def listed(self, kind: str) -> list[Object]:
        """Return the run's objects of a kind that the launcher has made."""
        found = self.cluster.kubectl(
            *("get", kind, "-n", self.namespace, "-o", "json"),
            *("-l", f"{selector(self.name)},status-reporter.io/plugin"),
        )
        return list(json.loads(found)["items"])

    def requests(self) -> Counter[str]:
        """Return what the launcher has asked of the API server, by verb and resource."""
        return self.cluster.requests_of(self.namespace, f"{self.name}-aggregator")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self.status_ctl("delete", self.name, "--yes")


def all_are(*statuses: str) -> Callable[[Object], bool]:
    """Say whether all entries have one of these."""
    return lambda status: {entry["status"] for entry in status["plugins"]} <= {*statuses}


def step(status: Object) -> str:
    """Say how far the launcher is."""
    return (status["launcher"] or {}).get("step", "")


def all_run(status: Object) -> bool:
    """Say whether every entry's Pod is seen to run."""
    return {(entry["pod"] or {}).get("phase") for entry in status["plugins"]} == {"Running"}


def until_shown(run: Launched) -> Percentiles:
    """Have some Pods wait for their image, one after the other; return how late it is shown."""
    watched, shown = Pods(run.cluster), {}
    for pod in run.listed("pods")[:TROUBLES]:
        name, containers = pod["metadata"]["name"], pod["status"]["containerStatuses"]
        waiting = {"state": {"waiting": {"reason": NO_IMAGE[0]}}, "ready": False, "started": False}
        status = {"phase": "Pending", "containerStatuses": [each | waiting for each in containers]}
        path = f"/api/v1/namespaces/{run.namespace}/pods/{name}/status"
        run.cluster.request("PATCH", path, {"status": status}, MERGE)
        run.wait(partial(shows, name), pause=0.05)
        shown[name] = time.monotonic()
        status = {"phase": "Running", "containerStatuses": containers}
        run.cluster.request("PATCH", path, {"status": status}, MERGE)
    run.wait(all_run)
    return Percentiles.of([at - watched.waiting[name] for name, at in shown.items()])


def shows(name: str, status: Object) -> bool:
    """Say whether a status has it that this Pod waits for its image."""
    return name in waiting_for_images(status)


def test_a_plugin_on_1000_nodes(
    hollow: HollowNodes, tmp_path: Path, figures: Callable[[str], None]
) -> None:
    """L11: a Job each, so many requests of each, all gone soon after the last result."""
    with Launched(hollow.controlplane, tmp_path / "run", "fleet", NODES) as run:
        began = time.monotonic()
        run.start()
        run.wait(lambda status: step(status) == "watching")
        created = time.monotonic() - began
        run.wait(all_run)
        late = until_shown(run)
        sent = run.upload(NODES)
        began = time.monotonic()
        over = run.wait(lambda status: status["final"] and step(status) == "done")
        removed = time.monotonic() - began
        peak = run.usage().peak_bytes
        asked = run.requests()
        left = run.listed("jobs")

    each = sum(asked.values()) / NODES
    figures(
        f"{NODES} Jobs: created in {created:.0f} s, {each:.2f} requests each,"
        f" peak {peak / MB:.0f} MB, {NODES - len(left)} removed in {removed:.0f} s,"
        f" a Pod's trouble shown after {late}; {dict(asked)}"
    )
    assert NODES == sent.answered("result")
    assert all_are("complete")(over)
    # On a machine with others' work the time for the removal may be over before; that is told.
    stays = {found["object"] for found in over["launcher"]["stays"]}
    assert {f"Job {job['metadata']['name']}" for job in left} <= stays
    assert NODES == asked["create jobs"]
    assert sum(asked.values()) <= REQUESTS * NODES + 100
    assert max(created, removed) < SLOWEST
    assert late.p95 < LATEST
    assert peak < LARGEST


def running(status: Object) -> set[str]:
    """Return the nodes whose Pod is seen to run."""
    found = status["plugins"]
    return {each["node"] for each in found if (each["pod"] or {}).get("phase") == "Running"}


def test_300_nodes_in_waves_of_50(
    hollow: HollowNodes, tmp_path: Path, figures: Callable[[str], None]
) -> None:
    """L22: never more at once, and nobody's time begins before its turn.

    All waves together take longer than one entry may.
    """
    nodes, at_once, seconds = min(300, NODES), 50, 120
    definition = DEFINITION.replace("timeoutSeconds: 3600", f"timeoutSeconds: {seconds}")
    sent: set[str] = set()
    most, began = 0, time.monotonic()
    cluster, folder = hollow.controlplane, tmp_path / "run"
    with Launched(cluster, folder, "waves", nodes, at_once=at_once, definition=definition) as run:
        seen = Seen(cluster, run.namespace)

        def whole_wave(status: Object) -> bool:
            nonlocal most
            # What has a Job and was sent no result is at work, whatever is known of it by now.
            at_work = {node for kind, node in list(seen.uids) if kind == "Job"} - sent
            most = max(most, len(at_work), len(running(status) - sent))
            return len(running(status) - sent) >= min(at_once, nodes - len(sent))

        run.start()
        while len(sent) < nodes:
            wave = running(run.wait(whole_wave)) - sent
            # The time that the programs of a wave take: a part of what each of them may take.
            threading.Event().wait(seconds * at_once / nodes)
            run.wait(whole_wave)
            worker = run.worker()
            for node in sorted(wave):
                sent.add(node)
                assert 200 == worker.put(f"by-node/{node}/load", b"done").status
        whole = time.monotonic() - began
        over = run.wait(lambda status: status["final"])

    figures(f"{nodes} nodes, {at_once} at once: {whole:.0f} s, at most {most} at work")
    assert at_once == most
    assert all_are("complete")(over)
    assert nodes == len(over["plugins"]) == sum(kind == "Job" for kind, _ in seen.uids)
    assert whole > seconds


class Seen:
    """All Jobs and Pods that ever were in a namespace: their UIDs, by what they are for."""

    def __init__(self, cluster: ControlPlane, namespace: str) -> None:
        self.uids: dict[tuple[str, str], set[str]] = {}
        self._api = cluster.api
        for kind, path in (("Job", "apis/batch/v1"), ("Pod", "api/v1")):
            place = f"/{path}/namespaces/{namespace}/{kind.lower()}s"
            threading.Thread(target=self._watch, args=(kind, place), daemon=True).start()

    def _watch(self, kind: str, path: str) -> None:
        with suppress(OSError, HTTPException):  # the cluster ends before
            for event in self._api.watch(path, 600):
                metadata = event["object"]["metadata"]
                if node := metadata.get("annotations", {}).get("status-reporter.io/node"):
                    self.uids.setdefault((kind, node), set()).add(metadata["uid"])


class Calls:
    """Counts what a service account asks of the API server, from now on."""

    def __init__(self, run: Launched) -> None:
        self._log = run.cluster.folder / "audit.log"
        self._read = self._log.stat().st_size
        self._account = f'"system:serviceaccount:{run.namespace}:{run.name}-aggregator"'.encode()
        self._count = 0

    def wait(self, count: int) -> None:
        """Return when so many were asked."""
        end = time.monotonic() + BOUND
        while self._count < count:
            with self._log.open("rb") as log:
                log.seek(self._read)
                new = log.read()
            self._read += len(new)
            self._count += new.count(self._account)
            assert time.monotonic() < end
            threading.Event().wait(0.01)


def test_killed_after_the_nth_request(
    hollow: HollowNodes, tmp_path: Path, figures: Callable[[str], None]
) -> None:
    """L4: nothing is created twice, nothing is missing, and the run ends as it should."""
    figures(f"launcher kills: LAUNCH_KILL_SEED={SEED}")
    chance, entries, cluster = random.Random(SEED), 60, hollow.controlplane

    def kill(run: Launched, calls: Calls) -> None:
        calls.wait(chance.randint(1, 25))
        run.kill()

    with Launched(cluster, tmp_path / "run", "killed", entries) as run:
        seen = Seen(cluster, run.namespace)
        for _ in range(KILLS // 2):
            calls = Calls(run)
            run.start()
            kill(run, calls)
        run.start()
        run.wait(lambda status: step(status) == "watching")
        calls = Calls(run)
        run.upload(entries)
        for _ in range(KILLS // 2):
            kill(run, calls)
            calls = Calls(run)
            run.start()
        over = run.wait(lambda status: status["final"] and step(status) == "done")
        left = run.listed("jobs,pods,secrets")

    assert {("complete", f"n{number}") for number in range(entries)} == {
        (entry["status"], entry["node"]) for entry in over["plugins"]
    }
    assert {(kind, f"n{n}"): 1 for kind in ("Job", "Pod") for n in range(entries)} == {
        what: len(uids) for what, uids in seen.uids.items()
    }
    assert [] == left
    assert [] == over["launcher"]["stays"]
