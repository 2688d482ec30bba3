"""From the options of `status-ctl run` to the run that they ask for."""

import argparse
from dataclasses import replace
from typing import Any, cast

import pytest

from reporter.errors import Forbidden
from reporter.run.definition import Definition
from reporter.runctl.resolve import run_spec
from reporter.runctl.run_options import arguments
from reporter.runctl.spec import RunSpec
from tests.plugin_launches import definition

DEFINITIONS = (definition("restricted adapter"), definition("adapter on each node"))
NODE = {
    "metadata": {"name": "node1", "labels": {"kubernetes.io/os": "linux"}},
    "status": {"conditions": [{"type": "Ready", "status": "True"}]},
}


class World:
    """An API server with these API groups and one node."""

    def __init__(self, *groups: str) -> None:
        self._groups = groups

    def server_version(self, **_: Any) -> str:
        return "v1.34.1"

    def list_all(self, *_: Any, **__: Any) -> Any:
        return iter([NODE])

    def document(self, path: str, **_: Any) -> Any:
        assert "/apis" == path
        if not self._groups:
            raise Forbidden("403")
        return {"groups": [{"name": each} for each in self._groups]}


def asked(
    *words: str,
    world: World | None = None,
    definitions: tuple[Definition, ...] = DEFINITIONS,
    every: bool = True,
) -> RunSpec:
    """Return what these words ask for."""
    parser = argparse.ArgumentParser()
    arguments(parser)
    options = parser.parse_args(["--name", "run-a", *words])
    options.error, options.namespace, options.create_namespace = parser.error, None, False
    api = cast("Any", world or World("apps"))
    spec, wrong = run_spec(options, definitions, None, api, every=every)
    assert [] == wrong
    return spec


def test_what_is_asked_for_reaches_the_launcher() -> None:
    spec = asked(
        *("--image-pull-secret", "mirror", "--image", "mirror/ours:1", "--max-nodes-at-once", "3"),
        *("--plugin-env", "restricted.A=1", "--plugin-env", "restricted.B=x=y"),
    )
    launch = spec.launch

    assert ("mirror",) == launch.pull_secrets
    assert ("mirror/ours:1", "v1.34.1", 3) == (
        launch.image,
        launch.kubernetes_version,
        launch.max_nodes_at_once,
    )
    assert {"restricted": {"A": "1", "B": "x=y"}} == launch.environment
    assert ("status-reporter-run-a", True) == (spec.namespace, spec.create_namespace)


def test_plugins_without_an_account_get_the_one_of_the_run_unless_another_is_named() -> None:
    assert "run-a-plugin" == asked().launch.service_account
    assert "mine" == asked("--service-account", "mine").launch.service_account


def test_cleanup_of_the_command_outranks_that_of_the_definitions() -> None:
    own = [each.cleanup for each in DEFINITIONS]
    assert own == [each.cleanup for each in asked().launch.definitions]
    found = asked("--cleanup", "never").launch.definitions
    assert {"never"} == {each.cleanup for each in found}


def test_identity_of_the_command_outranks_that_of_the_definitions_that_have_nodes() -> None:
    definitions = (*DEFINITIONS, replace(DEFINITIONS[1], name="own", identity="node"))
    for words, expected in {
        (): ("plugin", "plugin", "node"),
        ("--identity", "node"): ("plugin", "node", "node"),
        ("--identity", "plugin"): ("plugin", "plugin", "plugin"),
    }.items():
        spec = asked(*words, definitions=definitions)
        assert expected == tuple(each.identity for each in spec.plan.plugins)
        assert expected == tuple(each.identity for each in spec.launch.definitions)


def test_a_port_for_progress_reaches_the_launcher() -> None:
    assert 9000 == asked("--progress-port", "9000").launch.progress_port
    for wrong in ("0", "65536", "x", "65535"):  # of the last there is one for one plugin only
        with pytest.raises(SystemExit):
            asked("--progress-port", wrong)


def test_a_variable_of_a_plugin_that_could_not_be_read() -> None:
    """Its definition is wrong, and that is said already; otherwise it is a usage error."""
    words = ("--plugin-env", "unread.A=1")
    assert {} == asked(*words, every=False).launch.environment
    with pytest.raises(SystemExit):
        asked(*words)


@pytest.mark.parametrize(
    ("groups", "fixed"), [(("security.openshift.io",), False), (("apps",), True), ((), True)]
)
def test_the_platform_may_give_users_and_groups(groups: tuple[str, ...], fixed: bool) -> None:
    """As OpenShift does; who may not ask is taken to be elsewhere."""
    assert fixed == asked(world=World(*groups)).fixed_group
