"""From what a person asks for to the plan, and to what the launcher is told."""

import pytest

from reporter.run.definition import Definition
from reporter.run.nodes import Selected
from reporter.run.plan import Key, Skipped
from reporter.runctl.resolve import bad_name, config_keys, make_plan, variable, without_node

POD = {"spec": {"containers": [{"name": "p", "image": "i"}]}}
QUOTA = Definition("quota", "Job", "result-file", POD, timeout_seconds=60, result_format="adapter")
CIS = Definition("cis.v1", "Node", "done-file", POD, order=2, config={"a": "1", "b": "2"})
LINK = Definition("facts", "Job", "link", POD, heartbeats=False)
SKIPPED = tuple(Skipped(f"node{at}", "is not Ready") for at in range(2, 7))
WHERE = {"cis.v1": Selected(("node1",), SKIPPED)}


def test_the_plan_expects_one_result_of_each_plugin_or_of_each_of_its_nodes() -> None:
    """With the times that definitions name, and the run's for the others."""
    plan = make_plan("run-a", (QUOTA, CIS, LINK), WHERE, 3600)

    assert (Key("quota", "global"), Key("cis.v1", "node1"), Key("facts", "global")) == plan.keys
    assert [60, 3600, 3600] == [plan.timeout_of(each.name) for each in plan.plugins]
    assert [0, 2, 0] == [each.order for each in plan.plugins]
    assert [True, True, False] == [each.heartbeats for each in plan.plugins]
    assert [(), SKIPPED, ()] == [each.skipped for each in plan.plugins]


def test_the_launcher_is_told_where_each_file_of_a_configuration_is() -> None:
    """By keys that a ConfigMap can have, whatever the files are called."""
    assert {"cis.v1": {"a": "config.1.0", "b": "config.1.1"}} == config_keys((QUOTA, CIS, LINK))


@pytest.mark.parametrize("name", ["", "Run", "1a", "a" * 41, "a.b"])
def test_a_name_that_no_run_can_have(name: str) -> None:
    assert bad_name(name).startswith(f"{name!r} is not a valid run name: ")
    assert "" == bad_name("run-a")


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        (
            Selected((), SKIPPED),
            "plugin cis.v1: no node to run on (node2: is not Ready; node3: is not Ready; "
            "node4: is not Ready; 2 more)",
        ),
        (Selected((), ()), "plugin cis.v1: no node to run on"),
        (WHERE["cis.v1"], ""),
    ],
)
def test_a_plugin_without_a_node_says_why(nodes: Selected, said: str) -> None:
    """The first reasons are enough, all of them could be thousands."""
    assert said == without_node(CIS, {"cis.v1": nodes})
    assert "" == without_node(QUOTA, {})


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("quota.A=1", ("quota", "A", "1")),
        ("quota.A=", ("quota", "A", "")),
        ("quota.A=x=y", ("quota", "A", "x=y")),
        ("cis.v1.LEVEL=2", ("cis.v1", "LEVEL", "2")),
        ("cis.a.b=2", ("cis", "a.b", "2")),
    ],
)
def test_a_variable_of_a_plugin(written: str, expected: tuple[str, str, str]) -> None:
    """Names of plugins may have dots; the longest that fits is meant."""
    assert expected == variable(written, ["quota", "cis", "cis.v1"])


@pytest.mark.parametrize("written", ["quota.A", "A=1", "other.A=1", "quota.=1", "=1"])
def test_what_is_no_variable_of_a_plugin(written: str) -> None:
    with pytest.raises(ValueError, match=r"not PLUGIN\.NAME=VALUE|no plugin of this run"):
        variable(written, ["quota"])
