"""Judging a large JUnit report: how fast, how much memory, and what the loop notices of it.

    python -m tests.bench.judging [--megabytes N] [--runs N]

Beside it, with the same file: the bare parser, and the whole document in memory.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from reporter.results.child import Judgement, Task
from reporter.results.process import Budget, Judge

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


@dataclass(frozen=True)
class Figures:
    """One reading: bytes per second of CPU and of the clock, peak, how late the loop was in ms.

    `passed` is how many tests it says have passed.
    """

    per_cpu: float
    per_second: float
    peak: int
    late: float
    passed: int = 0


async def ours(path: Path) -> Figures:
    """Read it as the aggregator does, while its loop only wakes up."""
    size = path.stat().st_size
    task = Task("junit", (), False, size, "r.xml", "results/global")

    def judge() -> Judgement:
        with path.open("rb") as body:
            return Judge().judge(task, body, budget=Budget())

    began, before = time.perf_counter(), _processor()
    judging = asyncio.create_task(asyncio.to_thread(judge))
    pauses = await _pauses(judging)
    seconds, processor = time.perf_counter() - began, _processor() - before
    assert judging.result().complete
    late = 1e3 * pauses[int(0.99 * len(pauses))]
    passed = judging.result().counts.get("passed", 0)
    return Figures(size / processor, size / seconds, _peak(), late, passed)


def _other(path: Path, code: str) -> Figures:
    """Read it in a process with these lines instead."""
    size, began, before = path.stat().st_size, time.perf_counter(), _processor()
    subprocess.run([sys.executable, "-c", code, path], check=True)
    seconds, processor = time.perf_counter() - began, _processor() - before
    return Figures(size / processor, size / seconds, _peak(), 0)


def _processor() -> float:
    """Return the seconds of CPU that all children took that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _peak() -> int:
    """Return the peak memory in bytes of the largest child so far; at least ours when it forked."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024


READERS = {
    "expat alone": "import sys; from xml.parsers.expat import ParserCreate; "
    "ParserCreate().ParseFile(open(sys.argv[1], 'rb'))",
    "Here": "",
    "ElementTree, whole": "import sys; from xml.etree import ElementTree; "
    "ElementTree.parse(sys.argv[1])",
}
"""From the smallest to the largest: a peak is that of the largest child so far."""


def main() -> int:
    """Measure and print a table: the best speeds of some runs, the worst of the rest."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--runs", type=int, default=3)
    chosen = parser.parse_args()
    runs: dict[str, list[Figures]] = {}
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        small, large = Path(folder, "small.xml"), Path(folder, "large.xml")
        write_report(small, 0)
        cases = write_report(large, chosen.megabytes)
        for name, code in READERS.items():
            if name == "Here":
                empty = asyncio.run(ours(small))
                runs[name] = [asyncio.run(ours(large)) for _ in range(chosen.runs)]
            else:
                runs[name] = [_other(large, code) for _ in range(chosen.runs)]
    here = runs["Here"]
    late = f"{max(each.late for each in here):.1f} ms, beside {empty.late:.1f} ms"
    more = f"{(max(each.peak for each in here) - empty.peak) / 1e6:.0f} MB"
    print(f"| JUnit with {cases:,} cases | Must be | {' | '.join(runs)} |")
    print("|---|---|---|---|---|")
    rows = (
        ("MB per second of CPU", "20", [max(r.per_cpu for r in each) for each in runs.values()]),
        ("MB/s", "20", [max(r.per_second for r in each) for each in runs.values()]),
        ("peak of the process, MB", "", [max(r.peak for r in each) for each in runs.values()]),
    )
    for name, must, found in rows:
        print(f"| {name} | {must} | {' | '.join(f'{value / 1e6:.0f}' for value in found)} |")
    print(f"| peak beyond that for an empty report | 64 MB | {more} | | |")
    print(f"| the aggregator's loop is late by, p99 | 50 ms | {late} | | |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
