"""The measurements. Each takes a running bed and returns figures in the units of the table."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tests.bed.controlplane import ControlPlane
from tests.bed.node import Node
from tests.bench.jobs import Jobs
from tests.bench.seen import Seen
from tests.blackbox.scenarios.jobs import REPORTER, writes

WRITE = writes(reason="Measured", message="a result of ordinary size")
SMALL = '{"status":"success","reason":"Measured","message":"a result of ordinary size"}'
AT_ONCE = 3  # Jobs at the same time: more would measure the machine


@dataclass(frozen=True)
class Percentiles:
    """Of one figure over many runs, in seconds."""

    p50: float
    p95: float
    worst: float
    runs: int

    @classmethod
    def of(cls, values: list[float]) -> Percentiles:
        """Nearest rank."""
        found = sorted(values)

        def rank(share: float) -> float:
            return found[min(len(found) - 1, int(share * len(found)))]

        return cls(rank(0.5), rank(0.95), found[-1], len(found))

    def __str__(self) -> str:
        p50, p95, worst = (f"{1000 * value:.0f}" for value in (self.p50, self.p95, self.worst))
        return f"{p50} / {p95} ms (worst {worst} ms, {self.runs} runs)"


@dataclass(frozen=True)
class Short:
    """What a series of short Jobs gave."""

    file_to_condition: Percentiles
    end_to_condition: Percentiles
    stop_to_exit: Percentiles
    peak_bytes: int
    cpu_seconds: float


def short_jobs(controlplane: ControlPlane, node: Node, jobs: Jobs, runs: int) -> Short:
    """Run Jobs that write a result at a random phase and Jobs that only fail."""
    seen = Seen(controlplane, jobs.namespace)
    rng = random.Random(20261121)
    file_latency, end_latency, stops, peaks, cpus = [], [], [], [], []
    for kind in ("result", "failure"):
        names = [f"{kind}-{number}" for number in range(runs)]
        for start in range(0, runs, AT_ONCE):
            batch = names[start : start + AT_ONCE]
            for name in batch:
                phase = 1 + rng.random() * 2
                # The adapter stays for a while, so that the reporter can still be measured.
                script = f"sleep {phase:.3f}; {WRITE}; sleep 2" if kind == "result" else None
                jobs.create(name, script or f"sleep {phase:.3f}; exit 1")
            seen.wait(batch, 120)
            for name in batch:
                at, _, note = seen.verdicts[name]
                if kind == "result":
                    file_latency.append(at - _stamp(note["evidence"]["file"]["ctime"]))
                    usage = node.usage(jobs.namespace, jobs.pod(name)["metadata"]["name"], REPORTER)
                    peaks.append(usage.peak_bytes)
                    cpus.append(usage.cpu_seconds)
                else:
                    end_latency.append(at - seen.ended[name])
            for name in batch:
                stops.append(_stop_seconds(node, jobs, name))
                jobs.delete(name)
    return Short(
        Percentiles.of(file_latency),
        Percentiles.of(end_latency),
        Percentiles.of(stops),
        max(peaks),
        sorted(cpus)[len(cpus) // 2],
    )


@dataclass(frozen=True)
class Long:
    """What one long Job gave."""

    seconds: float
    requests: dict[str, int]
    idle_share: float
    peak_bytes: int


class LongJob:
    """A Job that does nothing for `seconds`, then writes its result; started at once."""

    def __init__(self, controlplane: ControlPlane, node: Node, jobs: Jobs, seconds: int) -> None:
        self._controlplane, self._node, self._jobs = controlplane, node, jobs
        self._seconds = seconds
        self._seen = Seen(controlplane, jobs.namespace)
        jobs.create("long", f"sleep {seconds}; {WRITE}; sleep 3", MAX_WAIT_TIME_SECONDS="3600")
        self._began = time.monotonic()
        self._settled: tuple[float, float] | None = None

    def finish(self) -> Long:
        """Wait for its end and return what it took."""
        namespace = self._jobs.namespace
        pod = self._jobs.pod("long")["metadata"]["name"]
        # Nothing happens between this reading and the last one but idling.
        first, since = self._node.usage(namespace, pod, REPORTER), time.monotonic()
        left = self._seconds - (time.monotonic() - self._began) - 2
        time.sleep(max(0.0, left))
        last = self._node.usage(namespace, pod, REPORTER)
        idle = (last.cpu_seconds - first.cpu_seconds) / (time.monotonic() - since)
        self._seen.wait(["long"], 120)
        peak = self._node.usage(namespace, pod, REPORTER).peak_bytes
        wanted = lambda: self._jobs.pod("long")["status"]["phase"] in {"Succeeded", "Failed"}  # noqa: E731
        while not wanted():
            time.sleep(0.2)
        seconds = time.monotonic() - self._began
        asked = self._controlplane.requests_of(namespace, REPORTER)
        return Long(seconds, dict(sorted(asked.items())), idle, peak)


def decode_seconds() -> float:
    """Measure one read, decode and validation of a small result, in a process of its own."""
    code = f"""
import pathlib, tempfile, timeit
from reporter.sidecar.files import ResultFile
with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder) / "adapter-result.json"
    path.write_text({SMALL!r})
    look = lambda: ResultFile(path).look()
    look()
    print(min(timeit.repeat(look, number=200, repeat=5)) / 200)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout)


def _stamp(at: str) -> float:
    return datetime.fromisoformat(at).timestamp()


def _stop_seconds(node: Node, jobs: Jobs, name: str) -> float:
    """Wait for the reporter's last line and return what it says of the time since SIGTERM."""
    end = time.monotonic() + 60
    pod = jobs.pod(name)["metadata"]["name"]
    while time.monotonic() < end:
        for line in node.logs(jobs.namespace, pod, REPORTER):
            event: dict[str, Any] = json.loads(line.text)
            if event["message"] == "Reporter exits":
                return float(event["stopSeconds"])
        time.sleep(0.1)
    raise TimeoutError(f"the reporter of {name} did not end")
