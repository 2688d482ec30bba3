"""Facts of several nodes beside each other."""

import pytest

from reporter.results.compare import (
    ABSENT,
    LARGEST,
    Difference,
    differences,
    lines,
    read_facts_file,
)

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


def test_settings_in_a_list_of_words_have_values():
    """One that is there twice, too; what is not quite one is a word."""
    words = ["--v=2", "console=tty0", "console=ttyS0,9600=8", "quiet", "=odd", "empty="]

    assert {
        "flags[--v]": "2",
        "flags[console]": "tty0",
        "flags[console (2)]": "ttyS0,9600=8",
        "flags[quiet]": "yes",
        "flags[=odd]": "yes",
        "flags[empty=]": "yes",
    } == lines({"flags": words})


def test_flags_that_name_the_node_are_its_own():
    """What a kubelet is told of its node differs everywhere; the rest of its flags should not."""
    nodes = {
        each: {
            "kubelet": {"flags": [f"--{flag}={each}" for flag in ("node-ip", "provider-id", "v")]}
        }
        for each in "ab"
    }
    assert ["kubelet.flags[--v]"] == [each.name for each in differences(nodes)]


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


def facts_of(number, **more):
    """Facts of which a third of the nodes has another kernel, and each its own serial number."""
    kernel = "old" if number % 3 == 0 else "new"
    return {"kernel": kernel, "serial": f"s{number}", "same": True, **more}


def test_who_has_which_value():
    """Whoever has a value is known whatever the order is; a fact may begin and end with any."""
    nodes = {
        f"n{number}": facts_of(number, **({"late": 1} if number in (4, 5) else {}))
        for number in range(9)
    }
    found = {each.name: each for each in differences(nodes)}
    assert ["kernel", "late", "serial"] == sorted(found)
    assert ("new", ("n0", "n3", "n6")) == (found["kernel"].majority, found["kernel"].values["old"])
    assert (ABSENT, ("n4", "n5")) == (found["late"].majority, found["late"].values["1"])
    assert 9 == len(found["serial"].values)


def test_a_value_that_is_the_word_for_none():
    (found,) = differences({"a": {"x": ABSENT}, "b": {}, "c": {"x": 1}})
    assert {ABSENT: ("a", "b"), "1": ("c",)} == found.values


@pytest.mark.parametrize(
    ("data", "good"),
    [
        (b'{"api_version": "v1", "collected_at": "now"}', True),
        (b'{"api_version": "v1"}', False),
        (b"[]", False),
        (b"{", False),
        (b"[" * 100_000, False),
        (b'{"api_version": "v1", "collected_at": "' + b" " * LARGEST + b'"}', False),
    ],
)
def test_files_that_are_called_like_facts(data, good):
    """Somebody else's plugin may call anything so."""
    assert good is (read_facts_file(data) is not None)
