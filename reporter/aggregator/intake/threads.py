"""Running blocking work beside the event loop, so that nothing stops halfway. Knows no files."""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

T = TypeVar("T")

# More of them only fight with the loop for the interpreter.
_DISK_THREADS: Final = 4
_VERIFY_THREADS: Final = 2


class _Pool:
    def __init__(self, count: int, name: str) -> None:
        self._threads = ThreadPoolExecutor(count, name)
        # All start now: later the pool would take work on before it fails to start one for it.
        together = threading.Barrier(count)
        try:
            for _ in range(count):
                self._threads.submit(together.wait)
        except RuntimeError:
            together.abort()
            raise

    async def __call__(self, work: Callable[..., T], *args: object) -> T:
        """Let a thread run `work`; also when cancelled, not back before the thread is."""
        future = asyncio.get_running_loop().run_in_executor(self._threads, work, *args)
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

    def close(self) -> None:
        """End the threads once they have done what they were given."""
        self._threads.shutdown()


class Threads:
    """What blocks: short work of the `disk`, archives to `verify`, large JSON to `read`.

    The last has one thread: its work never lets go of the interpreter by itself, and with several
    the loop would wait for each of them in turn.
    """

    def __init__(self) -> None:
        self.disk = _Pool(_DISK_THREADS, "intake-disk")
        self.verify = _Pool(_VERIFY_THREADS, "intake-verify")
        self.read = _Pool(1, "intake-read")
        self._jobs: set[asyncio.Task[Any]] = set()

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
        for pool in (self.disk, self.verify, self.read):
            pool.close()
