"""Somebody who starts a run on the fake API server, and what was created."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.blackbox.ctl.scripted import Home
from tests.fakekube import FakeKube
from tests.plugin_definitions import ours

POD = """
    spec:
      containers:
        - {name: adapter, image: busybox, command: ["true"]}"""
DEFINITION = ours("quota", "result-file", POD)
EACH_NODE = ours("kernel", "result-file", POD, driver="Node")
START = ("run", "-f", "quota.yaml", "--name", "first")
CREATED = [
    "configmaps",
    "serviceaccounts",
    "roles",
    "rolebindings",
    "serviceaccounts",
    "roles",
    "rolebindings",
    "services",
    "networkpolicies",
    "persistentvolumeclaims",
    "jobs",
]


@pytest.fixture
def fake() -> Iterator[FakeKube]:
    """An API server and its administrator, with one node."""
    with FakeKube(role="admin") as fake:
        add_node(fake, "node1")
        yield fake


@pytest.fixture
def there(at_home: Home) -> Home:
    """A home with a kubeconfig and a definition."""
    write(at_home, "quota.yaml", DEFINITION)
    return at_home


def write(home: Home, name: str, content: str) -> None:
    (home.folder / name).write_text(content)


def add_node(fake: FakeKube, name: str, **labels: str) -> None:
    """Put a Linux node there that is ready."""
    fake.store.create(
        "Node",
        {
            "metadata": {"name": name, "labels": {"kubernetes.io/os": "linux", **labels}},
            "spec": {},
        },
    )
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    fake.store.update("Node", "", name, lambda node: node | {"status": ready})


def start(there: Home, *more: str) -> tuple[int, str, str]:
    return there.run(*START, *more)


def really(entry: Any) -> bool:
    """Whether a request is more than a dry run."""
    return "dryRun" not in entry.query


def posts(fake: FakeKube, *, dry: bool = False) -> list[str]:
    """Return what was created, by the last part of the path."""
    return [
        entry.path.rpartition("/")[2]
        for entry in fake.requests("POST")
        if ("dryRun" in entry.query) == dry and entry.status == 201
    ]
