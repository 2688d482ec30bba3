"""Foreign workers against a real aggregator: Sonobuoy's, unchanged, and Go's own client."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.aggregators import load
from tests.aggregators.served import Aggregator, plan
from tests.bed.binaries import program
from tests.ports import free_port

pytestmark = pytest.mark.cluster
BOUND = 60.0


@pytest.fixture
def aggregator(tmp_path: Path) -> Iterator[Aggregator]:
    """An aggregator of one global plugin and one with a node."""
    document = plan("e2e", [])
    document["plugins"].append({"name": "load", "nodes": ["n0"]})
    with Aggregator(tmp_path / "run", document) as started:
        yield started


@contextmanager
def sonobuoy(
    aggregator: Aggregator, results: Path, *arguments: str, **variables: str
) -> Iterator[subprocess.Popen[str]]:
    """Start Sonobuoy's worker as its launcher would."""
    results.mkdir(exist_ok=True)
    plugin = variables["RESULT_TYPE"]
    pem = {"CA_CERT": "ca.pem", "CLIENT_CERT": f"{plugin}.crt", "CLIENT_KEY": f"{plugin}.key"}
    environ = {
        "PATH": os.environ["PATH"],
        "AGGREGATOR_URL": aggregator.url,
        "SONOBUOY_RESULTS_DIR": str(results),
        "SONOBUOY_PROGRESS_PORT": str(free_port()),
        "SONOBUOY_DONE_FILE_DELAY": "0s",
        **{name: (aggregator.certificates / file).read_text() for name, file in pem.items()},
        **variables,
    }
    command = [str(program("sonobuoy")), "worker", *arguments]
    with subprocess.Popen(command, env=environ, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def done(results: Path, target: Path) -> None:
    """Say which file is the result."""
    (results / "new").write_text(f"{target}\n")
    (results / "new").replace(results / "done")


def post(port: int, update: bytes) -> int | None:
    """Return the relay's answer; nothing while it does not listen yet."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=BOUND)) as connection:
        try:
            connection.request("POST", "/progress", update)
            return connection.getresponse().status
        except ConnectionRefusedError:
            return None


def entry(aggregator: Aggregator, key: str) -> dict[str, object]:
    """Return what the status says of a key."""
    (found,) = (entry for entry in aggregator.status()["plugins"] if entry["key"] == key)
    return dict(found)


def test_sonobuoy_worker_delivers_a_file(aggregator: Aggregator, tmp_path: Path) -> None:
    """Cluster-wide, as JSON: stored byte for byte under its name, and the worker ends well."""
    results = tmp_path / "results"
    with sonobuoy(aggregator, results, "global", RESULT_TYPE="e2e") as worker:
        (results / "a.json").write_text('{"passed": 7}')
        done(results, results / "a.json")
        assert 0 == worker.wait(BOUND)

    assert b'{"passed": 7}' == aggregator.result("e2e/global")
    assert "complete" == entry(aggregator, "e2e/global")["status"]


def test_sonobuoy_worker_delivers_a_directory_and_progress_by_node(
    aggregator: Aggregator, tmp_path: Path
) -> None:
    """Its archive is taken; progress by node works, unlike with its own aggregator."""
    results, port = tmp_path / "results", free_port()
    variables = {"RESULT_TYPE": "load", "NODE_NAME": "n0", "SONOBUOY_PROGRESS_PORT": str(port)}
    with sonobuoy(aggregator, results, "single-node", "--sleep", "0", **variables) as worker:
        update = json.dumps({"msg": "one", "total": 2, "completed": 1}).encode()
        status = None
        while status is None and worker.poll() is None:
            status = post(port, update)
        assert 200 == status
        (results / "out" / "sub").mkdir(parents=True)
        (results / "out" / "sub" / "log.txt").write_text("line")
        done(results, results / "out")
        assert 0 == worker.wait(BOUND)

    assert b"line" == aggregator.members("load/n0")["sub/log.txt"]
    found = entry(aggregator, "load/n0")
    assert ("complete", 1) == (found["status"], found["progress"]["completed"])  # type: ignore[index]


def test_sonobuoy_worker_takes_a_held_result_for_a_success(
    aggregator: Aggregator, tmp_path: Path
) -> None:
    """409, as from its own aggregator: the first result stays."""
    for number in (1, 2):
        results = tmp_path / f"results{number}"
        with sonobuoy(aggregator, results, "global", RESULT_TYPE="e2e") as worker:
            (results / "a.txt").write_text(f"try {number}")
            done(results, results / "a.txt")
            assert 0 == worker.wait(BOUND)

    assert b"try 1" == aggregator.result("e2e/global")


def test_sonobuoy_worker_of_another_plugin_is_refused(
    aggregator: Aggregator, tmp_path: Path
) -> None:
    """A certificate speaks for its own plugin; the worker ends with an error."""
    results = tmp_path / "results"
    own = {
        name: (aggregator.certificates / f"load.{end}").read_text()
        for name, end in (("CLIENT_CERT", "crt"), ("CLIENT_KEY", "key"))
    }
    with sonobuoy(aggregator, results, "global", RESULT_TYPE="e2e", **own) as worker:
        (results / "a.txt").write_text("foreign")
        done(results, results / "a.txt")
        assert 1 == worker.wait(BOUND)

    assert "running" == entry(aggregator, "e2e/global")["status"]


def test_go_client_verifies_us_and_delivers_a_chunked_body(aggregator: Aggregator) -> None:
    """Go's strict verification takes our certificates; 200, then 409."""
    target = load.target(aggregator, "load")
    first = load.run(target, "results", count=1, size=3_000_000)
    second = load.run(target, "results", count=1, size=3_000_000)

    assert ({}, {"200": 1}) == (first.errors, first.statuses["result"])
    assert ({}, {"409": 1}) == (second.errors, second.statuses["result"])
    assert {"n0"} == set(first.digests)
