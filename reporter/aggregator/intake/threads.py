"""Running blocking work beside the event loop, so that nothing stops halfway. Knows no files."""

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from queue import SimpleQueue
from typing import Any, Final, TypeVar

T = TypeVar("T")

# More of them only fight with the loop for the interpreter.
_DISK_THREADS: Final = 4
_VERIFY_THREADS: Final = 2

_Work = tuple["asyncio.Future[Any]", Callable[..., Any], tuple[object, ...]]
_Done = tuple["asyncio.Future[Any]", Any, BaseException | None]


class _Pool:
    """Threads for one event loop, which hears of many ends at once.

    An executor wakes the loop for each, which slows many uploads down (docs/decisions).
    """

    def __init__(self, count: int, name: str) -> None:
        self._names = [f"{name}-{number}" for number in range(count)]
        self._threads: list[threading.Thread] = []
        self._work: SimpleQueue[_Work | None] = SimpleQueue()
        self._done: deque[_Done] = deque()
        self._waking = False

    async def __call__(self, work: Callable[..., T], *args: object) -> T:
        """Let a thread run `work`; also when cancelled, not back before the thread is."""
        loop = asyncio.get_running_loop()
        if not self._threads:
            for name in self._names:
                thread = threading.Thread(target=self._run, args=(loop,), name=name, daemon=True)
                self._threads.append(thread)
                thread.start()
        future: asyncio.Future[T] = loop.create_future()
        self._work.put((future, work, args))
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
        for _ in self._threads:
            self._work.put(None)
        for thread in self._threads:
            thread.join()
        self._threads = []

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        while (given := self._work.get()) is not None:
            future, work, args = given
            try:
                done: _Done = future, work(*args), None
            except BaseException as error:
                done = future, None, error
            self._done.append(done)
            del given, future, work, args, done  # not held while there is nothing to do
            # Whoever finds it set comes before `_tell` has cleared it, and is seen by it.
            if not self._waking:
                self._waking = True
                loop.call_soon_threadsafe(self._tell)

    def _tell(self) -> None:
        self._waking = False
        while self._done:
            future, result, error = self._done.popleft()
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)


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
