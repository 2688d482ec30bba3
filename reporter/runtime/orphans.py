"""Processes that must not outlive this one: our children, and what they left behind.

Only for a program that starts nothing else: every child of this process counts.
"""

import contextlib
import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_AWAITED = (signal.SIGCHLD, signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
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


def end_when_killed() -> None:
    """Go on in a child, which gets SIGTERM when this process is killed; only the child returns.

    So there is somebody left who ends what the program has started. This process waits, passes on
    the signals that ask to end, and exits as the child does; then nothing is left that the child
    has started, even if it was killed. For a program without threads.
    """
    if not sys.platform.startswith("linux"):
        return
    parent, prctl = os.getpid(), _prctl()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    awaited = {each for each in _AWAITED if signal.getsignal(each) is not signal.SIG_IGN}
    signal.pthread_sigmask(signal.SIG_BLOCK, awaited)
    # A shell that became this program may have left it children: they are not ours to end.
    others = frozenset(_children())
    child = os.fork()
    if not child:
        prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            os._exit(1)
        # Terminals and `timeout` signal a whole group, and a second signal ends without tidying up.
        os.setpgid(0, 0)
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)  # it may still write to the terminal
        signal.pthread_sigmask(signal.SIG_UNBLOCK, awaited)
        return
    adopt()
    asked = False
    while True:
        came = signal.sigwait(awaited)
        if came != signal.SIGCHLD:
            # A closed terminal tells it twice, by its shell and by the kernel: nobody is impatient.
            if came != signal.SIGHUP or not asked:
                os.kill(child, signal.SIGINT if came == signal.SIGINT else signal.SIGTERM)
            asked = True
            continue
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            end_orphans(others)
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)


def end_orphans(but: frozenset[int] = frozenset()) -> None:
    """Kill and reap all our children, and theirs as they come to us; wait 2 s at most.

    Those in `but` are left alone.
    """
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        try:
            reaped, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if reaped:
            continue
        children = set(_children()) - but
        if but and not children:
            return
        for child in children:
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
