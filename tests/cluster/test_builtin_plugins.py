"""The built-in plugins on a real cluster: facts and logs of its nodes, its objects, no secret."""

from __future__ import annotations

import base64
import gzip
import json
import os
import subprocess
import tarfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from reporter.collect.snapshot.options import read_options
from reporter.collect.snapshot.snapshot import take_snapshot
from reporter.common import schema
from reporter.common.lifecycle import Stop
from reporter.errors import Forbidden
from reporter.kube.api import KubeApi
from tests.aggregators.object_store import ObjectStore
from tests.aggregators.served import ROOT
from tests.bed.binaries import BedUnavailable, program
from tests.bed.controlplane import ControlPlane
from tests.bed.node import Node
from tests.blackbox.cluster.scene import BOUND, BUSYBOX, Person, entries, write
from tests.blackbox.cluster.test_upload import gateway, secrets
from tests.ports import free_port

SECRET = "hunter2-PLANTED"
BLANKED = "https://[redacted]@example.com/"
RUN = "whole"
NARROW = "narrow"
LOG_ANALYSIS = ROOT / "reporter" / "runctl" / "plugins" / "log-analysis.yaml"
GRANTED = {
    "ConfigMap",
    "ServiceAccount",
    "Role",
    "RoleBinding",
    "ClusterRole",
    "ClusterRoleBinding",
}
PLANTED = f"""
apiVersion: v1
kind: Secret
metadata: {{name: planted}}
stringData: {{password: {SECRET}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: planted}}
data: {{url: "https://user:{SECRET}@example.com/"}}
---
apiVersion: v1
kind: Pod
metadata: {{name: planted}}
spec:
  restartPolicy: Never
  containers:
    - {{name: c, image: {BUSYBOX}, command: [echo, "to https://user:{SECRET}@example.com/"]}}
---
apiVersion: batch/v1
kind: CronJob
metadata: {{name: planted}}
spec:
  schedule: "0 0 1 1 *"
  suspend: true
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers:
            - {{name: c, image: none, env: [{{name: A, value: {SECRET}}}]}}
"""

SICK = "skipping pod synchronization - PLEG is not healthy: pleg was last seen active 4m ago"
JOURNAL = f"""
set -e
mount --bind "$1" /var/log
mount -t tmpfs none /run
mkdir -p /run/systemd/journal.bed "$1/journal"
/lib/systemd/systemd-journald bed &
until [ -S /run/systemd/journal.bed/socket ]; do sleep 0.1; done
python3 -c '
import socket
to = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
to.connect("/run/systemd/journal.bed/socket")
for said in [b"fine"] * 1000 + [b"{SICK}"]:
    to.send(b"SYSLOG_IDENTIFIER=kubelet\\nMESSAGE=" + said + b"\\n")'
kill $!
wait $! || true
mv "$1"/journal/*.bed "$1/journal/0123456789abcdef0123456789abcdef"
"""
"""Writes a journal as a node has it, without touching this machine's."""

pytestmark = [pytest.mark.node, pytest.mark.timeout(600)]


@pytest.fixture
def store(cluster: ControlPlane, tmp_path: Path) -> Iterator[ObjectStore]:
    """An object store that Pods and this machine reach."""
    try:
        program("versitygw")
    except BedUnavailable as reason:
        pytest.skip(str(reason))
    with ObjectStore(tmp_path, gateway(cluster), free_port()) as running:
        yield running


def test_facts_and_a_snapshot_into_an_object_store(
    person: Person, store: ObjectStore, second: str
) -> None:
    """L12, L16: run, wait, delete; the object has all that was taken, and no secret."""
    kubectl, option = person.cluster.kubectl, "--plugin-env=cluster-snapshot.SNAPSHOT_"
    # Applied, so that the values of the Secret stand in its annotation as well.
    planted = ("-n", "default", "-f", write(person.home, "planted.yaml", PLANTED))
    kubectl("apply", *planted)
    url = store.presigned("/results/run.tar.gz")
    try:
        said = ("--for=jsonpath={.status.phase}=Succeeded", f"--timeout={BOUND:.0f}s")
        kubectl("wait", "pod/planted", "-n", "default", *said)
        code, _, err = person.run(
            *("run", "--plugin", "host-facts", "--plugin", "cluster-snapshot", "--name", RUN),
            *(f"{option}SECRETS=metadata", f"{option}KUBELET=true", f"{option}POD_LOGS=true"),
            *("--storage", "none", "--upload-ca", str(store.ca)),
            *("--upload-url-file", write(person.home, "url", url)),
        )
        assert 0 == code, err
        code, out, err = person.run("wait", f"run/{RUN}", "--timeout", "4m", "-o", "json")
        if code:
            # Whole: what pytest shows of a comparison would be cut.
            pods = kubectl("get", "pods", "-A", "-o", "wide")
            pytest.fail("\n".join((out, err, *map(str, person.run("logs", RUN)), pods)))
        kept = person.home / "kept.tar.gz"
        code, _, err = person.run("retrieve", RUN, "--file", str(kept))
        assert 0 == code, err
    finally:
        gone = person.run("delete", RUN, "--yes")
        kubectl("delete", *planted)

    assert (0, []) == (gone[0], person.left_of(RUN)), gone
    nodes = (Node.name, second)
    keys = (*(f"host-facts/{node}" for node in nodes), "cluster-snapshot/global")
    assert dict.fromkeys(keys, ("complete", "passed")) == entries(out)
    stored = store.object("run.tar.gz")
    assert kept.read_bytes() == stored.read_bytes()
    hidden = [form for secret in (SECRET, *secrets(url)) for form in forms(secret)]
    assert not [name for name, data in contents(stored) if any(form in data for form in hidden)]
    check_results(person, stored)
    check_facts(person, stored, nodes)
    check_snapshot(stored, nodes)


