"""L15: `status-ctl run -f deploy/plugins/ansible` on a real node: the facts of `host-facts`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.aggregators.served import ROOT
from tests.bed import building
from tests.bed.controlplane import ControlPlane
from tests.bed.node import Node
from tests.bed.product_image import ANSIBLE_IMAGE, build_ansible_image
from tests.bed.service import LAST_BYTES
from tests.blackbox.cluster.scene import Person

pytestmark = [pytest.mark.node, pytest.mark.timeout(900)]

PLUGIN = ROOT / "deploy" / "plugins" / "ansible"
MOST_IMAGE = 120_000_000
FIELDS = 20
NOT_OF_THE_NODE = ("env", "cmdline", "proc_cmdline", "pkg_mgr", "python", "user_id", "dns")
MIB = 1024 * 1024


def of_host(facts: dict[str, Any]) -> dict[str, Any]:
    """Return what both have, from the gatherer `host`."""
    kernel, system, cpu, memory = (facts[name] for name in ("kernel", "os", "cpu", "memory"))
    network = facts["network"]
    cards = {each["name"]: each for each in network["interfaces"] if each["name"] != "lo"}
    way = _default(network.get("ipv4_routes", []), "0.0.0.0/0")
    way6 = _default(network.get("ipv6_routes", []), "::/0")
    return {
        "host name": facts["hostname"],
        "machine id": facts.get("machine_id"),
        "distribution": system["id"],
        "distribution's version": system.get("version_id", "").partition(".")[0],
        "distribution's name of it": system.get("codename"),
        "kernel": kernel["release"],
        "kernel's version": kernel["version"],
        "architecture": kernel["architecture"],
        "processors": cpu["logical"],
        "sockets": cpu.get("sockets"),
        "cores": cpu.get("cores"),
        "vendor": cpu.get("vendor"),
        "model": cpu.get("model"),
        "flags": sorted(cpu.get("flags", [])),
        "memory, MiB": memory["total_bytes"] // MIB,
        "swap, MiB": memory["swap_total_bytes"] // MIB,
        "mounts": _mounts(
            {each["path"]: (each["device"], each["type"]) for each in facts["mounts"]}
        ),
        "disks": {each["name"]: each["size_bytes"] for each in facts["disks"]},
        "disks that turn": {each["name"]: each["rotational"] for each in facts["disks"]},
        "schedulers": {each["name"]: each.get("scheduler", "") for each in facts["disks"]},
        "MAC addresses": {name: each["mac_address"] for name, each in cards.items()},
        "MTUs": {name: each["mtu_bytes"] for name, each in cards.items()},
        "IPv4 addresses": _addresses(network["ipv4_addresses"]),
        "IPv6 addresses": {
            name: sorted(
                each["address"] for each in network["ipv6_addresses"] if each["interface"] == name
            )
            for name in cards
        },
        "IPv4 gateway": way.get("gateway"),
        "IPv4 interface": way.get("interface"),
        "IPv6 gateway": way6.get("gateway"),
        "IPv6 interface": way6.get("interface"),
    }


def of_ansible(facts: dict[str, Any], disks_of_host: list[str]) -> dict[str, Any]:
    """Return the same from Ansible's facts, which have devices that are no disks, too."""
    told = {name.removeprefix("ansible_"): value for name, value in facts.items()}
    # Those of Pods come and go, and `host` leaves them out.
    names = [name for name in told["interfaces"] if name != "lo" and not name.startswith("veth")]
    cards = {name: told[name.replace("-", "_")] for name in names}
    disks = {name: told["devices"][name] for name in disks_of_host if name in told["devices"]}
    return {
        "host name": told["nodename"],
        "machine id": told.get("machine_id"),
        "distribution": told["distribution"].lower(),
        "distribution's version": told["distribution_major_version"],
        "distribution's name of it": told["distribution_release"],
        "kernel": told["kernel"],
        "kernel's version": told["kernel_version"],
        "architecture": told["architecture"],
        "processors": told["processor_vcpus"],
        "sockets": told["processor_count"],
        "cores": told["processor_count"] * told["processor_cores"],
        "vendor": told["processor"][1],
        "model": told["processor"][2],
        "flags": sorted(set(told["flags"])),
        "memory, MiB": told["memtotal_mb"],
        "swap, MiB": told["swaptotal_mb"],
        "mounts": _mounts(
            {each["mount"]: (each["device"], each["fstype"]) for each in told["mounts"]}
        ),
        "disks": {name: int(each["sectors"]) * 512 for name, each in disks.items()},
        "disks that turn": {name: each["rotational"] == "1" for name, each in disks.items()},
        "schedulers": {name: each["scheduler_mode"] for name, each in disks.items()},
        "MAC addresses": {name: each["macaddress"] for name, each in cards.items()},
        "MTUs": {name: each["mtu"] for name, each in cards.items()},
        "IPv4 addresses": _addresses(told["all_ipv4_addresses"]),
        "IPv6 addresses": {
            name: sorted(every["address"] for every in card.get("ipv6", []))
            for name, card in cards.items()
        },
        "IPv4 gateway": told["default_ipv4"].get("gateway"),
        "IPv4 interface": told["default_ipv4"].get("interface"),
        "IPv6 gateway": told["default_ipv6"].get("gateway"),
        "IPv6 interface": told["default_ipv6"].get("interface"),
    }


