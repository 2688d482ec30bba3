"""Measure how long the aggregator's event loop is held by one callback, with many entries.

    python -m tests.bench.pauses [--entries N] [--seconds S]

One process has the store, control and the status listener's handlers, and their load: heartbeats
and updates at the rate of the plan, results, a scrape, a summary, a page and an event reader's look
each second. Time is the loop thread's own CPU, so that neighbours on the machine do not count.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import heapq
import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from reporter.aggregator.control import Control, Timing
from reporter.aggregator.health import Health
from reporter.aggregator.http import Events
from reporter.aggregator.http.encoded import Moment
from reporter.aggregator.http.part import Part
from reporter.aggregator.store import SqliteStore
from reporter.core.run.beats import rhythm
from reporter.core.run.entry import Failure, Rank, Record
from reporter.core.run.plan import Plan, Plugin
from reporter.core.run.progress import Progress
from reporter.runtime import log

UPDATE_EVERY = 20.0  # seconds between two updates of a worker
LONG = 0.005  # seconds that nothing may hold the loop


@contextmanager
def measured() -> Iterator[list[tuple[float, str]]]:
    """Note the CPU seconds of each callback that is run on a loop."""
    found: list[tuple[float, str]] = []
    run = asyncio.events.Handle._run

    def timed(self: Any) -> None:
        began = time.thread_time()
        run(self)
        took = time.thread_time() - began
        if took > LONG / 10:
            found.append((took, _name(self)))

    asyncio.events.Handle._run = timed  # type: ignore[method-assign]
    try:
        yield found
    finally:
        asyncio.events.Handle._run = run  # type: ignore[method-assign]


def _name(handle: Any) -> str:
    callback = handle._callback
    owner = getattr(callback, "__self__", None)
    if isinstance(owner, asyncio.Task):
        return owner.get_name()
    return str(getattr(callback, "__qualname__", callback))


async def _every(seconds: float, do: Callable[[], Any]) -> None:
    while True:
        done = do()
        if asyncio.iscoroutine(done):
            await done
        await asyncio.sleep(seconds)


async def busy(folder: Path, entries: int, seconds: float) -> list[tuple[float, str]]:
    """Load a run for some time and return the callbacks that took long, the longest first."""
    nodes = tuple(f"n{number}" for number in range(entries))
    plan = Plan("bench", (Plugin("load", nodes, heartbeats=True),), 100_000)
    chance, keys = random.Random(1), list(plan.keys)
    store = SqliteStore(folder / "run.db")
    await store.open_run(plan, now=time.time())
    asked = rhythm(entries, 15, 120.0)
    control = Control(
        store,
        SimpleNamespace(),  # type: ignore[arg-type]
        plan=plan,
        timing=Timing(heartbeat_interval=asked.interval, heartbeat_timeout=asked.timeout),
        holding=tuple,
        count=lambda _: None,
        clock=time.monotonic,
        wall=time.time,
    )
    authority = SimpleNamespace(expires_at=2e9, expired=lambda _: False)
    health = Health(
        store,
        SimpleNamespace(free=lambda: 10**12),  # type: ignore[arg-type]
        authority,  # type: ignore[arg-type]
        SimpleNamespace(connections=entries, listening=True),
        reserve=0,
        uploads=lambda: 0,
        clock=time.monotonic,
        wall=time.time,
    )
    events = Events(store, clock=time.monotonic, wall=time.time, interval=asked.interval)
    store.subscribe(events._changed)
    await control.tick()

    async def beat() -> None:
        for key in chance.sample(keys, entries // asked.interval // 10):
            store.record_heartbeat(key, time.monotonic(), beat=True)

    async def update() -> None:
        for key in chance.sample(keys, int(entries / UPDATE_EVERY / 50)):
            progress = Progress(msg="reading", total=9, completed=chance.randrange(9))
            await store.record_progress(key, progress, None, at=time.time())

    async def receive() -> None:
        record = Record(Rank.RESULT, time.time(), digest="ab" * 32, size=1)
        await store.record_result(chance.choice(keys), record)

    async def fail() -> None:
        failure = Failure("attempt", time.time() - 119.0, "cut")
        await store.mark_failed(chance.choice(keys), failure)

    def page(part: Part) -> Any:
        moment = Moment(store.snapshot(), time.time(), time.monotonic(), asked.interval)
        return asyncio.to_thread(part.encode, moment)

    async def summary() -> None:
        await page(Part(summary=True))

    async def thousand() -> None:
        await page(Part(limit=1_000))

    for key in keys:
        store.record_heartbeat(key, time.monotonic(), beat=True)
    loads = (
        (0.1, beat),
        (0.02, update),
        (0.05, receive),
        (0.5, fail),
        (0.25, control.tick),
        (1.0, health.now),
        (1.0, summary),
        (1.0, thousand),
    )
    await asyncio.sleep(2.0)
    gc.collect()
    gc.freeze()  # as the service does
    with measured() as found:
        tasks = [asyncio.create_task(_every(pace, do), name=do.__name__) for pace, do in loads]
        await asyncio.sleep(seconds)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    await store.close()
    return found


def main() -> None:
    """Print the longest callbacks, and which of them come how often."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=20.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, log.capture():
        found = asyncio.run(busy(Path(folder), options.entries, options.seconds))
    longest: dict[str, float] = {}
    for took, name in found:
        longest[name] = max(took, longest.get(name, 0.0))
    often = Counter(name for took, name in found if took > LONG)
    held = sum(took for took, _ in found)
    print(
        f"{options.entries} entries, {options.seconds:.0f} s:"
        f" longest {1000 * max(longest.values(), default=0.0):.1f} ms,"
        f" {sum(often.values())} above {1000 * LONG:.0f} ms, {held:.2f} s in long callbacks"
    )
    for name, took in heapq.nlargest(8, longest.items(), key=lambda item: item[1]):
        print(f"  {1000 * took:6.1f} ms, {often[name]:4} above  {name}")


if __name__ == "__main__":
    main()
