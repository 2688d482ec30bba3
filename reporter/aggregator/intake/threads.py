"""Running blocking work beside the event loop, so that nothing stops halfway. Knows no files."""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any, Final, TypeVar

T = TypeVar("T")

_DISK_THREADS: Final = 8  # most of their time they wait for an fsync, which the disk shares out


class Threads:
    """Two pools: one for the disk, one for unpacking, which takes the processor for long."""

    def __init__(self, unpacking: int) -> None:
        self._disk = ThreadPoolExecutor(_DISK_THREADS, "intake-disk")
        self._unpack = ThreadPoolExecutor(unpacking, "intake-unpack")
        self._jobs: set[asyncio.Task[Any]] = set()

    async def disk(self, work: Callable[..., T], *args: object) -> T:
        """Run something short; also when cancelled, not back before the thread is."""
        return await _in(self._disk, work, *args)

    async def unpack(self, work: Callable[..., T], *args: object) -> T:
        """Run something that takes the processor for long, likewise."""
        return await _in(self._unpack, work, *args)

    async def to_the_end(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something that goes on when its caller is cancelled."""
        job = asyncio.get_running_loop().create_task(work)
        self._jobs.add(job)
        job.add_done_callback(self._jobs.discard)
        return await asyncio.shield(job)

    async def quiet(self) -> None:
        """Wait for everything that goes to its end."""
        # Not gather: it would cancel them when we are cancelled.
        if self._jobs:
            await asyncio.wait(self._jobs)

    def close(self) -> None:
        """End the threads; nothing may be running."""
        self._disk.shutdown()
        self._unpack.shutdown()


async def _in(pool: Executor, work: Callable[..., T], *args: object) -> T:
    future = asyncio.get_running_loop().run_in_executor(pool, work, *args)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        # The thread may be using a descriptor that the caller will close.
        while not future.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait((future,))
        if not future.cancelled():
            future.exception()  # looked at: nobody else will
        raise
