"""Time is not what somebody thinks: workers with a wrong clock, an aggregator that is away."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from tests.blackbox.aggregator.starting import Start
from tests.blackbox.sidecar.away import PLAN, survive
from tests.blackbox.sidecar.scene import Scene


@pytest.mark.parametrize("hours", [-30, -1, 1, 30])
def test_worker_whose_clock_is_wrong(start: Start, hours: int) -> None:
    """A52: nothing that a worker says is used as time, neither for its age nor for its progress."""
    aggregator = start("--heartbeat-interval-seconds", "1", "--heartbeat-timeout-seconds", "600")
    worker, now = aggregator.worker("e2e"), datetime.now(UTC)
    wrong = now + timedelta(hours=hours)
    dated = {"Date": format_datetime(wrong, usegmt=True)}
    body = json.dumps({"msg": "m", "timestamp": wrong.isoformat()})
    assert 200 == worker.ask("GET", "health/global/e2e", headers=dated).status
    assert 200 == worker.ask("POST", "progress/global/e2e", body, dated).status

    entry = aggregator.entry("e2e/global")
    assert ("running", True) == (entry["status"], 0 <= entry["last-heartbeat"] <= 60)
    shown = datetime.fromisoformat(entry["progress"]["timestamp"])
    assert timedelta(minutes=1) > abs(shown - now)


def test_aggregator_that_is_away_for_a_second(scene: Scene, start: Start) -> None:
    """The Job has its verdict meanwhile, the aggregator the result afterwards."""
    survive(scene, start(document=PLAN), 1.0)
