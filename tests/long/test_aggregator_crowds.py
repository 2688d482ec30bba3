"""More workers than there is room for, and peers that take it: nobody fails, nobody is given up."""

from __future__ import annotations

import os
import socket
import ssl
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.aggregators.served import ROOT, Aggregator, plan
from tests.aggregators.trapped import Trapped
from tests.calm import Calm

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

WORKERS = 14
PIECES = 400  # a twentieth of a second each; the first hundred may wait in the system's buffers
IDLE = 2_000
STALL = b"\x16\x03\x01\x02\x00\x01\x00"  # the beginning of a handshake
KEPT = 41 * 1024
ELSEWHERE = "127.0.0.9"


def worker(aggregator: Aggregator, node: str, pieces: int, seconds: int = 0) -> Any:
    """Start one made of the project's client."""
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "tests.aggregators.link_worker"),
            *(aggregator.url, str(aggregator.certificates), aggregator.plugin, node),
            *(str(pieces), str(seconds)),
        ],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)},
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_fourteen_workers_and_one_slot(tmp_path: Path) -> None:
    """Bodies of 20 s each, so that the last one waits longer than all windows: 14 of 14.

    With limits as they are, but for the one slot.
    """
    nodes = [f"n{number}" for number in range(WORKERS)]
    one = {"trap": tmp_path / "trap", "limits": {"UPLOADS": 1}}
    with Trapped(tmp_path, plan("load", nodes), **one) as aggregator:
        began = time.monotonic()
        started = [worker(aggregator, node, PIECES) for node in nodes]
        ends = [each.communicate()[0].strip() for each in started]
        assert WORKERS * PIECES * 0.05 * 0.7 < time.monotonic() - began
        entries = aggregator.status()["plugins"]
        requests = 'status_aggregator_requests_total{code="200",route="results"}'
        assert WORKERS == aggregator.metrics()[requests]

    assert ["accepted 1"] * WORKERS == ends
    assert {"complete"} == {entry["status"] for entry in entries}


@pytest.mark.parametrize("kind", ["silent", "stalled", "kept"])
def test_idle_connections_of_one_address(tmp_path: Path, kind: str) -> None:
    """2,000 that say nothing, stall in the handshake, or keep what a good one gave them.

    Heartbeats of others on new connections are answered within a second, from anywhere else; from
    the same address too, unless its handshakes stall.
    """
    with (
        ExitStack() as stack,
        Aggregator(tmp_path, plan("load", ["n1", "n2"]), fresh=True) as aggregator,
        Calm() as calm,
    ):
        certificates = aggregator.certificates
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(certificates / "ca.pem")
        context.load_cert_chain(certificates / "load.crt", certificates / "load.key")
        address = ("127.0.0.1", aggregator.port)

        def connect(source: str) -> socket.socket:
            return socket.create_connection(address, 60.0, (source, 0))

        def beat(source: str) -> float:
            began = calm.seconds
            with context.wrap_socket(connect(source), server_hostname="127.0.0.1") as wire:
                wire.sendall(b"GET /api/v1/health/by-node/n2/load HTTP/1.1\r\nHost: a\r\n\r\n")
                assert wire.recv(4096).startswith(b"HTTP/1.1 200")
            return calm.seconds - began

        slowest = 0.0
        for number in range(IDLE):
            idle = stack.enter_context(connect(ELSEWHERE))
            if kind == "stalled":
                idle.sendall(STALL)
            elif kind == "kept":
                secure = context.wrap_socket(idle, server_hostname="127.0.0.1")
                stack.enter_context(secure)
            if number % 50 == 49:
                slowest = max(slowest, beat("127.0.0.1"))
                if kind != "stalled":
                    slowest = max(slowest, beat(ELSEWHERE))
        for _ in range(50):
            slowest = max(slowest, beat("127.0.0.1"))
            time.sleep(0.1)

    assert slowest < 1.0


def test_an_interval_that_workers_do_not_know(tmp_path: Path) -> None:
    """Asked for a beat each 5 s, lost after 10 s: raised to four intervals, and nobody is lost."""
    nodes = [f"n{number}" for number in range(6)]
    flags = ("--heartbeat-interval-seconds", "5", "--heartbeat-timeout-seconds", "10")
    with Aggregator(tmp_path, plan("load", nodes), *flags, fresh=True) as aggregator:
        started = [worker(aggregator, node, 0, 60) for node in nodes]
        ends = [each.communicate()[0].strip() for each in started]
        entries = aggregator.status()["plugins"]
        beats = 'status_aggregator_requests_total{code="200",route="heartbeat"}'
        assert len(nodes) * 45 / 5.5 <= aggregator.metrics()[beats]

    assert ["beaten"] * len(nodes) == ends
    assert {("running", False)} == {(entry["status"], entry["stale"]) for entry in entries}


def test_memory_of_a_kept_connection(tmp_path: Path) -> None:
    """What CONNECTION_MEMORY_BYTES is divided by is what it takes, within a quarter."""
    count = 500
    with ExitStack() as stack, Aggregator(tmp_path, plan("load", ["n1"]), fresh=True) as aggregator:
        certificates = aggregator.certificates
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(certificates / "ca.pem")
        context.load_cert_chain(certificates / "load.crt", certificates / "load.key")

        def keep(some: int) -> int:
            for _ in range(some):
                plain = socket.create_connection(("127.0.0.1", aggregator.port), 60.0)
                wire = context.wrap_socket(plain, server_hostname="127.0.0.1")
                stack.enter_context(wire)
                wire.sendall(b"GET /api/v1/health/by-node/n1/load HTTP/1.1\r\nHost: a\r\n\r\n")
                assert wire.recv(4096).startswith(b"HTTP/1.1 200")
            lines = Path(f"/proc/{aggregator.pid}/status").read_text().splitlines()
            return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS"))

        before = keep(100)
        each = (keep(count) - before) / count
    print(f"{each / 1024:.1f} KiB for each kept connection")
    assert each <= 1.25 * KEPT
