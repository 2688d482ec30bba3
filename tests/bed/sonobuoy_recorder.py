"""Records runs of the real Sonobuoy: what is in their tarballs, and what it says of them.

`python -m tests.bed.sonobuoy_recorder FILE` writes them as JSON. Its aggregator and its workers are
processes here, at the fake API server; nobody runs their Pods. Of a tarball the results are kept.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import uuid
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from tests.archives.text_tar import pack
from tests.bed.binaries import program
from tests.blackbox.ctl.cluster import kubeconfig
from tests.fakekube import FakeKube
from tests.ports import free_port

BOUND = 120.0
STORED = Path("/tmp/sonobuoy")  # whatever it is told
NODES = ("node-a", "node-b")
JUNIT = """<?xml version="1.0" encoding="UTF-8"?>
<testsuites><testsuite name="disks" tests="4" failures="1" errors="1">
<testcase name="opens" classname="io" time="0.5"/>
<testcase name="closes" classname="io"><failure message="is open">7: &lt;a&gt;</failure></testcase>
<testcase name="reads" classname="io"><error message="no such disk">trace</error></testcase>
<testcase name="writes" classname="io"><skipped message="read-only"/></testcase>
</testsuite></testsuites>
"""
GOOD_JUNIT = '<testsuite name="s"><testcase name="a"/><testcase name="b"/></testsuite>'
GOJSON = "\n".join(
    json.dumps({"Time": "2026-01-01T00:00:00Z", "Action": action, "Package": "p", **test})
    for action, test in (
        ("run", {"Test": "TestA"}),
        ("output", {"Test": "TestA", "Output": "--- PASS: TestA\n"}),
        ("pass", {"Test": "TestA", "Elapsed": 0.1}),
        ("run", {"Test": "TestB"}),
        ("output", {"Test": "TestB", "Output": "    b_test.go:7: is open\n"}),
        ("fail", {"Test": "TestB", "Elapsed": 0.2}),
        ("skip", {"Test": "TestC"}),
        ("fail", {"Elapsed": 0.3}),
    )
)
MANUAL = """\
name: disks
status: failed
items:
- name: sda
  status: passed
- name: sdb
  status: failed
  details:
    smart: reallocated sectors
- name: sdc
  items:
  - name: surface
    status: passed