def _default(routes: list[dict[str, Any]], everywhere: str) -> dict[str, Any]:
    found = [each for each in routes if each["destination"] == everywhere and "gateway" in each]
    return min(found, key=lambda each: each["metric"], default={})


def _mounts(found: dict[str, tuple[str, str]]) -> dict[str, tuple[str, str]]:
    """Return the mounts of disks, without those of Pods, which come and go."""
    return {
        path: each
        for path, each in found.items()
        if each[0].startswith("/") and "/kubelet/pods/" not in path
    }


def _addresses(found: list[str]) -> dict[str, bool]:
    """Return addresses without the bed's own of Services, which come and go."""
    return {each: True for each in found if int(each.rpartition(".")[2]) not in LAST_BYTES}


def shared(facts: dict[str, Any], others: dict[str, Any]) -> dict[str, Any]:
    """Return the facts; of tables what both have, because the machine changes between two looks."""
    return {
        name: {key: each for key, each in value.items() if key in others[name]}
        if isinstance(value, dict)
        else value
        for name, value in facts.items()
    }


def test_ansible_tells_the_same_facts_of_the_node(
    cluster: ControlPlane, tmp_path: Path, figures: Callable[[str], None]
) -> None:
    """Both plugins in one run; what both know is the same, and is the node's."""
    if reason := building.why_not():
        pytest.skip(reason)
    built = build_ansible_image(tmp_path / "ansible.tar")
    assert built.all_bytes <= MOST_IMAGE
    Node(cluster).import_image(built.archive, ANSIBLE_IMAGE)
    built.archive.unlink()
    person = Person(cluster, tmp_path)
    try:
        code, out, err = person.run(
            *("run", "--plugin", "host-facts", "-f", str(PLUGIN), "--name", "both"),
            *("--storage", "none", "--wait", "--timeout", "4m"),
        )
        assert 0 == code, out + err

        # Ansible's file is not ours: the table has the node once.
        code, out, err = person.run("facts", "both", "-o", "json")
        assert (0, "") == (code, err)
        assert ["node1"] == [each["node"] for each in json.loads(out)["nodes"]]
        code, _, err = person.run("retrieve", "both", "--extract", str(tmp_path / "got"))
        assert 0 == code, err
    finally:
        person.run("delete", "both", "--yes")
    plugins = tmp_path / "got" / "plugins"
    ours = json.loads((plugins / "host-facts/results/node1/host/facts.json").read_text())
    place = plugins / "ansible/results/node1/ansible"
    said = json.loads((place / "gather.json").read_text())
    text = (place / "ansible-facts.json").read_text()
    theirs = json.loads(text)["ansible_facts"]
    figures(f"ansible: {built.all_bytes / 1e6:.1f} MB compressed, {said['seconds']:.1f} s")

    assert "complete" == said["status"], said
    expected = of_host(ours)
    known = {name: value for name, value in expected.items() if value}
    found = of_ansible(theirs, list(expected["disks"]))
    assert shared(expected, found) == shared(found, expected)
    for name, always in (
        ("mounts", "/"),
        ("MTUs", expected["IPv4 interface"]),
        ("IPv4 addresses", theirs["ansible_default_ipv4"].get("address")),
        ("disks", next(iter(expected["disks"]), None)),
    ):
        assert (always in expected[name]) == (always in found[name]), name
    assert len(known) >= FIELDS, sorted(known)
    if "debian" == expected["distribution"]:
        # From another file of the node's than its name and its number.
        version = Path("/etc/debian_version").read_text().strip()
        assert version == theirs["ansible_distribution_version"]
    # What would tell of the container, or may hold a credential.
    assert not {f"ansible_{name}" for name in NOT_OF_THE_NODE} & set(theirs)
    assert "AGGREGATOR" not in text
