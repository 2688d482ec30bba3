"""Ctrl-C ends a command at once, also while the system resolves a name or connects.

Python hears of a signal only between two of its steps. A thread that hears of it at once gives the
command half a second to tidy up and then ends the process.
"""

import atexit
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from reporter.ctl.exits import INTERRUPTED

GRACE = 0.5  # seconds


@contextmanager
def at_once() -> Iterator[None]:
    """Let Ctrl-C end what is done inside, whatever it waits for. Only in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    done = threading.Event()
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    watcher = threading.Thread(target=_watch, args=(reader, done), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        signal.set_wakeup_fd(before)
        os.close(writer)
        watcher.join()
        os.close(reader)


def _watch(reader: int, done: threading.Event) -> None:
    while number := os.read(reader, 1):
        if number[0] == signal.SIGINT and not done.wait(GRACE):
            # Files with the credentials of a kubeconfig are removed there.
            atexit._run_exitfuncs()
            os._exit(INTERRUPTED)
