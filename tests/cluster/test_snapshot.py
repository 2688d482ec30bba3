"""`status-ctl run --plugin cluster-snapshot` on a real cluster: all of it, and no secret of it."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tests.bed.controlplane import ControlPlane
from tests.cluster.test_run import Person

SECRET = "hunter2-PLANTED"
RUN = "snapshot"
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
