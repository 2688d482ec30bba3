"""METRICS_LINGER_SECONDS with a real Prometheus: no short Job's last sample is lost."""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.bed.processes import Program
from tests.ports import free_port
from tests.scenarios.jobs import writes
from tests.scenarios.run import Run, check, explained
from tests.scenarios.scenario import Scenario, result
from tests.scenarios.stage import Stage

pytestmark = [pytest.mark.long, pytest.mark.node]

JOBS = 10
LINGER = 10  # seconds; two scrapes fail to come before anything is lost
SCRAPE_SECONDS = 1
METRICS_PORT = 9464


class Prometheus:
    """A Prometheus that scrapes the Pods it is told of."""

    def __init__(self, folder: Path) -> None:
        self._targets = folder / "targets.json"
        self._targets.write_text("[]")
        self._port = free_port()
        job = {
            "job_name": "reporters",
            "file_sd_configs": [{"files": [str(self._targets)], "refresh_interval": "1s"}],
        }
        interval = f"{SCRAPE_SECONDS}s"
        config = {"global": {"scrape_interval": interval, "scrape_timeout": interval}}
        (folder / "config.yaml").write_text(yaml.safe_dump(config | {"scrape_configs": [job]}))
        self._program = Program(folder, "prometheus")
        self._command = [
            "prometheus",
            f"--config.file={folder / 'config.yaml'}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{self._port}",
        ]

    def start(self) -> None:
        self._program.start(self._command)
        self._program.wait_ready(self._answers)

    def stop(self) -> None:
        self._program.stop()

    def scrape(self, targets: dict[str, str]) -> None:
        """Scrape these from now on: addresses by the names of their Jobs."""
        groups = [
            {"targets": [f"{address}:{METRICS_PORT}"], "labels": {"run": name}}
            for name, address in targets.items()
        ]
        part = self._targets.with_suffix(".part")
        part.write_text(json.dumps(groups))
        part.rename(self._targets)

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The series of an expression."""
        query = urllib.parse.urlencode({"query": expression})
        with urllib.request.urlopen(self._url(f"/api/v1/query?{query}"), timeout=30) as answer:
            found: list[dict[str, Any]] = json.load(answer)["data"]["result"]
        return found

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(self._url("/-/ready"), timeout=5):
                return True
        except OSError:
            return False

    def _url(self, path: str) -> str:
        return f"http://127.0.0.1:{self._port}{path}"


class Discovery(threading.Thread):
    """Tells Prometheus of a Pod as soon as the kubelet has given it an address."""

    def __init__(self, prometheus: Prometheus, runs: list[Run]) -> None:
        super().__init__()
        self._prometheus, self._runs = prometheus, runs
        self._ended = threading.Event()

    def run(self) -> None:
        known: dict[str, str] = {}
        while not self._ended.wait(0.05):
            shown = {r.name: r.pod().get("status", {}).get("podIP", "") for r in self._runs}
            if known != (found := {name: ip for name, ip in shown.items() if ip}):
                known = found
                self._prometheus.scrape(known)

    def end(self) -> None:
        self._ended.set()
        self.join()


@pytest.fixture
def prometheus(tmp_path: Path) -> Iterator[Prometheus]:
    """A running Prometheus."""
    if not shutil.which("prometheus"):
        reason = "there is no prometheus: run tests/bed/setup.sh"
        (pytest.fail if os.environ.get("REQUIRE_CLUSTER") == "1" else pytest.skip)(reason)
    running = Prometheus(tmp_path)
    try:
        running.start()
        yield running
    finally:
        running.stop()


@pytest.mark.timeout(300)
def test_ten_jobs_of_one_second_give_ten_final_samples(
    stage: Stage, prometheus: Prometheus, figures: Callable[[str], None]
) -> None:
    """Each reporter stays for the scrape that shows its verdict, and no longer."""
    scenario = Scenario(
        "linger",
        f"sleep 1; {writes()}",
        result(),
        settings={"METRICS_LINGER_SECONDS": str(LINGER)},
    )
    runs = [stage.new_run(f"linger-{number}") for number in range(JOBS)]
    discovery = Discovery(prometheus, runs)
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
