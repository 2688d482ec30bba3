"""`find_aggregator` and `get_status`, which other programs may call."""

from pathlib import Path

import pytest

from reporter.errors import Forbidden, NoAggregatorPod, SettingsError
from reporter.runctl import find_aggregator, get_status
from tests.blackbox.ctl.cluster import add_aggregator, plugin
from tests.blackbox.ctl.scripted import Home, Scripted, entry, run_status
from tests.fakekube import Answer, FakeKube, Rule
from tests.scripted_server import Say

OWN = "status-reporter-nightly"
FORWARD = Rule(("get",), ("pods/portforward",))


@pytest.fixture
def config(at_home: Home) -> str:
    return str(at_home.folder / ".kube" / "config")


def test_a_run_is_found_where_the_command_finds_it(config: str, fake: FakeKube) -> None:
    fake.tokens.roles["person"] = (*fake.tokens.roles["person"], FORWARD)
    document = run_status("running", entry("e2e"), run="nightly")
    with Scripted(status=Say(body=document)) as server:
        where = {"launched": "nightly", "namespace": OWN, "listens": server.port}
        add_aggregator(fake, name="nightly-x", **where)
        found = find_aggregator("run/nightly", kubeconfig=config)
        status = get_status("nightly", kubeconfig=config)

    assert (OWN, "nightly-x") == found
    assert document == status


def test_without_a_port_forward_the_status_is_partial(config: str, fake: FakeKube) -> None:
    add_aggregator(fake, "running", plugin("disk"), namespace="checks")
    status = get_status(namespace="checks", kubeconfig=config)
    assert (True, "running") == (status["partial"], status["status"])


def test_there_is_none(config: str) -> None:
    for call in (find_aggregator, get_status):
        with pytest.raises(NoAggregatorPod, match="run 'nightly' not found"):
            call("nightly", kubeconfig=config)


def test_nothing_is_shown(config: str, fake: FakeKube) -> None:
    fake.fail(Answer(403), path="/pods", times=None)
    for call in (find_aggregator, get_status):
        with pytest.raises(Forbidden):
            call("nightly", kubeconfig=config)


@pytest.mark.parametrize("name", ["a,b in (c)", "../x"])
def test_what_is_no_name_of_a_run(config: str, name: str) -> None:
    """It would go into a selector."""
    for call in (find_aggregator, get_status):
        with pytest.raises(SettingsError, match="not a run name"):
            call(name, kubeconfig=config)


def test_no_cluster_is_known(tmp_path: Path) -> None:
    for call in (find_aggregator, get_status):
        with pytest.raises(SettingsError):
            call(kubeconfig=str(tmp_path / "nothing"))
