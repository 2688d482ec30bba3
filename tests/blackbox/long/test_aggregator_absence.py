"""The aggregator is away or stopped for long: nobody suffers from that."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.aggregators.served import Aggregator
from tests.blackbox.sidecar.away import PLAN, survive
from tests.blackbox.sidecar.scene import Scene, staged

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]

TIMEOUT = 12  # four intervals, the least there is
STOPPED = 18.0  # seconds; longer than the timeout, and longer than a busy machine can explain


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    """A fake API server and a directory for the adapter's files; no reporter yet."""
    with staged(tmp_path / "scene") as scene:
        yield scene


@pytest.mark.parametrize("seconds", [10, 100])
def test_sidecar_whose_aggregator_is_away(scene: Scene, tmp_path: Path, seconds: int) -> None:
    """The Job has its verdict meanwhile, the aggregator the result afterwards."""
    with Aggregator(tmp_path / "run", PLAN) as aggregator:
        survive(scene, aggregator, seconds)


def test_aggregator_that_was_stopped(tmp_path: Path) -> None:
    """A53: SIGSTOP for longer than the heartbeat timeout; nobody is timed out for that.

    Neither who has beaten nor who is known to; and who is silent afterwards is.
    """
    document = {
        "run": "stopped",
        "plugins": [{"name": "beats"}, {"name": "expected", "heartbeats": True}],
    }
    flags = ("--heartbeat-interval-seconds", "3", "--heartbeat-timeout-seconds", str(TIMEOUT))
    with Aggregator(tmp_path / "run", document, *flags) as aggregator:
        workers = {name: aggregator.worker(name) for name in ("beats", "expected")}

        def beat(*names: str) -> None:
            for name in names:
                assert 200 == workers[name].beat(f"global/{name}").status

        beat("beats", "expected")
        aggregator.signal(signal.SIGSTOP)
        threading.Event().wait(STOPPED)
        aggregator.signal(signal.SIGCONT)
        beat("beats")
        shown = {e["name"]: e["status"] for e in aggregator.status()["plugins"]}
        assert {"beats": "running", "expected": "running"} == shown

        # Two sweeps on, and still less than the timeout after the pause.
        for _ in range(7):
            threading.Event().wait(1.0)
            beat("beats", "expected")
        shown = {e["name"]: e["status"] for e in aggregator.status()["plugins"]}
        assert {"beats": "running", "expected": "running"} == shown

        for _ in range(100):
            threading.Event().wait(1.0)
            beat("beats")
            if "timed_out" == aggregator.entry("expected/global")["status"]:
                break
        assert "running" == aggregator.entry("beats/global")["status"]
        assert "heartbeat" == aggregator.entry("expected/global")["error"]["cause"]
