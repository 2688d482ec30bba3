"""Readers of the status that take nothing of what they are sent: they share one copy of it."""

from __future__ import annotations

import json
import socket
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.aggregators.served import Aggregator, plan

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

MIB = 2**20
BOUND = 60.0
FAILURES = [f"{number:02} {'x' * 250}" for number in range(20)]


def memory(aggregator: Aggregator) -> int:
    """Return what the process holds now, in bytes."""
    lines = Path(f"/proc/{aggregator.pid}/status").read_text().splitlines()
    found = (int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS"))
    return next(found, 0)  # none: the process has just ended


def fill(aggregator: Aggregator, nodes: list[str]) -> None:
    """Let every entry report progress, with as much text as is shown: about 6 KB each."""
    body = json.dumps({"msg": "m", "total": 100, "completed": 7, "failures": FAILURES})
    connection = aggregator.worker("load").connection()
    for node in nodes:
        connection.request("POST", f"/api/v1/progress/by-node/{node}/load", body)
        with connection.getresponse() as answer:
            assert 200 == answer.status, answer.read()
            answer.read()
    connection.close()
    known, revision = -1, 0
    while known < revision:  # until all of it is written
        known = revision
        revision = json.loads(aggregator.ask(f"/status?since={known or 1}&wait=2"))["revision"]


def ask(aggregator: Aggregator, path: str) -> socket.socket:
    """Ask for something, and read no more than the head of the answer."""
    reader = socket.socket()
    reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    reader.settimeout(BOUND)
    reader.connect(("127.0.0.1", aggregator.status_port))
    reader.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    assert reader.recv(12).startswith(b"HTTP/1.1 200")
    return reader


@pytest.mark.parametrize(
    "path", ["/status", "/status?since=0&wait=20", "/status?since={revision}&wait=20"]
)
@pytest.mark.parametrize(("readers", "entries", "most"), [(40, 2_000, 60), (20, 5_000, 60)])
def test_readers_that_take_nothing(
    tmp_path: Path, path: str, readers: int, entries: int, most: int
) -> None:
    """12 MB or 30 MB of JSON: they cost little more than one of it, and others are served.

    Also where each knows another revision, so that there is nothing to share, and where something
    changes before each of them asks.
    """
    nodes = [f"n{number}" for number in range(entries)]
    with Aggregator(tmp_path, plan("load", nodes), fresh=True) as aggregator:
        fill(aggregator, nodes)
        aggregator.ask("/status?summary=true")
        before = memory(aggregator)
        held, ended = [before], threading.Event()

        def watch() -> None:
            while not ended.wait(0.02):
                held.append(memory(aggregator))

        worker = aggregator.worker("load")
        watching = threading.Thread(target=watch)
        watching.start()
        with ExitStack() as stack:
            for number in range(readers):
                news = worker.post(f"by-node/{nodes[number]}/load", msg="n", failures=FAILURES)
                assert 200 == news.status
                stack.enter_context(ask(aggregator, path.format(revision=number + 2)))
            revision = json.loads(aggregator.ask("/status?summary=true"))["revision"]
            assert 200 == worker.post(f"by-node/{nodes[-1]}/load", msg="news").status
            told: list[str] = []
            while nodes[-1] not in told:
                found = json.loads(aggregator.ask(f"/status?since={revision}&wait=20"))
                told, revision = [entry["node"] for entry in found["plugins"]], found["revision"]
        ended.set()
        watching.join()

    cost = (max(held) - before) / MIB
    print(f"{cost:.0f} MiB for {readers} readers of {entries} entries")
    assert cost < most
