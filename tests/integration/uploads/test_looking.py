"""Looking for facts in the archives of nodes: what one node sends costs only that node."""

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest

from reporter.aggregator.judging.looking import FACTS
from reporter.aggregator.judging.process import Judge
from tests.archives import tars

HEAD = {"api_version": "v1", "collected_at": "now"}
SMALL = tars.tgz(tars.file(b"host/facts.json", json.dumps({**HEAD, "kernel": "6.1"}).encode()))


def looked(folder: Path, archives: list[bytes]) -> Any:
    """The facts of nodes 0, 1 and so on."""
    with tempfile.TemporaryFile("w+b") as lines:
        for node, archive in enumerate(archives):
            path = folder / str(node)
            path.write_bytes(archive)
            lines.write(f"{json.dumps([str(node), str(path), len(archive)])}\n".encode())
        lines.flush()
        lines.seek(0)
        answer = Judge().look(FACTS, lines)
    assert answer is not None
    return json.loads(answer)


def members(many: int, value: Any) -> bytes:
    """Facts with many members."""
    facts = json.dumps({**HEAD, **{f"k{at}": value for at in range(many)}}, separators=(",", ":"))
    return tars.tgz(tars.file(b"host/facts.json", facts.encode()))


@pytest.mark.parametrize(("many", "value"), [(280_000, 0), (340_000, 0), (300_000, {})])
def test_facts_that_take_all_memory(tmp_path: Path, many: int, value: Any) -> None:
    """Wherever the memory ends, there is an answer, with the facts of the others."""
    document = looked(tmp_path, [SMALL, members(many, value), SMALL])
    left_out = document["without"]
    assert (document["nodes"], left_out) in [(3, []), (2, ["1"])]


@pytest.mark.parametrize(
    "bad",
    [SMALL[:40], tars.tgz(tars.file(b"host/facts.json", b"[" * 10_000))],
    ids=["cut off", "no JSON"],
)
def test_the_first_archives_are_damaged(tmp_path: Path, bad: bytes) -> None:
    """That says nothing about the facts of the others."""
    document = looked(tmp_path, [bad] * 4 + [SMALL])
    assert (1, ["0", "1", "2", "3"]) == (document["nodes"], document["without"])


def test_archives_without_facts(tmp_path: Path) -> None:
    """After three nobody expects any; a damaged one is not one of them."""
    none = tars.tgz(tars.file(b"out.txt", b"."))
    assert looked(tmp_path, [none, none, SMALL[:40], none, SMALL]) is None
    assert 1 == looked(tmp_path, [none, none, SMALL[:40], SMALL])["nodes"]
