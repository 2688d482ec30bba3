"""Names of a run's objects, labels, and whom certificates stand for."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reporter.run import names
from reporter.run.identity import ANY_NODE, Identity, client_uri, identity_of
from reporter.run.plan import GLOBAL, Key

LABEL = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?")


@pytest.mark.parametrize("name", ["a", "run-x7k2p9", "r" + "0" * 39])
def test_a_run_may_be_named_like_this(name: str) -> None:
    assert names.is_run_name(name)


@pytest.mark.parametrize("name", ["", "1st", "Run", "run-", "r" + "0" * 40, "a.b", "a\n"])
def test_a_run_may_not_be_named_like_that(name: str) -> None:
    assert not names.is_run_name(name)


def test_plugins_and_runs_of_one_node_have_ports_that_nobody_else_is_given() -> None:
    """Not those of connections or NodePorts. A run's plugins never meet, runs hardly ever do."""
    ports = [names.node_port("n", "r", index) for index in range(10_000)]
    assert list(range(20_000, 30_000)) == sorted(ports)
    assert 3 == len({ports[0], names.node_port("n", "other", 0), names.node_port("other", "r", 0)})


def test_an_entry_keeps_its_name_over_releases() -> None:
    """A newer aggregator must find what an older one has made."""
    assert names.entry_name("r", Key("E2E_tests", "node1")) == "r-e2e-test-a81b19b4c7"


@given(
    plugin=st.from_regex(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?", fullmatch=True),
    node=st.from_regex(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,251}[A-Za-z0-9])?", fullmatch=True),
)
def test_every_entry_has_a_name_that_a_job_can_have(plugin: str, node: str) -> None:
    name = names.entry_name("r" + "0" * 39, Key(plugin, node))
    assert LABEL.fullmatch(name)
    assert len(name) <= 60


def test_no_two_entries_share_a_name_though_their_plugins_look_alike() -> None:
    keys = [Key("a.b", "n"), Key("a-b", "n"), Key("A-B", "n"), Key("a-b", "m"), Key("...", "n")]
    assert len({names.entry_name(run, key) for run in ("r", "s") for key in keys}) == 2 * len(keys)


def test_an_object_says_whose_it_is() -> None:
    key = Key("cis", "ip-10-0-0-1.example")
    assert names.key_of({"metadata": {"annotations": names.annotations(key)}}) == key
    assert names.key_of({"metadata": {"annotations": {names.PLUGIN: "x"}}}) == Key("x", GLOBAL)
    assert names.key_of({"metadata": {"annotations": {names.NODE: "x"}}}) is None
    assert names.key_of({}) is None


@pytest.mark.parametrize(
    ("labels", "own"),
    [
        ({names.RUN_LABEL: "r"}, True),
        ({names.RUN_LABEL: "r", names.NAMESPACE_LABEL: "here"}, True),
        ({names.RUN_LABEL: "r", names.NAMESPACE_LABEL: "elsewhere"}, False),
        ({names.RUN_LABEL: "s"}, False),
        ({}, False),
    ],
)
def test_whose_an_object_in_the_namespace_is(labels: dict[str, str], own: bool) -> None:
    """A run of another namespace may have the same name, and objects here."""
    assert names.belongs({"metadata": {"labels": labels}}, "r", "here") is own


def test_everything_of_a_run_has_its_label() -> None:
    assert names.selector("r") == "status-reporter.io/run=r"
    assert names.labels("r")["status-reporter.io/run"] == "r"


RUN = "run-1"
NODE1, NODE2, OTHER = Key("sysd", "node1"), Key("sysd", "node2"), Key("e2e", "node1")


def certificate(*names: tuple[str, str]) -> dict[str, object]:
    """A verified certificate as Python's `ssl` gives it."""
    return {"subject": (), "subjectAltName": names, "serialNumber": "0A"}


def uri(plugin: str, node: str, run: str = RUN) -> tuple[str, str]:
    return "URI", client_uri(run, plugin, node)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ((uri("sysd", "node1"),), Identity("sysd", "node1", "0A")),
        ((uri("sysd", "*"), ("DNS", "e2e"), ("DNS", "x")), Identity("sysd", ANY_NODE, "0A")),
        ((uri("sysd", "a:b"),), Identity("sysd", "a:b", "0A")),
        ((("DNS", "sysd"),), Identity("sysd", ANY_NODE, "0A")),
        ((("URI", "spiffe://x"), ("DNS", "sysd")), Identity("sysd", ANY_NODE, "0A")),
        ((("DNS", "sysd"), ("DNS", "e2e")), None),
        ((("IP Address", "10.0.0.1"),), None),
        ((), None),
        ((uri("sysd", "node1", "run-0"), ("DNS", "sysd")), None),
        ((uri("sysd", "node1", "run-10"),), None),
        ((uri("sysd", "node1"), uri("sysd", "node2")), None),
        ((uri("sysd", ""),), None),
        ((uri("", "node1"),), None),
        ((("URI", f"urn:status-aggregator:{RUN}:sysd"), ("DNS", "sysd")), None),
    ],
)
def test_the_names_of_a_certificate(names, expected):
    """A URI of ours decides alone; without one, a single DNS name is the plugin."""
    assert expected == identity_of(certificate(*names), RUN)


@pytest.mark.parametrize("none", [None, {}])
def test_no_certificate(none):
    """Nobody."""
    assert identity_of(none, RUN) is None


def test_a_certificate_without_other_names():
    """Its common name counts for nothing."""
    assert identity_of({"subject": ((("commonName", "sysd"),),)}, RUN) is None


@pytest.mark.parametrize(
    ("node", "permitted"), [("node1", [NODE1]), (ANY_NODE, [NODE1, NODE2]), ("global", [])]
)
def test_the_keys_that_it_may_speak_for(node, permitted):
    """Those of its plugin, on its node or on any."""
    found = Identity("sysd", node, "0A")
    assert permitted == [key for key in (NODE1, NODE2, OTHER) if found.permits(key)]


@given(st.text(), st.text().filter(lambda text: text and ":" not in text), st.text(min_size=1))
def test_what_is_issued_is_read_back(run, plugin, node):
    """Whatever the names are, for this run and for no other."""
    made = certificate(("URI", client_uri(run, plugin, node)))
    assert Identity(plugin, node, "0A") == identity_of(made, run)
    assert identity_of(made, f"{run}0") is None