"""
CUSTOM = "name: fans\nitems:\n- {name: a, status: degraded}\n- {name: b, status: good}\n"
Files = Mapping[str, str]
# Of a plugin: its driver, its format, and the files of each result; without files none comes.
Plan = Mapping[str, tuple[str, str, Mapping[str, Files | None]]]
RUNS: Mapping[str, tuple[int, Plan]] = {
    "failed": (
        600,
        {
            "unit": ("Job", "junit", {"global": {"junit_01.xml": JUNIT, "log.txt": "said"}}),
            "go": ("Job", "gojson", {"global": {"out.json": GOJSON}}),
            "disks": ("Job", "manual", {"global": {"disks.yaml": MANUAL}}),
            "fans": ("Job", "manual", {"global": {"fans.yaml": CUSTOM}}),
            "logs": (
                "DaemonSet",
                "raw",
                {node: {"a.txt": node, "more/b.txt": "b"} for node in NODES},
            ),
        },
    ),
    "timeout": (
        10,
        {
            "good": ("Job", "junit", {"global": {"junit.xml": GOOD_JUNIT}}),
            "silent": ("Job", "junit", {"global": None}),
            "checks": (
                "DaemonSet",
                "junit",
                {"node-a": {"junit.xml": GOOD_JUNIT}, "node-b": None},
            ),
        },
    ),
    "passed": (
        600,
        {
            "unit": ("Job", "junit", {"global": {"junit_01.xml": GOOD_JUNIT}}),
            "logs": ("DaemonSet", "raw", {node: {"a.txt": node} for node in NODES}),
        },
    ),
}


class Recorder:
    """One run of Sonobuoy in a namespace of its own."""

    def __init__(self, fake: FakeKube, folder: Path, seconds: int, plan: Plan) -> None:
        self._fake, self._folder, self._plan = fake, folder, plan
        self._name, self._space = str(uuid.uuid4()), f"sonobuoy-{uuid.uuid4().hex[:8]}"
        self._seconds, self._port = seconds, free_port()

    def run(self) -> Path:
        """Run it to its end, and return its tarball."""
        with ExitStack() as until:
            self._prepare()
            until.callback(shutil.rmtree, STORED / self._name, ignore_errors=True)
            self._log = log = until.enter_context((self._folder / "log").open("ab"))
            environ = {"PATH": os.environ["PATH"], "HOME": str(self._folder)}
            aggregator = subprocess.Popen(
                [
                    *(str(program("sonobuoy")), "aggregator", "--no-exit"),
                    *("--kubeconfig", str(kubeconfig(self._folder / "config", self._fake))),
                ],
                cwd=self._folder,
                env={**environ, "SONOBUOY_CONFIG": str(self._folder / "config.json")},
                stdout=log,
                stderr=subprocess.STDOUT,
            )
            until.callback(aggregator.wait)
            until.callback(aggregator.kill)
            for plugin, (driver, _, _) in self._plan.items():
                if driver == "DaemonSet":
                    self._schedule(self._wait(partial(self._daemon_set, plugin)))
            for plugin, (driver, _, results) in self._plan.items():
                for node, files in results.items():
                    if files is not None:
                        self._work(plugin, driver, node, files, environ)
            self._wait(lambda: "Results available at" in (self._folder / "log").read_text())
            (found,) = STORED.glob(f"*_sonobuoy_{self._name}.tar.gz")
            kept = self._folder / "run.tar.gz"
            shutil.move(found, kept)
            return kept

    def _prepare(self) -> None:
        (self._folder / "plugins.d").mkdir(parents=True)
        for name, (driver, kind, _) in self._plan.items():
            (self._folder / "plugins.d" / f"{name}.yaml").write_text(
                f"sonobuoy-config: {{driver: {driver}, result-format: {kind}, "
                f"plugin-name: {name}, result-type: {name}}}\n"
                "spec: {image: plugin, name: plugin}\n"
            )
        address = f"127.0.0.1:{self._port}"
        config = {
            "UUID": self._name,
            "Resources": [],
            "ResultsDir": str(STORED / "results"),
            "Server": {
                "bindaddress": "127.0.0.1",
                "bindport": self._port,
                "advertiseaddress": address,
                "timeoutseconds": self._seconds,
            },
            "Plugins": [{"name": name} for name in self._plan],
            "PluginSearchPath": [str(self._folder / "plugins.d")],
            "Namespace": self._space,
            "WorkerImage": "worker",
            "ServiceAccountName": "default",
        }
        (self._folder / "config.json").write_text(json.dumps(config))
        self._fake.store.create("Namespace", {"metadata": {"name": self._space}})
        labels = {"sonobuoy-component": "aggregator"}
        meta = {"name": "sonobuoy", "namespace": self._space, "labels": labels}
        pod = {"metadata": meta, "spec": {"containers": []}, "status": {"phase": "Running"}}
        self._fake.store.create("Pod", pod)

    def _work(
        self, plugin: str, driver: str, node: str, files: Files, environ: dict[str, str]
    ) -> None:
        """Do as Sonobuoy's worker does for a plugin: it is the one that does it."""
        kind = "DaemonSet" if driver == "DaemonSet" else "Pod"
        given = self._wait(lambda: self._worker(kind, plugin))
        secret = self._wait(
            lambda: next((s for s in self._objects("Secret") if _names(s, plugin)), None)
        )
        pem = {name: base64.b64decode(text).decode() for name, text in secret["data"].items()}
        results = self._folder / "results" / plugin / node
        (results / "out").mkdir(parents=True)
        for name, content in files.items():
            (results / "out" / name).parent.mkdir(exist_ok=True)
            (results / "out" / name).write_text(content)
        (results / "done").write_text(str(results / "out"))
        subprocess.run(
            [str(program("sonobuoy")), "worker", "global" if node == "global" else "single-node"],
            env={
                **environ,
                **{name: given[name] for name in ("AGGREGATOR_URL", "RESULT_TYPE", "CA_CERT")},
                "CLIENT_CERT": pem["tls.crt"],
                "CLIENT_KEY": pem["tls.key"],
                "NODE_NAME": node,
                "SONOBUOY_RESULTS_DIR": str(results),
                "SONOBUOY_DONE_FILE_DELAY": "0s",
                "SONOBUOY_PROGRESS_PORT": str(free_port()),
            },
            timeout=BOUND,
            check=True,
            stderr=self._log,
        )

    def _daemon_set(self, plugin: str) -> dict[str, Any] | None:
        found = (each for each in self._objects("DaemonSet") if _variables(each, plugin))
        return next(found, None)

    def _schedule(self, daemon_set: dict[str, Any]) -> None:
        """Make the Pods of a DaemonSet: a node without one has failed."""
        template = daemon_set["spec"]["template"]
        for node in NODES:
            name = f"{daemon_set['metadata']['name']}-{node}".lower()
            meta = {**template["metadata"], "name": name, "namespace": self._space}
            pod = {"metadata": meta, "spec": {**template["spec"], "nodeName": node}}
            self._fake.store.create("Pod", {**pod, "status": {"phase": "Running"}})

    def _worker(self, kind: str, plugin: str) -> dict[str, str] | None:
        found = (_variables(each, plugin) for each in self._objects(kind))
        return next(filter(None, found), None)

    def _objects(self, kind: str) -> list[dict[str, Any]]:
        return self._fake.store.find(kind, self._space)

    def _wait(self, true: Any) -> Any:
        end = time.monotonic() + BOUND
        while time.monotonic() < end:
            if found := true():
                return found
            time.sleep(0.2)
        raise TimeoutError((self._folder / "log").read_text()[-3000:])


