"""Who a client certificate stands for, and which keys it may speak for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reporter.run.names import ANY_NODE, Identity, client_uri, identity_of
from reporter.run.plan import Key

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
