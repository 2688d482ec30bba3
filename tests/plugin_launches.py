"""The definitions of `plugin_definitions` as the product reads them, and a launch of each."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from reporter.run.definition import Definition
from reporter.run.definition_file import read_definitions
from reporter.run.launch_file import Launch, RunLocation
from reporter.run.plan import Plan, Plugin
from reporter.runctl.resolve import config_keys
from reporter.runctl.spec import RunSpec, plugin_account
from tests.plugin_definitions import YAML

RUN = "r1"
NAMESPACE = "space"
NODES = ("node1", "node2.example.com")
IMAGE = "localhost/status-reporter:dev"
OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": RUN, "uid": "0b0c"}
PLACE = RunLocation(RUN, NAMESPACE, OWNER, f"https://{RUN}.{NAMESPACE}.svc:8080")


@cache
def definition(situation: str) -> Definition:
    """Read one of the table."""
    read = read_definitions(YAML[situation].encode())
    assert not read.mistakes, read.mistakes
    ((_, found),) = read.definitions
    return found


def plugin_of(found: Definition, nodes: tuple[str, ...] = NODES) -> Plugin:
    """The plugin of a plan that a definition becomes."""
    per_node = found.driver == "Node"
    return Plugin(
        found.name,
        nodes if per_node else (),
        found.order,
        found.heartbeats,
        "plugin",
        found.timeout_seconds,
    )


def launch_of(*definitions: Definition, run: str = RUN, image: str = IMAGE) -> Launch:
    """What the launcher of these is told."""
    return Launch(
        image,
        plugin_account(run),
        definitions,
        pull_secrets=("pull",),
        kubernetes_version="v1.34.4",
        environment={"own": {"EXTRA": "new", "MORE": "1"}},
        config_keys=config_keys(definitions),
    )


def options_of(*definitions: Definition, **changes: object) -> RunSpec:
    """A run of these, as `status-ctl run` would have it."""
    plan = Plan(RUN, tuple(plugin_of(each) for each in definitions))
    options = RunSpec(namespace=NAMESPACE, plan=plan, launch=launch_of(*definitions))
    return replace(options, **changes)
