"""Ctrl-C ends a command at once, also while the system resolves a name or connects.

Python handles a signal between two steps of the main thread. A signal that comes just before that
thread starts to sleep does not wake it. So a second thread, which learns of the signal through a
pipe, wakes the main thread, gives the command half a second to tidy up, and then ends the process.
"""

import atexit
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from reporter.cli.exits import INTERRUPTED, Terminated

WAIT = 0.05  # seconds until the main thread is woken once more
WAITS = 10
_ENDING = (signal.SIGTERM, signal.SIGHUP)


@contextmanager
def at_once() -> Iterator[None]:
    """Let Ctrl-C end what is done inside, whatever it waits for.

    Only in the main thread, and not where Ctrl-C is ignored or handled in another way.
    """
    before = signal.getsignal(signal.SIGINT)
    here = threading.current_thread() is threading.main_thread()
    if not here or before is not signal.default_int_handler:
        yield
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    done = threading.Event()
    signal.signal(signal.SIGINT, _raise_once())
    wakeup = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    watcher = threading.Thread(target=_watch, args=(reader, done), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        try:
            done.set()
            signal.set_wakeup_fd(wakeup)
            os.close(writer)
            watcher.join()
            os.close(reader)
        finally:
            signal.signal(signal.SIGINT, before)


@contextmanager
def termination_too() -> Iterator[Callable[[], None]]:
    """Let SIGTERM, and SIGHUP of a terminal that is closed, raise Terminated inside, once.

    The argument is called before tidying up: one that comes later does not disturb that. Only in
    the main thread, and neither where it is ignored, as SIGHUP by `nohup`, or handled otherwise.
    """
    tidying = False

    def tidy() -> None:
        nonlocal tidying
        tidying = True

    def handle(_signum: int, _frame: FrameType | None) -> None:
        if not tidying:
            tidy()
            raise Terminated

    here = threading.current_thread() is threading.main_thread()
    ending = [each for each in _ENDING if here and signal.getsignal(each) is signal.SIG_DFL]
    for each in ending:
        signal.signal(each, handle)
    try:
        yield tidy
    finally:
        for each in ending:
            signal.signal(each, signal.SIG_DFL)


def _raise_once() -> Callable[[int, FrameType | None], None]:
    """Return a handler that raises KeyboardInterrupt once: nothing disturbs the tidying up."""
    raised = False

    def handle(_signum: int, _frame: FrameType | None) -> None:
        nonlocal raised
        if not raised:
            raised = True
            raise KeyboardInterrupt

    return handle


def _watch(reader: int, done: threading.Event) -> None:
    while number := os.read(reader, 1):
        if number[0] == signal.SIGINT and not _ends(done):
            # Files with the credentials of a kubeconfig are removed there.
            atexit._run_exitfuncs()
            os._exit(INTERRUPTED)


def _ends(done: threading.Event) -> bool:
    """Return whether the command ends within its grace; wake it until it does.

    Waits are counted, not time: a machine that is busy delays both threads.
    """
    for _ in range(WAITS):
        if done.wait(WAIT):
            return True
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    return done.is_set()
