"""`status-ctl run --plugin cluster-snapshot` on a real cluster: all of it, and no secret of it."""

from __future__ import annotations

import gzip
import json
import os
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from reporter.agent.snapshot.task import snapshot
from reporter.agent.task import Work
from reporter.core.snapshot.options import read_options
from reporter.errors import Forbidden
from reporter.kube.api import KubeApi
from tests.bed.controlplane import ControlPlane
from tests.cluster.test_run import Person

SECRET = "hunter2-PLANTED"
RUN = "snapshot"
NARROW = "narrow"
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

pytestmark = [pytest.mark.node, pytest.mark.timeout(600)]


def test_l12_a_snapshot_of_a_real_cluster(cluster: ControlPlane, tmp_path: Path) -> None:
    """Its objects are at the top of the tarball; planted values are in no byte, its rights gone."""
    person = Person(cluster, tmp_path)
    (tmp_path / "planted.yaml").write_text(PLANTED)
    # Applied, so that the values of the Secret stand in its annotation as well.
    cluster.kubectl("apply", "-n", "default", "-f", str(tmp_path / "planted.yaml"))
    option = "--plugin-env=cluster-snapshot.SNAPSHOT_"
    try:
        code, _, err = person.run(
            *("run", "--plugin", "cluster-snapshot", "--name", RUN, "--storage", "none"),
            *(f"{option}SECRETS=metadata", f"{option}KUBELET=true", f"{option}POD_LOGS=true"),
            *("--wait", "--timeout", "4m"),
        )
        got, _, said = person.run("retrieve", RUN, "--extract", str(tmp_path / "got"))
    finally:
        gone = person.run("delete", RUN, "--yes")
        cluster.kubectl("delete", "-n", "default", "-f", str(tmp_path / "planted.yaml"))

    assert (0, 0, 0) == (code, got, gone[0]), err + said + gone[2]
    assert [] == person.left_of(RUN)
    home = tmp_path / "got"
    index = json.loads((home / "resources" / "index.json").read_text())
    counts = {(each["group"], each["resource"]): each["count"] for each in index["resources"]}
    secrets = json.loads((home / "resources/ns/default/core_v1_secrets.json").read_text())
    (planted,) = (e for e in secrets["items"] if e["metadata"]["name"] == "planted")

    assert not [each for each in index["resources"] if "error" in each], index
    assert min(counts["", "nodes"], counts["", "pods"], counts["batch", "cronjobs"]) >= 1
    assert {"apiVersion", "kind", "metadata"} == set(planted)
    assert (home / "hosts" / "node1" / "configz.json").is_file()
    assert {"status": 200} == json.loads((home / "hosts/node1/healthz.json").read_text())
    assert list((home / "podlogs").rglob("*.txt"))
    assert "v1.34.4" == json.loads((home / "serverversion.json").read_text())["gitVersion"]
    tarballs = list(tmp_path.glob("*.tar.gz"))
    everything = [gzip.decompress(each.read_bytes()) for each in tarballs]
    everything += [each.read_bytes() for each in home.rglob("*") if each.is_file()]
    assert not [data for data in everything if SECRET.encode() in data]


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
    failure = snapshot(options, Work(out, {}, lambda *_: None, threading.Event()), api)
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
