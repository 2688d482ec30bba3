"""`launch.json`: read as it was written; what is wrong with it is told with its field."""

import json
from typing import Any

import pytest

from reporter.errors import SettingsError
from reporter.run import launch_file
from reporter.run.definition import Definition, NodeSelection
from reporter.run.spec import Launch

TEMPLATE = {"spec": {"containers": [{"name": "adapter", "image": "busybox"}]}}
ONE = Definition("one", "Job", "link", TEMPLATE, heartbeats=False)
FULL = Launch(
    image="localhost/status-reporter:dev",
    service_account="r-plugin",
    definitions=(
        ONE,
        Definition(
            "two",
            "Node",
            "done-file",
            TEMPLATE,
            order=2,
            timeout_seconds=60,
            start_timeout_seconds=30,
            result_format="junit",
            result_files=("a.xml",),
            heartbeats=False,
            nodes=NodeSelection("disk=ssd", include_not_ready=True),
            cleanup="success",
        ),
    ),
    pull_secrets=("pull",),
    kubernetes_version="v1.34.4",
    write_conditions=False,
    max_nodes_at_once=3,
    environment={"two": {"A": "b"}},
    config_keys={"two": {"a.conf": "config.1.0"}},
)


def broken(**changes: Any) -> bytes:
    document = json.loads(launch_file.encode(Launch("i", "s", (ONE,))))
    return json.dumps(document | changes).encode()


@pytest.mark.parametrize("launch", [FULL, Launch("i", "s", (ONE,))])
def test_it_is_read_as_it_was_written(launch: Launch) -> None:
    assert launch_file.decode(launch_file.encode(launch).encode()) == launch


def test_what_has_a_default_may_be_left_out() -> None:
    document = json.loads(launch_file.encode(Launch("i", "s", (ONE,))))
    short = {name: document[name] for name in ("image", "serviceAccountName", "plugins")}
    assert launch_file.decode(json.dumps(short).encode()) == Launch("i", "s", (ONE,))


def plugin(**spec: Any) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(launch_file.encode(Launch("i", "s", (ONE,))))
    found: dict[str, Any] = document["plugins"][0]
    return found | {"spec": found["spec"] | spec}


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"x" * (launch_file.MAX_BYTES + 1), "larger than 1048576 bytes"),
        (b"{", "not JSON: Expecting property name enclosed in double quotes: line 1 column 2"),
        (b"[" * 100_000, "not JSON: "),
        (b"[]", "must be an object"),
        (broken(maxNodesAtOnce=0), "maxNodesAtOnce: must be at least 1"),
        (broken(imagePullSecret="x"), "imagePullSecret: is unknown; did you mean imagePullSecrets"),
        (broken(environment={"one": {"A": 1}}), "environment.one.A: must be a string"),
        (broken(plugins=[{}]), "plugins[0].apiVersion: is required"),
        (broken(plugins=[plugin(nodes={"selector": "a"})]), "plugins[0].spec.nodes: is only for"),
        (broken(plugins=[plugin(), plugin()]), "plugins[1]: 'one' appears more than once"),
    ],
    ids=range(10),
)
def test_what_is_wrong_is_told_with_its_field(data: bytes, problem: str) -> None:
    with pytest.raises(SettingsError) as raised:
        launch_file.decode(data)
    assert any(line.startswith(problem) for line in raised.value.problems), raised.value.problems


def test_a_plugin_is_found_by_its_name() -> None:
    assert FULL.definition("one") is ONE
    with pytest.raises(KeyError):
        FULL.definition("three")
