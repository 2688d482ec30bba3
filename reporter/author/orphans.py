"""Processes that must not outlive this one: our children, and what they left behind.

Only for a program that starts nothing else: every child of this process counts.
"""

import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PATIENCE = 2.0  # seconds; a process stuck in the kernel cannot be waited for


def adopt() -> None:
    """Become the parent of what our children leave behind, where the system can do that (Linux)."""
    _prctl()(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent() -> Callable[[], None]:
    """Return what a new child calls before exec, so that it is killed when we are."""
    # Everything is looked up here: between fork and exec as little as possible may happen.
    parent, prctl = os.getpid(), _prctl()

    def tie() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)

    return tie


def end_orphans() -> None:
    """Kill and reap all our children, and theirs as they come to us; wait 2 s at most."""
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        try:
            reaped, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if reaped:
            continue
        for child in _children():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(child, signal.SIGKILL)
        time.sleep(0.001)


def _children() -> Iterator[int]:
    us = str(os.getpid())
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            # The name in parentheses may hold anything; behind it come state and parent.
            if stat.read_text(errors="replace").rpartition(")")[2].split()[1] == us:
                yield int(stat.parent.name)


def _prctl() -> Callable[[int, int], object]:
    """Return prctl(2), or nothing's equal where the system has none."""
    try:
        call = ctypes.CDLL(None).prctl
    except (OSError, AttributeError):
        return lambda _option, _value: None
    call.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4
    return lambda option, value: call(option, value, 0, 0, 0)
