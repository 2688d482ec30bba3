"""Blocking work beside the event loop: its ends and errors, cancelled callers, a loop that ends."""

import asyncio
import threading
from collections.abc import Iterator

import pytest

from reporter.aggregator.intake.threads import Threads

HANG = 30.0


@pytest.fixture
def threads() -> Iterator[Threads]:
    """Give threads that are ended afterwards."""
    made = Threads()
    yield made
    made.close()


def test_results_reach_who_asked_for_them(threads: Threads) -> None:
    """A thousand pieces of work at once: each caller gets the end of its own."""

    async def main() -> list[int]:
        return await asyncio.gather(*(threads.disk(pow, number, 2) for number in range(1000)))

    assert [number**2 for number in range(1000)] == asyncio.run(main())


def test_ends_in_other_threads_wake_a_sleeping_loop(threads: Threads) -> None:
    """One after the other, nothing else happening: no end waits for the next one."""

    async def main() -> int:
        async with asyncio.timeout(HANG):
            return sum([await threads.disk(int, "1") for _ in range(2000)])

    assert 2000 == asyncio.run(main())


def test_large_json_is_read_by_one_thread(threads: Threads) -> None:
    """However much comes at once: the loop competes with one of them for the interpreter."""

    async def main() -> list[str]:
        await asyncio.gather(*(threads.read(threading.get_ident) for _ in range(100)))
        return [thread.name for thread in threading.enumerate()]

    assert 1 == sum(name.startswith("intake-read") for name in asyncio.run(main()))


@pytest.mark.parametrize("many", [0, 3, 5])
def test_threads_that_cannot_be_started(monkeypatch, many: int) -> None:
    """It is known before any work is taken on, and those that were started end."""
    start, started = threading.Thread.start, list[threading.Thread]()

    def few(thread: threading.Thread) -> None:
        if len(started) == many:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", few)
    with pytest.raises(RuntimeError):
        Threads()
    for thread in started:
        thread.join(HANG)
        assert not thread.is_alive()


def test_work_needs_no_new_threads(threads: Threads, monkeypatch) -> None:
    """Where there may be no more of them, that costs no upload."""
    monkeypatch.delattr(threading.Thread, "start")
    together = threading.Barrier(4)

    async def main() -> list[int]:
        return await asyncio.gather(*(threads.disk(together.wait, HANG) for _ in range(4)))

    assert {0, 1, 2, 3} == set(asyncio.run(main()))


def test_errors_reach_who_asked(threads: Threads) -> None:
    """Also those that are no Exception: nobody waits for ever, and the thread goes on."""

    def fail(error: BaseException) -> None:
        raise error

    async def main() -> list[object]:
        work = (threads.disk(fail, error) for error in (OSError("full"), GeneratorExit("x")))
        ended = await asyncio.gather(*work, return_exceptions=True)
        return [*map(str, ended), await threads.disk(str, "well")]

    assert ["full", "x", "well"] == asyncio.run(main())


def test_a_cancelled_caller_is_not_back_before_its_thread(threads: Threads) -> None:
    """The thread may be using a descriptor that the caller closes next; twice cancelled too."""
    began, go_on, ended = threading.Event(), threading.Event(), []

    def work() -> None:
        began.set()
        assert go_on.wait(HANG)
        ended.append("thread")

    async def main() -> None:
        async def call() -> None:
            try:
                await threads.disk(work)
            finally:
                ended.append("caller")

        caller = asyncio.create_task(call())
        while not began.is_set():
            await asyncio.sleep(0)
        for _ in range(2):
            caller.cancel()
            await asyncio.sleep(0)
        assert [] == ended
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await caller

    asyncio.run(main())
    assert ["thread", "caller"] == ended
