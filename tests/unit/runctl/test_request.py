"""From what a person asks for to the plan, and to what the launcher is told."""

from dataclasses import replace

import pytest

from reporter.run.definition import Definition
from reporter.run.nodes import Selected
from reporter.run.plan import Key, Skipped
from reporter.runctl.request import Request, make_launch, make_plan, placed, unmet, variable

POD = {"spec": {"containers": [{"name": "p", "image": "i"}]}}
QUOTA = Definition("quota", "Job", "result-file", POD, timeout_seconds=60, result_format="adapter")
CIS = Definition("cis.v1", "Node", "done-file", POD, order=2, config={"a": "1", "b": "2"})
LINK = Definition("facts", "Job", "link", POD, heartbeats=False)
SKIPPED = tuple(Skipped(f"node{at}", "is not Ready") for at in range(2, 7))
WHERE = {"cis.v1": Selected(("node1",), SKIPPED)}
ASKED = Request("run-a", (QUOTA, CIS, LINK), "status-reporter:1", 3600, WHERE)


def test_the_plan_expects_one_result_of_each_plugin_or_of_each_of_its_nodes() -> None:
    """With the times that definitions name, and the run's for the others."""
    plan = make_plan(ASKED)

    assert (Key("quota", "global"), Key("cis.v1", "node1"), Key("facts", "global")) == plan.keys
    assert [60, 3600, 3600] == [plan.timeout_of(each.name) for each in plan.plugins]
    assert [0, 2, 0] == [each.order for each in plan.plugins]
    assert [True, True, False] == [each.heartbeats for each in plan.plugins]


def test_nodes_that_are_left_out_stand_in_the_plan_with_the_reason() -> None:
    """A person asks for them later."""
    assert [(), SKIPPED, ()] == [each.skipped for each in make_plan(ASKED).plugins]


def test_the_launcher_is_told_where_each_file_of_a_configuration_is() -> None:
    """By keys that a ConfigMap can have, whatever the files are called."""
    launch = make_launch(ASKED)

    assert {"cis.v1": {"a": "config.1.0", "b": "config.1.1"}} == launch.config_keys
    assert (QUOTA, CIS, LINK) == launch.definitions


def test_plugins_without_an_account_get_the_one_of_the_run_unless_another_is_named() -> None:
    assert "run-a-plugin" == make_launch(ASKED).service_account
    assert "mine" == make_launch(replace(ASKED, service_account="mine")).service_account


def test_cleanup_of_the_command_outranks_that_of_the_definitions() -> None:
    launch = make_launch(replace(ASKED, cleanup="never"))

    assert {"never"} == {each.cleanup for each in launch.definitions}


def test_what_is_asked_for_reaches_the_launcher() -> None:
    asked = replace(
        ASKED,
        pull_secrets=("mirror",),
        kubernetes_version="v1.34.1",
        environment={"quota": {"A": "1"}},
        write_conditions=False,
    )
    launch = make_launch(asked)

    assert ("mirror",) == launch.pull_secrets
    assert "v1.34.1" == launch.kubernetes_version
    assert {"quota": {"A": "1"}} == launch.environment
    assert not launch.write_conditions


def test_a_run_that_can_be_made() -> None:
    assert [] == unmet(ASKED)
    assert ASKED == placed(ASKED)


def test_the_other_plugins_of_one_without_a_node() -> None:
    """They can be checked."""
    without = replace(ASKED, nodes={"cis.v1": Selected((), SKIPPED)})

    assert (QUOTA, LINK) == placed(without).definitions


@pytest.mark.parametrize("name", ["", "Run", "1a", "a" * 41, "a.b"])
def test_a_name_that_no_run_can_have(name: str) -> None:
    (said,) = unmet(replace(ASKED, run=name))

    assert said.startswith(f"{name!r} is not a valid run name: ")


def test_a_plugin_without_a_node_says_why() -> None:
    """The first reasons are enough, all of them could be thousands."""
    (said,) = unmet(replace(ASKED, nodes={"cis.v1": Selected((), SKIPPED)}))

    assert said == (
        "plugin cis.v1: no node to run on (node2: is not Ready; node3: is not Ready; "
        "node4: is not Ready; 2 more)"
    )


def test_a_cluster_without_nodes() -> None:
    (said,) = unmet(replace(ASKED, nodes={"cis.v1": Selected((), ())}))

    assert "plugin cis.v1: no node to run on" == said


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
