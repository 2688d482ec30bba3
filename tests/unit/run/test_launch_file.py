"""What is launched: read as it was written, what is wrong with it, and how long it can take."""

import json
from typing import Any

import pytest

from reporter.errors import SettingsError
from reporter.run.definition import Definition, NodeSelection
from reporter.run.launch_file import MAX_BYTES, Launch, encode_launch, longest, read_launch
from reporter.run.plan import LONGEST_TIMEOUT, Plugin
from tests.unit.launch.cluster import definition, run_of

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
    snapshot="two",
)


def broken(**changes: Any) -> bytes:
    document = json.loads(encode_launch(Launch("i", "s", (ONE,))))
    return json.dumps(document | changes).encode()


@pytest.mark.parametrize("launch", [FULL, Launch("i", "s", (ONE,))])
def test_it_is_read_as_it_was_written(launch: Launch) -> None:
    assert read_launch(encode_launch(launch).encode()) == launch


def test_what_has_a_default_may_be_left_out() -> None:
    document = json.loads(encode_launch(Launch("i", "s", (ONE,))))
    short = {name: document[name] for name in ("image", "serviceAccountName", "plugins")}
    assert read_launch(json.dumps(short).encode()) == Launch("i", "s", (ONE,))


def plugin(**spec: Any) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(encode_launch(Launch("i", "s", (ONE,))))
    found: dict[str, Any] = document["plugins"][0]
    return found | {"spec": found["spec"] | spec}


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"x" * (MAX_BYTES + 1), "larger than 1048576 bytes"),
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
        read_launch(data)
    assert any(line.startswith(problem) for line in raised.value.problems), raised.value.problems


def test_a_plugin_is_found_by_its_name() -> None:
    assert FULL.definition("one") is ONE
    with pytest.raises(KeyError):
        FULL.definition("three")


NODES = tuple(f"node{number}" for number in range(5))


@pytest.mark.parametrize(
    ("plugins", "seconds"),
    [
        ((Plugin("a", timeout_seconds=100),), 700),
        ((Plugin("a", timeout_seconds=100), Plugin("b", timeout_seconds=50)), 700),
        ((Plugin("a", timeout_seconds=100), Plugin("b", order=1, timeout_seconds=50)), 1_350),
        ((Plugin("a", NODES, timeout_seconds=100),), 3 * 700),
        ((Plugin("a", NODES[:2], timeout_seconds=100),), 700),
        ((Plugin("a", timeout_seconds=LONGEST_TIMEOUT),), LONGEST_TIMEOUT),
    ],
)
def test_orders_follow_each_other_and_waves_too(plugins: tuple[Plugin, ...], seconds: int) -> None:
    """Two nodes at once, 600 s to start; never more than a certificate can last."""
    run = run_of(*plugins, most=2)

    assert seconds == longest(run.plan, run.launch)


def test_a_start_timeout_of_its_own() -> None:
    """Each plugin says how long its start may take."""
    made = definition("a", start_timeout_seconds=30)
    run = run_of(Plugin("a", timeout_seconds=100), definitions=[made])

    assert 130 == longest(run.plan, run.launch)


def test_a_run_that_others_launch_takes_the_time_of_its_plugins() -> None:
    run = run_of(Plugin("a", NODES, timeout_seconds=100))
    assert 100 == longest(run.plan, None)
