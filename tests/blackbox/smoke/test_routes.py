"""docs/openapi.yaml says what the aggregator does: the document, both listeners, every state."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import requests
import yaml
from hypothesis import HealthCheck, Phase, given, settings
from jsonschema import Draft202012Validator

from tests.aggregators.served import ROOT, Aggregator

DOCUMENT: dict[str, Any] = yaml.safe_load((ROOT / "docs" / "openapi.yaml").read_text())
METHODS = {"put", "post", "get"}
NAMES = {
    f"{m.upper()} {path}" for path, each in DOCUMENT["paths"].items() for m in METHODS & {*each}
}
WORKER = sorted(name for name in NAMES if " /api/" in name)
STOP = "POST /stop"
STATUS = sorted(NAMES - {*WORKER, STOP})
PLAN = {
    "run": "openapi",
    "plugins": [{"name": "e2e"}, {"name": "sysd", "nodes": ["node1"]}, {"name": "open"}],
}
# Each is a request, so there are fewer of them.
EXAMPLES = int(os.environ.get("PROPERTY_EXAMPLES", "20")) // 4
# Path parameters that name a key of the plan; without them nearly everything is 403.
BY_NODE = {"node": "node1", "plugin": "sysd"}
GLOBAL = {"node": "global", "plugin": "e2e", "file": "main.js"}


@pytest.fixture(scope="module")
def aggregator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Aggregator]:
    """One aggregator for all operations: whatever was sent before, the document has to be right."""
    folder = tmp_path_factory.mktemp("openapi")
    with Aggregator(folder, PLAN) as running:
        yield running


def key_of(name: str) -> dict[str, str]:
    """The key that an operation is tried with."""
    return BY_NODE if "by-node" in name else GLOBAL


@contextmanager
def worker(aggregator: Aggregator, name: str) -> Iterator[requests.Session]:
    """A session with the certificate for the key of an operation."""
    certificates, plugin = aggregator.certificates, key_of(name)["plugin"]
    with requests.Session() as session:
        session.trust_env = False
        session.verify = str(certificates / "ca.pem")
        session.cert = (str(certificates / f"{plugin}.crt"), str(certificates / f"{plugin}.key"))
        yield session


@cache
def read() -> tuple[Any, dict[str, Any]]:
    """The document as schemathesis reads it, and its operations by name.

    Imported here: every worker of a run imports this module, and one plays.
    """
    import schemathesis

    schema = schemathesis.openapi.from_dict(DOCUMENT)
    return schema, {found.label: found for found in (o.ok() for o in schema.get_all_operations())}


def play(name: str, known: bool, mode: str, url: str, session: requests.Session) -> None:
    """Send what the document makes of one operation, and judge the answers by it."""
    from schemathesis import GenerationMode
    from schemathesis.specs.openapi import checks

    operation = read()[1][name]
    checked = [
        checks.status_code_conformance,
        checks.content_type_conformance,
        checks.response_headers_conformance,
        checks.response_schema_conformance,
    ]
    parameters = (
        {p.name: key_of(name)[p.name] for p in operation.path_parameters} if known else None
    )

    @given(case=operation.as_strategy(GenerationMode(mode), path_parameters=parameters or None))
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def each(case: Any) -> None:
        case.call_and_validate(
            base_url=url, session=session, checks=checked, timeout=60, verify=session.verify
        )

    each()


def test_the_document_is_openapi() -> None:
    """By the schema of OpenAPI 3.1 itself; every reference leads somewhere."""
    assert DOCUMENT["openapi"].startswith("3.1.")
    schema, operations = read()
    schema.validate()
    assert NAMES == set(operations)
    for schema in DOCUMENT["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)
    assert METHODS == {m for p in DOCUMENT["paths"].values() for m in p} - {"parameters", "servers"}
    for reference in references(DOCUMENT):
        found: Any = DOCUMENT
        for part in reference.removeprefix("#/").split("/"):
            found = found[part]


def references(node: Any) -> Iterator[str]:
    """Every reference below a node of the document."""
    if isinstance(node, dict):
        yield from [node["$ref"]] if "$ref" in node else []
        node = list(node.values())
    if isinstance(node, list):
        for each in node:
            yield from references(each)


@pytest.mark.hypothesis
@pytest.mark.parametrize(
    ("name", "known", "mode"),
    [
        pytest.param(name, known, mode, id=f"{name}-{'known' if known else 'any'}-{mode}")
        for name in WORKER
        for known in (True, False)
        for mode in ("positive", "negative")
        # A heartbeat has nothing but its key that could be wrong.
        if not (known and mode == "negative" and name.startswith("GET"))
    ],
)
def test_worker_listener(aggregator: Aggregator, name: str, known: bool, mode: str) -> None:
    """Only documented codes, types, headers and bodies, whatever a worker sends."""
    with worker(aggregator, name) as session:
        play(name, known, mode, aggregator.url, session)


@pytest.mark.parametrize("name", STATUS)
def test_status_listener(aggregator: Aggregator, name: str) -> None:
    """The same for who looks at the run."""
    play_status(aggregator, name)


def test_a_run_that_is_stopped(tmp_path: Path) -> None:
    """With it ends what others are tried with."""
    with Aggregator(tmp_path, PLAN) as own:
        play_status(own, STOP)


def play_status(aggregator: Aggregator, name: str) -> None:
    url = f"http://127.0.0.1:{aggregator.status_port}"
    with requests.Session() as session:
        session.trust_env = False
        for known in (True, False):
            play(name, known, "positive", url, session)


@pytest.mark.parametrize("name", WORKER)
def test_other_methods(aggregator: Aggregator, name: str) -> None:
    """405 with Allow, as the document has it."""
    method, _, path = name.partition(" ")
    url = aggregator.url + path.format(**key_of(name))
    with worker(aggregator, name) as session:
        for other in {"GET", "PUT", "POST", "DELETE", "PATCH", "OPTIONS"} - {method}:
            answer = session.request(other, url, timeout=60, verify=session.verify)
            assert (405, b"") == (answer.status_code, answer.content)
            assert method == answer.headers["Allow"]


@pytest.mark.parametrize("name", [name for name in STATUS if name.startswith("GET")])
def test_other_methods_of_the_status_listener(aggregator: Aggregator, name: str) -> None:
    """405 with Allow; HEAD is GET without the body."""
    path = name.partition(" ")[2].format(**GLOBAL)
    url = f"http://127.0.0.1:{aggregator.status_port}{path}"
    assert "405" in DOCUMENT["paths"][name.partition(" ")[2]]["get"]["responses"]
    with requests.Session() as session:
        session.trust_env = False
        for other in ("PUT", "POST", "DELETE", "PATCH", "OPTIONS"):
            answer = session.request(other, url, timeout=60)
            assert (405, b"") == (answer.status_code, answer.content)
            assert "GET, HEAD" == answer.headers["Allow"]
        answer = session.head(url, timeout=60)
        # There is no tarball while the run goes on, and one result if a test has sent it.
        expected = {
            "/results": {404},
            "/results/e2e/global": {200, 404},
            "/results/e2e/global/report": {200, 404},
        }.get(path, {200})
        assert answer.status_code in expected
        assert b"" == answer.content
