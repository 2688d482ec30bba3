"""METRICS_LINGER_SECONDS with a real Prometheus: no short Job's last sample is lost."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

import pytest

from tests.bed.prometheus import Prometheus, why_not
from tests.blackbox.scenarios.jobs import writes
from tests.blackbox.scenarios.run import Run, check, explained
from tests.blackbox.scenarios.scenario import Scenario, result
from tests.blackbox.scenarios.stage import Stage

pytestmark = [pytest.mark.long, pytest.mark.node]

JOBS = 10
LINGER = 10  # seconds; two scrapes fail to come before anything is lost
SCRAPE_SECONDS = 1
METRICS_PORT = 9464


class Discovery(threading.Thread):
    """Tells Prometheus of a Pod as soon as the kubelet has given it an address."""

    def __init__(self, targets: Path, runs: list[Run]) -> None:
        super().__init__()
        self._targets, self._runs = targets, runs
        self._ended = threading.Event()

    def run(self) -> None:
        known: dict[str, str] = {}
        while not self._ended.wait(0.05):
            shown = {r.name: r.pod().get("status", {}).get("podIP", "") for r in self._runs}
            if known != (found := {name: ip for name, ip in shown.items() if ip}):
                known = found
                Prometheus.point(
                    self._targets,
                    {f"{ip}:{METRICS_PORT}": {"run": name} for name, ip in known.items()},
                )

    def end(self) -> None:
        self._ended.set()
        self.join()


@pytest.fixture
def targets(tmp_path: Path) -> Path:
    """The file in which Prometheus finds the Pods."""
    Prometheus.point(file := tmp_path / "targets.json", {})
    return file


@pytest.fixture
def prometheus(tmp_path: Path, targets: Path) -> Iterator[Prometheus]:
    """A running Prometheus."""
    if reason := why_not():
        (pytest.fail if os.environ.get("REQUIRE_CLUSTER") == "1" else pytest.skip)(reason)
    interval = f"{SCRAPE_SECONDS}s"
    config = {
        "global": {"scrape_interval": interval, "scrape_timeout": interval},
        "scrape_configs": [{"job_name": "reporters"} | Prometheus.found_in(targets)],
    }
    with Prometheus(tmp_path / "prometheus", config) as running:
        yield running


@pytest.mark.timeout(300)
def test_ten_jobs_of_one_second_give_ten_final_samples(
    stage: Stage, prometheus: Prometheus, targets: Path, figures: Callable[[str], None]
) -> None:
    """Each reporter stays for the scrape that shows its verdict, and no longer."""
    scenario = Scenario(
        "linger",
        f"sleep 1; {writes()}",
        result(),
        settings={"METRICS_LINGER_SECONDS": str(LINGER)},
    )
    runs = [stage.new_run(f"linger-{number}") for number in range(JOBS)]
    discovery = Discovery(targets, runs)
    discovery.start()
    try:
        with explained(*runs):
            for run in runs:
                run.start(scenario, "classic")
                time.sleep(0.3)
            for run in runs:
                run.wait_ended(60)
                run.delete()
                check(run, scenario)
    finally:
        discovery.end()

    final = prometheus.query("last_over_time(status_reporter_verdict_final[10m]) == 1")
    true = prometheus.query('last_over_time(status_reporter_condition{status="True"}[10m]) == 1')
    stayed = [_stayed(run) for run in runs]
    figures(f"{len(final)} final samples; lingered {min(stayed):.1f} to {max(stayed):.1f} s")
    names = sorted(run.name for run in runs)
    assert names == sorted(series["metric"]["run"] for series in final)
    assert names == sorted(series["metric"]["run"] for series in true)
    assert max(stayed) < LINGER


def _stayed(run: Run) -> float:
    """Seconds from the verdict to the reporter's last word."""
    verdict, end = (
        next(line["time"] for line in run.log() if line["message"] == message)
        for message in ("Verdict", "Reporter exits")
    )
    return _seconds(end) - _seconds(verdict)


def _seconds(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp()
