"""Facts of several nodes beside each other."""

import pytest

from reporter.core.host.compare import Difference, differences, lines

FACTS = {
    "api_version": "v1",
    "cpu": {"logical": 2, "flags": ["fpu", "sse2"]},
    "disks": [{"name": "vda", "rotational": True}, {"name": "vdb"}],
    "swaps": [{"size_bytes": 1}],
    "network": {"resolver": {"nameservers": ["10.0.0.2", "10.0.0.1"]}},
    "sysctls": {"vm.swappiness": "60"},
    "load": {"load1": 0.5},
}


def test_facts_as_names_and_values():
    assert {
        "api_version": "v1",
        "cpu.flags[fpu]": "yes",
        "cpu.flags[sse2]": "yes",
        "cpu.logical": "2",
        "disks[vda].rotational": "yes",
        "disks[vdb].there": "yes",
        "load.load1": "0.5",
        "network.resolver.nameservers": "10.0.0.2 10.0.0.1",
        "swaps[0].size_bytes": "1",
        "sysctls.vm.swappiness": "60",
    } == lines(FACTS)


def test_what_is_there_several_times_has_a_number():
    """Mounts one upon another, routes through two interfaces; and a path that looks like that."""
    devices = [("/a", "x"), ("/a (2)", "y"), ("/a", "x"), ("/a", "z")]

    assert {
        "mounts[/a].device": "x",
        "mounts[/a (2)].device": "y",
        "mounts[/a (3)].device": "x",
        "mounts[/a (4)].device": "z",
    } == lines({"mounts": [{"path": path, "device": device} for path, device in devices]})


def changed(**changes):
    return {**FACTS, **changes}


def test_nodes_that_are_the_same_but_for_what_every_machine_has_of_its_own():
    """Load, addresses and the like say nothing about a fleet."""
    mac = {"interfaces": [{"name": "eth0", "mac_address": "a"}]}
    nodes = {"a": changed(load={"load1": 9.0}, node="a", network=mac), "b": changed(network=mac)}
    nodes["b"]["network"] = {"interfaces": [{"name": "eth0", "mac_address": "b"}]}

    assert [] == differences(nodes)
    assert ["load.load1", "network.interfaces[eth0].mac_address", "node"] == [
        each.name for each in differences(nodes, own=True)
    ]


def test_the_majority_is_named_and_so_is_who_differs():
    nodes = {
        "a": FACTS,
        "b": FACTS,
        "c": changed(sysctls={"vm.swappiness": "10"}),
        "d": changed(cpu={"logical": 2, "flags": ["fpu"]}),
    }

    assert [
        Difference("cpu.flags[sse2]", "yes", {"yes": ("a", "b", "c"), "absent": ("d",)}),
        Difference("sysctls.vm.swappiness", "60", {"60": ("a", "b", "d"), "10": ("c",)}),
    ] == differences(nodes)


@pytest.mark.parametrize(
    ("values", "majority"), [("ab", None), ("aab", "a"), ("aabb", None), ("aabc", None)]
)
def test_only_more_than_half_of_the_nodes_are_a_majority(values, majority):
    nodes = {str(at): {"hostnam": value} for at, value in enumerate(values)}

    assert [majority] == [each.majority for each in differences(nodes)]
