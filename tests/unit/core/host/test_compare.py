"""Facts of several nodes beside each other."""

import sys

import pytest

from reporter.core.host.compare import ABSENT, Comparison, Difference, differences, lines
from reporter.core.host.facts_file import LARGEST, read_facts_file
from reporter.core.host.shown import differences_document

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


def test_facts_that_come_one_node_after_the_other():
    """Whoever has a value is known whatever the order was; a fact may begin and end with any."""
    comparison = Comparison()
    for number in range(9):
        comparison.add(f"n{number}", facts_of(number, **({"late": 1} if number in (4, 5) else {})))
    found = {each.name: each for each in comparison.differences()}
    assert ["kernel", "late", "serial"] == sorted(found)
    assert ("new", ("n0", "n3", "n6")) == (found["kernel"].majority, found["kernel"].values["old"])
    assert (ABSENT, ("n4", "n5")) == (found["late"].majority, found["late"].values["1"])
    assert 9 == len(found["serial"].values)
    assert 9 == comparison.nodes


def test_a_value_that_is_the_word_for_none():
    comparison = Comparison()
    for node, facts in (("a", {"x": ABSENT}), ("b", {}), ("c", {"x": 1})):
        comparison.add(node, facts)
    (found,) = comparison.differences()
    assert {ABSENT: ("a", "b"), "1": ("c",)} == found.values


@pytest.mark.parametrize("most", range(0, 3000, 7))
def test_what_does_not_fit_is_left_out_as_a_fact(most):
    """Never as the value of one node, which would then seem to lack it."""
    whole, cut = Comparison(), Comparison(most=most)
    for number in range(9):
        for each in (whole, cut):
            each.add(f"n{number}", facts_of(number, **({"late": 1} if number > 5 else {})))
    all_of_it, some = list(whole.differences()), list(cut.differences())
    assert [] == [each for each in some if each not in all_of_it]
    assert not whole.left_out
    assert cut.left_out or some == all_of_it


class Greedy(str):
    """A value for which there is no memory any more."""

    def __str__(self):
        return self

    def __hash__(self):
        raise MemoryError


@pytest.mark.parametrize("begun", range(4))
@pytest.mark.parametrize("error", [MemoryError, RecursionError])
def test_a_node_for_which_there_is_no_memory(error, begun):
    """Nothing is taken of it, however far it got; the others are compared all the same."""
    some = {"new": 1, "same": True, "kernel": ("new", "old")[begun % 2]}
    told, rest = dict([*some.items()][:begun]), {"last": Greedy()}
    if error is RecursionError:
        for _ in range(sys.getrecursionlimit()):
            rest = {"deep": rest}
    whole, struck = Comparison(), Comparison()
    for number in range(9):
        for each in (whole, struck):
            each.add(f"n{number}", facts_of(number))
        with pytest.raises(error):
            struck.add("greedy", {**told, **rest})
    assert list(whole.differences()) == list(struck.differences())
    assert 9 == struck.nodes


def test_what_a_page_gets_of_it():
    """Values and nodes are cut and counted, and so are facts."""
    comparison = Comparison()
    for number in range(30):
        more = {f"f{number}": "x" * 300} if number < 3 else {}
        comparison.add(f"n{number:02}", facts_of(number, **more))
    document = differences_document(comparison, [f"w{number}" for number in range(25)], unread=1)
    by_name = {each["fact"]: each for each in document["differences"]}
    assert (30, False, 1, 20, 5) == (
        document["nodes"],
        document["complete"],
        document["unread"],
        len(document["without"]),
        document["more_without"],
    )
    old = by_name["kernel"]["values"][1]
    assert ("old", 10, ["n00", "n03", "n06", "n09", "n12"]) == (
        old["value"],
        old["count"],
        old["nodes"],
    )
    assert (10, 20, None) == (
        len(by_name["serial"]["values"]),
        by_name["serial"]["more_values"],
        by_name["serial"]["majority"],
    )
    assert by_name["f0"]["values"][1]["value"].endswith("x [truncated]")


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