def forms(secret: str) -> Iterator[bytes]:
    """A secret as it is, and what Base64 makes of it wherever it begins in a text."""
    yield secret.encode()
    for before in range(3):
        coded = base64.b64encode(bytes(before) + secret.encode()).rstrip(b"=")
        yield coded[(0, 2, 3)[before] : -1]


def contents(tarball: Path) -> Iterator[tuple[str, bytes]]:
    """Names and bytes of all that is in a tarball, of what is packed in it too."""
    yield "", gzip.decompress(tarball.read_bytes())
    with tarfile.open(tarball) as archive:
        for member in archive:
            if (file := archive.extractfile(member)) is not None:
                data = file.read()
                yield member.name, data
                if member.name.endswith(".gz"):
                    yield member.name, gzip.decompress(data)


def check_results(person: Person, tarball: Path) -> None:
    """Everything has passed, and what was blanked is said."""
    code, out, err = person.run("results", str(tarball), "-o", "json")
    assert (0, True) == (code, "values redacted in the snapshot: " in err), (out, err)
    assert {"host-facts": "passed", "cluster-snapshot": "passed"} == {
        each["name"]: each["status"] for each in json.loads(out)["plugins"]
    }


def check_facts(person: Person, tarball: Path, nodes: Sequence[str]) -> None:
    """They are this machine's; two nodes on it differ in what comes and goes at most."""
    code, out, err = person.run("facts", str(tarball), "-o", "json")
    assert (0, "") == (code, err)
    told = {each["node"]: each for each in json.loads(out)["nodes"]}
    assert sorted(nodes) == sorted(told)
    files = dict(contents(tarball))
    for node in nodes:
        place = f"plugins/host-facts/results/{node}"
        said = json.loads(files[f"{place}/host/gather.json"])
        assert ("complete", True) == (said["status"], f"{place}/logs/gather.json" in files), said
        facts = json.loads(files[f"{place}/host/facts.json"])
        assert told[node] == facts
        assert [] == list(schema.violations("facts.v1", facts))
        assert os.uname().release == facts["kernel"]["release"]
        assert Path("/etc/machine-id").read_text().strip() == facts["machine_id"]
        assert "10.244.0.1" in facts["network"]["ipv4_addresses"]
        assert facts["kubelet"]["running"]
        assert "containerd" in facts["container_runtimes"]

    code, out, err = person.run("facts", str(tarball), "--diff", "-o", "json")
    found = json.loads(out)
    assert (0, sorted(nodes)) == (code, found["nodes"]), err
    # The bridge is up while a Pod is on it.
    differ = {each["fact"].partition("[")[0] for each in found["differences"]}
    assert differ <= {"file_systems", "mounts", "network.interfaces"}, found
    code, out, err = person.run("facts", str(tarball), "--diff", "--all", "-o", "json")
    assert {"node"} <= {each["fact"] for each in json.loads(out)["differences"]}, err