def _variables(found: Mapping[str, Any], plugin: str) -> dict[str, str] | None:
    """Return what the worker of a plugin is given by a Pod or a DaemonSet."""
    spec = found["spec"]
    for container in spec.get("template", found)["spec"]["containers"]:
        given = {each["name"]: each.get("value", "") for each in container.get("env", [])}
        if container["name"] == "sonobuoy-worker" and given.get("RESULT_TYPE") == plugin:
            return given
    return None


def _names(secret: Mapping[str, Any], plugin: str) -> bool:
    return f"-{plugin}-" in secret["metadata"]["name"]


def members(tarball: Path) -> dict[str, str]:
    """Return the text of the files that say what the results are."""
    found = {}
    with tarfile.open(tarball) as opened:
        for member in opened:
            name = member.name.removeprefix("./")
            content = opened.extractfile(member)
            wanted = name == "meta/info.json" or name.startswith("plugins/")
            # Definitions have what is new each time, and nothing about results.
            if content is not None and wanted and not name.endswith("/definition.json"):
                found[name] = content.read().decode()
    return found


def said(tarball: Path, plugin: str, mode: str) -> str:
    """Return what `sonobuoy results` prints."""
    command = [str(program("sonobuoy")), "results", str(tarball), "-p", plugin, "-m", mode]
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout


def main() -> None:
    """Record all runs."""
    record: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as place, FakeKube(role="admin") as fake:
        for name in NODES:
            fake.store.create("Node", {"metadata": {"name": name}})
        for name, (seconds, plan) in RUNS.items():
            tarball = Recorder(fake, Path(place, name), seconds, plan).run()
            kept = pack(members(tarball), Path(place, f"{name}.tar.gz"))
            record[name] = {
                "members": members(tarball),
                "said": {
                    plugin: {mode: said(kept, plugin, mode) for mode in ("report", "detailed")}
                    for plugin in plan
                },
            }
    Path(sys.argv[1]).write_text(json.dumps(record, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
