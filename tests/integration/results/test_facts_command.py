"""`status-ctl facts`: nodes side by side, and what differs, from tarballs and directories."""

import json
import os
import re
import tarfile
from pathlib import Path

import pytest
import yaml

from tests import forked
from tests.blackbox.ctl.scripted import Home
from tests.blackbox.ctl.test_retrieve_command import packed, serving

LAUNCHER = str(Path("cmd/status-ctl.py").absolute())
BOUND = 60.0
PLACE = "plugins/host-facts/results/{}/host/facts.json"


def facts(node: str, **more: object) -> bytes:
    """Return the facts of a node, as far as they are shown."""
    made = {
        "api_version": "v1",
        "collected_at": "2026-01-01T00:00:00Z",
        "node": node,
        "os": {"pretty_name": "Debian 12"},
        "kernel": {"release": "6.1"},
        "memory": {"total_bytes": 2**30},
        "sysctls": {"vm.swappiness": "60"},
    }
    return json.dumps({**made, **more}).encode()


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """An unpacked tarball of three nodes; one differs, and a stranger's file has our name."""
    odd = facts("node3", sysctls={"vm.swappiness": "=1"}, problems=[{"path": "/x", "error": "e"}])
    for node, data in {"node1": facts("node1"), "node2": facts("node2"), "node3": odd}.items():
        path = tmp_path / "got" / PLACE.format(node)
        path.parent.mkdir(parents=True)
        path.write_bytes(data)
    (tmp_path / "got" / PLACE.format("node4")).parent.mkdir(parents=True)
    for plugin, node in (("host-facts", "node5"), ("other", "node6")):
        error = tmp_path / f"got/plugins/{plugin}/errors/{node}/error.json"
        error.parent.mkdir(parents=True)
        error.write_text("{}")
    stranger = tmp_path / "got/plugins/first/results/global/facts.json"
    stranger.parent.mkdir(parents=True)
    stranger.write_text("[1]")
    return tmp_path / "got"


def call(*arguments: str) -> tuple[int, str, str]:
    """Run it: exit code, output, standard error."""
    command = [LAUNCHER, "facts", *arguments]
    done = forked.run(command, capture_output=True, timeout=BOUND)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def test_a_line_for_each_node(results: Path) -> None:
    code, out, err = call(str(results))

    assert 0 == code
    assert [
        "NODE   OS         KERNEL  ARCH  CPUS  MEMORY   RUNTIME  UNREADABLE",
        "node1  Debian 12  6.1     -     -     1.0 GiB  -        -",
        "node2  Debian 12  6.1     -     -     1.0 GiB  -        -",
        "node3  Debian 12  6.1     -     -     1.0 GiB  -        1",
    ] == out.splitlines()
    assert "plugins/first/results/global/facts.json: not the facts of a node" in err


@pytest.mark.parametrize("packed", [False, True])
def test_what_differs_with_the_majority_named(results: Path, packed: bool) -> None:
    """From a tarball without unpacking it."""
    source = results
    if packed:
        source = results.parent / "results.tar.gz"
        with tarfile.open(source, "w:gz") as tar:
            tar.add(results, "")

    code, out, err = call(str(source), "--diff")

    assert 0 == code
    assert "status-ctl: no facts of these nodes of the run: node4, node5" in err.splitlines()
    assert ["sysctls.vm.swappiness", "60", "(2", "of", "3)", "=1:", "node3"] == out.splitlines()[
        -1
    ].split()


def test_for_programs(results: Path) -> None:
    told = json.loads(call(str(results), "--diff", "-o", "json")[1])
    by_name = {each["fact"]: each for each in told["differences"]}

    assert ("v1", "FactsDiff") == (told["api_version"], told["kind"])
    assert ["node1", "node2", "node3"] == told["nodes"]
    assert {
        "fact": "sysctls.vm.swappiness",
        "majority": "60",
        "values": [
            {"value": "60", "nodes": ["node1", "node2"]},
            {"value": "=1", "nodes": ["node3"]},
        ],
    } == by_name["sysctls.vm.swappiness"]


@pytest.mark.parametrize("more", [(), ("--node", "node3"), ("--diff",)])
def test_yaml_says_what_json_says(results: Path, more: tuple[str, ...]) -> None:
    """In YAML's own layout: of all nodes, of one, and of what differs."""
    code, out, _ = call(str(results), *more, "-o", "yaml")

    assert (0, False) == (code, out.startswith("{"))
    assert json.loads(call(str(results), *more, "-o", "json")[1]) == yaml.safe_load(out)


def test_one_node_has_nothing_to_be_compared_with(tmp_path: Path) -> None:
    (tmp_path / "facts.json").write_bytes(facts("node1"))

    code, out, err = call(str(tmp_path), "--diff")

    assert (0, "", "status-ctl: there are facts of one node only: node1\n") == (code, out, err)


def test_one_node(results: Path) -> None:
    code, out, _ = call(str(results), "--node", "node1")

    assert (0, ["kernel.release", "6.1"]) == (code, out.splitlines()[3].split())
    assert 1 == call(str(results), "--node", "node9")[0]


def test_what_is_no_source_of_facts(tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.tar.gz"
    damaged.write_bytes(b"\x1f\x8b no")

    assert (1, "status-ctl: no facts of nodes found\n") == call(str(tmp_path))[::2]
    assert 1 == call(str(damaged))[0]
    assert 4 == call(str(tmp_path / "missing"))[0]
    assert 2 == call(str(tmp_path), "--node", "a", "--diff")[0]
    assert 2 == call(str(tmp_path), "--all")[0]


class TestOfARun:
    """The results are downloaded, and nothing of them stays."""

    def test_by_its_address(self, home: Home) -> None:
        body = packed((PLACE.format("node1"), facts("node1")))
        with serving(body) as server:
            code, out, err = home.run("facts", "--url", server.url, "--node", "node1")

        assert (0, "") == (code, err)
        assert re.search("^os.pretty_name +Debian 12$", out, re.MULTILINE)
        assert [] == os.listdir(home.folder)
        assert {"GET"} == {each.method for each in server.requests}  # `delete` goes on asking

    def test_not_what_was_announced(self, home: Home) -> None:
        body = packed((PLACE.format("node1"), facts("node1")))
        with serving(body, announced=body[:-1] + b"x") as server:
            found = home.run("facts", "--url", server.url)

        assert (1, "", "status-ctl: cannot be read: SHA-256 mismatch\n") == found
