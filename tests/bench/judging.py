"""Judging a large JUnit report: how fast, how much memory, and what the loop notices of it.

python -m tests.bench.judging
"""

from __future__ import annotations

import asyncio
import os
import resource
import sys
import tempfile
import time
from pathlib import Path

from reporter.aggregator.judging.process import Judge
from reporter.aggregator.judging.task import Judgement, Task

MEGABYTES = 100
CASE = (
    b'<testcase name="test case number %d does what it should" classname="package.module.Class" '
    b'time="0.012"/>\n'
)
_TICK = 0.005  # seconds


def write_report(path: Path, megabytes: int) -> int:
    """Write a report of that size; return its cases."""
    cases = 0
    with path.open("wb") as file:
        file.write(b'<testsuites><testsuite name="s">\n')
        while file.tell() < megabytes * 10**6:
            file.writelines(CASE % number for number in range(cases, cases + 1_000))
            cases += 1_000
        file.write(b"</testsuite></testsuites>\n")
    return cases


async def _pauses(until: asyncio.Task[Judgement]) -> list[float]:
    """Return by how much each short sleep of the loop was too long, in seconds, sorted."""
    found = []
    while not until.done():
        begun = time.perf_counter()
        await asyncio.sleep(_TICK)
        found.append(time.perf_counter() - begun - _TICK)
    return sorted(found)


async def _measure(path: Path, megabytes: int) -> list[str]:
    task = Task("junit", (), False, path.stat().st_size, "r.xml", "results/global")

    def judge() -> Judgement:
        with path.open("rb") as body:
            return Judge().judge(task, body)

    begun, before = time.perf_counter(), os.times()
    judging = asyncio.create_task(asyncio.to_thread(judge))
    pauses = await _pauses(judging)
    seconds, after = time.perf_counter() - begun, os.times()
    processor = (
        after.children_user + after.children_system - before.children_user - before.children_system
    )
    return [
        f"counts: {dict(judging.result().counts)}",
        f"{megabytes / processor:.0f} MB per second of CPU, {megabytes / seconds:.0f} MB/s",
        f"peak of the process {_peak():.0f} MB",
        f"loop late by p50 {1e3 * pauses[len(pauses) // 2]:.1f} ms, "
        f"p99 {1e3 * pauses[int(0.99 * len(pauses))]:.1f} ms",
    ]


def _peak() -> float:
    """Return the peak memory of the largest child so far, in MB."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024 / 10**6


def main() -> int:
    """Measure and print."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        small, large = Path(folder, "small.xml"), Path(folder, "large.xml")
        write_report(small, 0)
        print("nothing: ", "; ".join(asyncio.run(_measure(small, 1))))
        cases = write_report(large, MEGABYTES)
        print(f"{cases} cases: ", "; ".join(asyncio.run(_measure(large, MEGABYTES))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
