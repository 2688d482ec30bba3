"""`status-ctl run --plugin host-facts` on a real node: its facts in the tarball."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from reporter.wire import schema
from tests.bed.controlplane import ControlPlane
from tests.cluster.test_run import Person

pytestmark = [pytest.mark.node, pytest.mark.timeout(600)]


def test_facts_of_the_node_without_privileges(cluster: ControlPlane, tmp_path: Path) -> None:
    """As an ordinary user, with a few directories of the host; they are the host's facts."""
    person = Person(cluster, tmp_path)
    try:
        code, out, err = person.run(
            *("run", "--plugin", "host-facts", "--name", "facts", "--storage", "none"),
            *("--wait", "--timeout", "4m", "-o", "json"),
        )
        assert 0 == code, out + err

        code, out, err = person.run("facts", "facts", "--node", "node1", "-o", "json")
        assert (0, os.uname().release) == (code, json.loads(out)["kernel"]["release"]), err
        code, _, err = person.run("retrieve", "facts", "--extract", str(tmp_path / "got"))
        assert 0 == code, err
    finally:
        person.run("delete", "facts", "--yes")
    place = tmp_path / "got" / "plugins" / "host-facts" / "results" / "node1"
    said = json.loads((place / "host" / "gather.json").read_text())
    facts = json.loads((place / "host" / "facts.json").read_text())
    assert ("complete", "node1") == (said["status"], facts["node"]), said
    assert [] == list(schema.violations("facts.v1", facts))
    assert os.uname().release == facts["kernel"]["release"]
    assert Path("/etc/machine-id").read_text().strip() == facts["machine_id"]
    assert "10.244.0.1" in facts["network"]["ipv4_addresses"]
    assert facts["kubelet"]["running"]
    assert "containerd" in facts["container_runtimes"]
    assert (place / "logs" / "gather.json").exists()