def check_snapshot(tarball: Path, nodes: Sequence[str]) -> None:
    """All of the cluster, at the top of the tarball; of what was planted what may be known."""
    files = dict(contents(tarball))
    index = json.loads(files["resources/index.json"])
    counts = {(each["group"], each["resource"]): each["count"] for each in index["resources"]}

    def planted(resource: str) -> dict[str, Any]:
        listed = json.loads(files[f"resources/ns/default/{resource}.json"])["items"]
        return dict(next(each for each in listed if each["metadata"]["name"] == "planted"))

    assert not [each for each in index["resources"] if "error" in each], index
    # Other tests' Pods and namespaces come and go meanwhile, so parts of theirs may be missing.
    assert ([], set()) == (index["groupErrors"], {"error", "stopped"} & index.keys()), index
    assert min(counts["", "pods"], counts["batch", "cronjobs"]) >= 1
    assert len(nodes) <= counts["", "nodes"]
    assert {"apiVersion", "kind", "metadata"} == set(planted("core_v1_secrets"))
    assert {"url": BLANKED} == planted("core_v1_configmaps")["data"]
    cron = planted("batch_v1_cronjobs")["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    assert [{"name": "A", "value": "[redacted]"}] == cron["containers"][0]["env"]
    for node in nodes:
        assert f"hosts/{node}/configz.json" in files
        assert {"status": 200} == json.loads(files[f"hosts/{node}/healthz.json"])
    assert f"to {BLANKED}\n" == files["podlogs/default/planted/logs/c.txt"].decode()
    assert "v1.34.4" == json.loads(files["serverversion.json"])["gitVersion"]


def wait_until_granted(api: KubeApi, *namespaces: str) -> None:
    """The authorizer follows the API with a delay of its own."""
    end = time.monotonic() + 60
    while True:
        try:
            for each in namespaces:
                api.get("Namespace", None, each)
                api.list_page("Secret", each)
            return
        except Forbidden:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


def taken(api: KubeApi, out: Path, wished: dict[str, str]) -> dict[str, Any]:
    """Take a snapshot as the agent does; return its index."""
    options, _ = read_options({f"SNAPSHOT_{name}": value for name, value in wished.items()})
    out.mkdir()
    failure = take_snapshot(options, api, out, lambda *_: None, Stop())
    assert failure is None, failure
    return dict(json.loads((out / "resources" / "index.json").read_text()))


def test_the_rights_in_chosen_namespaces(cluster: ControlPlane, tmp_path: Path) -> None:
    """The roles are enough for the agent and for nothing elsewhere, also once one has vanished."""
    person = Person(cluster, tmp_path)
    wished = {"NAMESPACES": f"kube-system,{NARROW}", "SECRETS": "metadata", "POD_LOGS": "true"}
    environment = [f"--plugin-env=cluster-snapshot.SNAPSHOT_{k}={v}" for k, v in wished.items()]
    command = ("run", "--plugin", "cluster-snapshot", "--name", NARROW, "-n", "default")
    cluster.kubectl("create", "namespace", NARROW)
    try:
        code, out, err = person.run(*command, *environment, "--dry-run")
        assert 0 == code, err
        made = [each for each in yaml.safe_load_all(out) if each["kind"] in GRANTED]
        cluster.kubectl("apply", "-f", "-", input=yaml.safe_dump_all(made))
        token = tmp_path / "token"
        token.write_text(cluster.create_token("default", f"{NARROW}-snapshot"))
        api = KubeApi.connect(cluster.url, ca_file=str(cluster.ca_file), token_file=str(token))
        with closing(api):
            wait_until_granted(api, "kube-system", NARROW)
            first = taken(api, tmp_path / "first", wished)
            for elsewhere in ("default", None):
                with pytest.raises(Forbidden):
                    api.list_page("Secret", elsewhere)
            cluster.kubectl("delete", "namespace", NARROW)
            second = taken(api, tmp_path / "second", wished)
    finally:
        gone = person.run("delete", NARROW, "-n", "default", "--yes")
        cluster.kubectl("delete", "namespace", NARROW, "--ignore-not-found")

    assert (True, True) == (first["complete"], (0 == gone[0])), (first, gone)
    assert ["kube-system", NARROW] == sorted(os.listdir(tmp_path / "first" / "resources" / "ns"))
    assert [{"namespace": NARROW, "error": "it was deleted"}] == second["namespaceErrors"]
    assert not [each for each in second["resources"] if "error" in each], second
    assert [] == person.left_of(NARROW)


def test_a_verdict_from_the_journal_of_a_node(person: Person, run: str) -> None:
    """By the node's own journalctl; a Pod that may not run it cannot tell, and says why."""
    log = person.home / "log"
    log.mkdir()
    subprocess.run(["unshare", "-m", "sh", "-c", JOURNAL, "sh", str(log)], check=True, timeout=60)
    may = LOG_ANALYSIS.read_text().replace("{path: /var/log}", f"{{path: {log}}}")
    may_not = may.replace(", add: [SYS_CHROOT]", "").replace("name: log-analysis", "name: refused")
    both = write(person.home, "both.yaml", f"{may}---\n{may_not}")

    code, _, err = person.run("run", "-f", both, "--name", run, "--storage", "none")
    assert 0 == code, err
    code, out, err = person.run("wait", f"run/{run}", "--timeout", "4m", "-o", "json")
    assert {
        f"log-analysis/{Node.name}": ("complete", "failed"),
        f"refused/{Node.name}": ("complete", "unknown"),
    } == entries(out), err
    code, out, err = person.run("results", run)
    assert (1, True, True) == (
        code,
        SICK in out,
        "/var/log/journal: journalctl: chroot: Operation not permitted" in out,
    ), (out, err)
    code, _, err = person.run("retrieve", run, "--extract", str(person.home / "got"))
    assert 0 == code, err

    place = person.home / "got/plugins/log-analysis/results" / Node.name
    said = json.loads((place / "logs/gather.json").read_text())
    assert "complete" == said["status"], said
    lines = gzip.decompress((place / "logs/journal.gz").read_bytes()).decode().splitlines()
    assert (1001, True) == (len(lines), lines[0].endswith(SICK))
