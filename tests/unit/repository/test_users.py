"""Who may read whose files: the numbers of users and groups in what we ship."""

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
SEES_ALL = [
    ROOT / "reporter" / "runctl" / "plugins" / "host-facts.yaml",
    ROOT / "deploy" / "plugins" / "ansible" / "definition.yaml",
]
"""Definitions whose Pods have the processes of the node in /host/proc or /proc."""


PLUGINS = sorted((ROOT / "reporter" / "runctl" / "plugins").glob("*.yaml"))


@pytest.mark.parametrize("definition", PLUGINS, ids=lambda path: path.stem)
def test_a_plugin_sees_no_more_of_a_node_than_it_needs(definition):
    """Below / are Secrets of Pods and sockets of the runtime, which root may use."""
    spec = yaml.safe_load(definition.read_text())["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    mounts = {each["name"]: each for each in container["volumeMounts"]}
    of_node = {
        each["name"]: each["hostPath"]["path"] for each in spec["volumes"] if "hostPath" in each
    }

    allowed = {"/etc", "/proc", "/run/log", "/sys", "/usr", "/usr/lib/os-release", "/var/log"}
    assert set(of_node.values()) <= allowed
    assert all(mounts[name]["readOnly"] for name in of_node)
    if spec["securityContext"]["runAsUser"] == 0:
        assert set(of_node.values()) == {"/usr", "/var/log", "/run/log"}
        # Nor what is mounted below, which root could write.
        assert {mounts[name]["recursiveReadOnly"] for name in of_node} == {"IfPossible"}


def numbers(text: str) -> set[int]:
    """Return every user and group that a manifest names, also in one that is quoted in another."""
    return set(map(int, re.findall(r"(?:runAsUser|runAsGroup|fsGroup)\W+(\d+)", text)))


@pytest.mark.parametrize("definition", SEES_ALL, ids=lambda path: path.parent.name)
def test_what_sees_all_processes_of_a_node_has_a_user_that_nobody_else_has(definition):
    """Through /proc/PID/root it could read and write what a container of the same user may."""
    spec = yaml.safe_load(definition.read_text())["spec"]["template"]["spec"]
    context = spec["securityContext"]
    own = {context[name] for name in ("runAsUser", "runAsGroup", "fsGroup")}
    image = re.findall(r"^USER (\d+):(\d+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    others = {*map(int, image[-1])}
    for folder in ("deploy", "reporter/runctl"):
        for path in (ROOT / folder).rglob("*.yaml"):
            if path != definition:
                others |= numbers(path.read_text())

    assert 65532 in others
    assert 1 == len(own)
    assert not own & others
    # Between people's and those of systemd's dynamic services; a rootless node has none from 65536.
    assert 60706 <= min(own) <= 61183
    assert all("runAsUser" not in one["securityContext"] for one in spec["containers"])
