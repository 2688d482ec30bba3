"""Ctrl-C, also where Python itself cannot hear it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
BOUND = 60.0
STUCK = """if True:
    import atexit, ctypes, sys
    from reporter.cli.interrupt import at_once
    atexit.register(lambda: print("tidied", flush=True))
    mutex = ctypes.create_string_buffer(64)
    lock = ctypes.CDLL(None).pthread_mutex_lock
    try:
        with at_once():
            print("ready", flush=True)
            lock(mutex), lock(mutex)
    except KeyboardInterrupt:
        sys.exit(130)  # it came before the second lock
"""
TIDY = """if True:
    import sys, time
    from reporter.cli.interrupt import at_once
    try:
        with at_once():
            try:
                print("ready", flush=True)
                time.sleep(60)
            finally:
                print("tidied", flush=True)
    except KeyboardInterrupt:
        sys.exit(7)
"""


@pytest.mark.parametrize(("code", "expected"), [(STUCK, 130), (TIDY, 7)], ids=["stuck", "tidy"])
def test_ctrl_c_ends_it_at_once(code: str, expected: int) -> None:
    """A wait inside the C library is given up; one that Python hears of ends in its own way."""
    with subprocess.Popen(
        [sys.executable, "-c", code],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert "ready\n" == process.stdout.readline()
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=BOUND)

    assert (expected, "tidied\n") == (process.returncode, out)


def test_nothing_is_left_behind() -> None:
    """Neither a thread nor a descriptor, and no signal is rerouted."""
    from reporter.cli.interrupt import at_once

    before = os.listdir("/proc/self/fd")
    with at_once():
        assert len(before) < len(os.listdir("/proc/self/fd"))

    assert before == os.listdir("/proc/self/fd")
    assert -1 == signal.set_wakeup_fd(-1)
