"""Fixtures of the tests of status-ctl."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.blackbox.ctl.cluster import kubeconfig
from tests.blackbox.ctl.launched import Controllers
from tests.blackbox.ctl.scripted import Home
from tests.fakekube import FakeKube, Rule


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A user's home with nothing in it."""
    return Home(tmp_path)


@pytest.fixture
def fake() -> Iterator[FakeKube]:
    """An API server that shows a person all they may ask for."""
    with FakeKube(role="person") as fake:
        fake.tokens.roles["person"] = (
            Rule(("get", "list"), ("pods", "jobs", "events", "pods/log")),
        )
        yield fake


@pytest.fixture
def at_home(home: Home, fake: FakeKube) -> Home:
    """A home whose kubeconfig leads to the API server."""
    kubeconfig(home.folder / ".kube" / "config", fake)
    return home


@pytest.fixture
def controllers(fake: FakeKube) -> Iterator[Controllers]:
    """What makes the accounts of a namespace and the aggregator's Pod."""
    with Controllers(fake) as controllers:
        yield controllers
