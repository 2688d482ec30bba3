"""What the aggregator's loop notices while the page's document of failed tests is answered.

    python -m tests.bench.page [--megabytes N]

One run with a JUnit report of 100 MB with failed tests. Readers in a process of their own ask for
it; the loop's late wake-ups are counted meanwhile, as they are while nobody asks.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

from reporter.run.plan import Key
from tests.browser.stage import Stage

READERS = 4
BOUND = 600.0
SECONDS = 5.0
TICK = 0.005
BAD = b'<testcase name="case %d" classname="p.C"><failure message="no">%s</failure></testcase>\n'
GOOD = b'<testcase name="case %d does what it should" classname="p.C" time="0.01"/>\n'


def junit(megabytes: int) -> bytes:
    """Return a report of that size; one case of a hundred has failed, with a long text."""
    part = b"".join((BAD % (0, b"x" * 4096), *(GOOD % each for each in range(1, 100))))
    cases = part * (megabytes * 10**6 // len(part))
    return b'<testsuites><testsuite name="s">%s</testsuite></testsuites>' % cases


async def late(process: subprocess.Popen[bytes]) -> list[float]:
    """Return by how many ms each short sleep of the loop was too long, sorted, until it ends."""
    found = []
    while process.poll() is None:
        begun = time.perf_counter()
        await asyncio.sleep(TICK)
        found.append(1e3 * (time.perf_counter() - begun - TICK))
    return sorted(found)


def read(url: str, path: str) -> None:
    """Ask for a document again and again; print status, size and seconds of each answer."""
    took: list[tuple[int, int, float]] = []
    end = time.monotonic() + SECONDS

    def reader() -> None:
        connection = HTTPConnection(urlsplit(url).netloc, timeout=BOUND)
        while not took or time.monotonic() < end:
            begun = time.perf_counter()
            connection.request("GET", path)
            with connection.getresponse() as answer:
                size = len(answer.read())
            took.append((answer.status, size, time.perf_counter() - begun))

    threads = [threading.Thread(target=reader) for _ in range(READERS)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    print(json.dumps(took))


def measure(stage: Stage, name: str, path: str = "") -> None:
    """Print the line of one document; without a path nobody asks."""
    asks = [sys.executable, "-m", "tests.bench.page", "--read", stage.url, path]
    with tempfile.TemporaryFile() as out:
        with subprocess.Popen(asks if path else ["sleep", str(SECONDS)], stdout=out) as process:
            found = stage.call(late(process), BOUND)
        assert not process.returncode
        out.seek(0)
        answers = json.loads(out.read() or "[]")
    said = ""
    if path:
        assert {200} == {status for status, _, _ in answers}, answers[:3]
        seconds = [took for _, _, took in answers]
        size = max(size for _, size, _ in answers) / 1_000
        said = (
            f"{len(answers)} of {size:.0f} kB, {1e3 * statistics.median(seconds):.0f} ms "
            f"(worst {1e3 * max(seconds):.0f} ms)"
        )
    middle, most = (found[int(share * len(found))] for share in (0.5, 0.99))
    print(f"| {name} | {said} | {middle:.1f} / {most:.1f} ms | {found[-1]:.0f} ms |", flush=True)


def main() -> int:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--read", nargs=2, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.read:
        read(*chosen.read)
        return 0
    plugins = [{"name": "junit", "result_format": "junit"}]
    with (
        tempfile.TemporaryDirectory(prefix="bench-") as folder,
        Stage(plugins, Path(folder)) as stage,
    ):
        stage.send(Key("junit", "global"), junit(chosen.megabytes))
        print("| Asked for | Answers | Loop late by, p50 / p99 | worst |\n|---|---|---|---|")
        measure(stage, "nothing")
        measure(stage, "failed tests", "/results/junit/global/report")
        measure(stage, "nothing")
    return 0


if __name__ == "__main__":
    sys.exit(main())
