"""Stopping and waking: the SIGTERM flag and the one thing the main loop sleeps on.

Installed by each program before anything heavy is imported, because a SIGTERM during a second of
imports must not be lost, and as process 1 a signal without a handler is. So only small modules of
the standard library may be imported here.
"""

from __future__ import annotations

import contextlib
import gc
import io
import math
import os
import select
import signal
import sys
import time
from collections.abc import Iterable
from importlib import import_module
from types import FrameType

_LONGEST_WAIT = 86_400.0
"""poll() takes milliseconds in 32 bits; a loop that wakes once a day for nothing does no harm."""
NOBODY_READS = 141
"""The exit code of a command whose reader has left, as `| head` does: 128 + SIGPIPE."""
_LONGER_THAN_ANY_HELP = 2**17
_NO_FULL_COLLECTION = 10_000
"""Collections of the younger objects before one of all of them: while modules are imported it takes
20 ms, and finds nothing that frees memory."""


class Wake:
    """Sleep of the main loop, ended early by `wake()` from any thread or signal handler.

    Wakes coalesce: any number of them before or during a wait end that one wait.
    """

    def __init__(self) -> None:
        self._reader, self.writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self.writer, False)

    def fileno(self) -> int:
        """Return the descriptor that can be read once woken, for those who wait in another way."""
        return self._reader

    def wake(self) -> None:
        """End the current wait, or the next one if nobody waits now."""
        # A full pipe holds wakes that nobody has read yet: one is enough.
        with contextlib.suppress(BlockingIOError):
            os.write(self.writer, b"\0")

    def wait(self, timeout: float | None, extra_fds: Iterable[int] = ()) -> set[int] | None:
        """Sleep until woken, until one of `extra_fds` can be read, or for `timeout` seconds.

        `None` waits for ever. Returns None when woken, whatever else was ready: a wake is told only
        once, a descriptor stays readable. Otherwise those of `extra_fds` that are readable, closed
        or broken, so an empty set when the time is over. It may return early, so look at the clock
        before relying on it.
        """
        poll = select.poll()
        poll.register(self._reader, select.POLLIN)
        for fd in extra_fds:
            poll.register(fd, select.POLLIN)
        if timeout is not None:
            # Rounded up: poll() cuts to whole milliseconds, and a loop must not spin through the
            # last one.
            timeout = math.ceil(min(max(timeout, 0.0), _LONGEST_WAIT) * 1000)
        ready = {fd for fd, _ in poll.poll(timeout)}
        if self._reader in ready:
            with contextlib.suppress(BlockingIOError):
                while os.read(self._reader, 4096):
                    pass
            return None
        return ready

    def close(self) -> None:
        """Give the descriptors back. No thread may call `wake()` any more."""
        os.close(self._reader)
        os.close(self.writer)


class Stop:
    """Whether, when and by which signal this process was asked to end. Asking wakes `wake`.

    The link takes one as it would take a `threading.Event`.
    """

    def __init__(self, wake: Wake | None = None) -> None:
        self.wake = wake or Wake()
        self.requested_at: float | None = None
        """Monotonic time of the first request, None before it."""
        self.signal: int | None = None
        """The signal that asked, None when the program asked itself."""

    @property
    def requested(self) -> bool:
        """Whether to end."""
        return self.requested_at is not None

    def is_set(self) -> bool:
        """Return `requested`, under the name that a `threading.Event` has for it."""
        return self.requested

    def wait(self, timeout: float | None = None) -> bool:
        """Sleep for so many seconds (None: for ever), or until there is a reason to end.

        For the main thread only: it takes the wake-up away from any other.
        """
        end = math.inf if timeout is None else time.monotonic() + timeout
        while not self.requested and (left := end - time.monotonic()) > 0:
            self.wake.wait(left)
        return self.requested

    def request(self) -> None:
        """Ask to end; only the first request counts."""
        if self.requested_at is None:
            self.requested_at = time.monotonic()
        self.wake.wake()

    def on_signal(self, signum: int, _: FrameType | None) -> None:
        """Ask to end by a signal; the second signal ends the process here and now."""
        if self.signal is not None:
            # No clean-up, no flush: whoever sends a second signal does not want to wait.
            os._exit(128 + signum)
        self.signal = signum
        self.request()


def install() -> Stop:
    """Handle SIGTERM and SIGINT from now on.

    The first asks to stop, the second exits at once with 128 + its number. For the main thread
    only, which Python requires of signal handlers.
    """
    stop = Stop()
    # The kernel may hand a signal to any thread. Python's handler then waits for the main thread
    # to run Python code again, which it does not while it sleeps in poll(); this descriptor is
    # written at once and wakes it.
    signal.set_wakeup_fd(stop.wake.writer, warn_on_full_buffer=False)
    for signum in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signum, stop.on_signal)
    return stop


def buffer_output() -> None:
    """Make a write to standard output complete, or fail; with `python -u` too.

    Unbuffered, Python drops what a short write has left, and a pipe whose reader leaves in the
    middle of one gives no error. Argparse ignores errors while it writes its help, so that must
    stay in the buffer until it is flushed.
    """
    buffer = getattr(sys.stdout, "buffer", None)
    raw = getattr(buffer, "raw", buffer)
    if isinstance(raw, io.RawIOBase):
        sys.stdout = io.TextIOWrapper(
            io.BufferedWriter(raw, _LONGER_THAN_ANY_HELP),
            sys.stdout.encoding,
            sys.stdout.errors,
            line_buffering=buffer is raw or bool(sys.stdout.line_buffering),
        )


def discard_output(descriptor: int = 1) -> None:
    """Send the rest of standard output nowhere: Python writes it at its end and must not fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)


def begin(command: str, module: str, *, extra: str, **noted: object) -> int:
    """Run the `main` of a module and return the exit code; 2 without the packages of its extra.

    `main` is given what was `noted` before.
    """
    stop = install()  # a SIGTERM during the import below must not be lost
    buffer_output()
    thresholds = gc.get_threshold()
    gc.set_threshold(*thresholds[:2], _NO_FULL_COLLECTION)
    try:
        main = import_module(module).main
    except ModuleNotFoundError as error:
        needed = f"pip install 'status-reporter[{extra}]'"
        print(f"{command}: {error.name} is not installed: {needed}", file=sys.stderr)
        return 2
    finally:
        gc.set_threshold(*thresholds)
    try:
        code: int = main(sys.argv[1:], os.environ, stop, **noted)
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        if not _reader_has_left():
            raise
        discard_output()
        return NOBODY_READS
    return code


def _reader_has_left() -> bool:
    poll = select.poll()
    poll.register(1, 0)
    return any(event & select.POLLERR for _, event in poll.poll(0))
