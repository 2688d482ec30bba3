"""From the options of `status-ctl run` to the run that they ask for."""

import argparse
from dataclasses import replace
from typing import Any, cast

import pytest

from reporter.errors import Forbidden
from reporter.run.definition import Definition
from reporter.runctl.resolve import run_spec
from reporter.runctl.run_options import arguments, check
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
    check(options)
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
    for wrong in ("0", "65536", "x"):
        with pytest.raises(SystemExit):
            asked("--progress-port", wrong)


def test_settings_of_the_aggregator_reach_the_run() -> None:
    """The last one counts, as of an environment."""
    spec = asked(
        *("--aggregator-env", "STATUS_VALUES=strict", "--aggregator-env", "MAX_RESULT_BYTES=1"),
        *("--aggregator-env", "MAX_RESULT_BYTES=2", "--aggregator-memory", "2Gi"),
    )
    assert {"STATUS_VALUES": "strict", "MAX_RESULT_BYTES": "2"} == spec.aggregator_env
    assert "2Gi" == spec.aggregator_memory


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["STATE=/tmp"], ["STATE is set by the run"]),
        (["status_values=strict"], ["status_values is unknown; did you mean STATUS_VALUES?"]),
        (["STATUS_VALUE=strict"], ["STATUS_VALUE is unknown; did you mean STATUS_VALUES?"]),
        (["COLOUR=red", "LOG_LEVEL=loud"], ["COLOUR is unknown", 'LOG_LEVEL="loud": must be deb']),
        (["MAX_RESULT_BYTES=1Gi"], ['MAX_RESULT_BYTES="1Gi": must be an integer from 1']),
        (["RETRY_WINDOW_SECONDS=900"], ["RETRY_WINDOW_CAP_SECONDS is unset (600): must be"]),
        (["STATUS_VALUES"], ["not NAME=VALUE: 'STATUS_VALUES'"]),
    ],
)
def test_what_the_aggregator_would_ignore_or_refuse_is_a_usage_error(
    given: list[str], said: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        asked(*(word for each in given for word in ("--aggregator-env", each)))
    err = capsys.readouterr().err
    assert [] == [each for each in said if f": {each}" not in err]


def test_a_setting_of_the_run_is_refused_whatever_its_value(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Two of one name would be in the Pod, or it would listen where no probe looks."""
    for name in (
        *("LISTEN", "STATUS_LISTEN", "SONOBUOY_ADVERTISE_IP", "WORKER_CA", "EXPORT_CERTS"),
        *("EXPORT_SECRETS", "UPLOAD_CA", "EXIT_WHEN_FINISHED"),
    ):
        with pytest.raises(SystemExit):
            asked("--aggregator-env", f"{name}=:1")
        said = f"--aggregator-env: {name} is set by the run\n"
        assert capsys.readouterr().err.endswith(f"error: {said}")


def test_an_aggregator_has_at_least_the_memory_that_it_needs() -> None:
    for wrong in ("1", "127Mi", "much"):
        with pytest.raises(SystemExit):
            asked("--aggregator-memory", wrong)
    assert "128Mi" == asked("--aggregator-memory", "128Mi").aggregator_memory


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
