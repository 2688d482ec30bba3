"""Ctrl-C in a command that waits."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from reporter.cli.exits import INTERRUPTED
from reporter.cli.interrupt import at_once, termination_too

BOUND = 60.0
MISSED = """
import signal, threading, time
from reporter.cli.interrupt import at_once

signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored where tests run

def elsewhere():
    # The signal's handler runs in another thread: nothing interrupts the main one's sleep.
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)

with at_once():
    try:
        threading.Timer(0.1, elsewhere).start()
        time.sleep(60)
    except KeyboardInterrupt:
        {tidy}
        print("tidied up", flush=True)
    finally:
        print("the end", flush=True)
{after}
"""

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


ENDING = pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
TERMINATED = """
import signal
from reporter.cli.exits import Terminated
from reporter.cli.interrupt import termination_too

for each in (signal.SIGTERM, signal.SIGHUP):
    signal.signal(each, signal.SIG_DFL)  # it may be ignored where tests run
with termination_too() as tidy:
    try:
        signal.raise_signal({number})
    except Terminated:
        print("ended")
    signal.raise_signal(signal.SIGTERM)
    signal.raise_signal(signal.SIGHUP)
    print("tidied up", flush=True)
signal.raise_signal({number})
"""


def ran(tidy: str, after: str = "") -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-c", MISSED.format(tidy=tidy, after=after)],
        capture_output=True,
        text=True,
        check=False,
        timeout=BOUND,
    )
    assert "" == done.stderr
    return done.returncode, done.stdout


def test_a_signal_that_comes_just_before_a_sleep() -> None:
    """The sleep ends, and the command tidies up."""
    assert (0, "tidied up\nthe end\n") == ran("pass")


def test_ctrl_c_again_while_the_command_tidies_up() -> None:
    """What tidies up is not interrupted."""
    again = "signal.raise_signal(signal.SIGINT); time.sleep(0.06)"
    assert (0, "tidied up\nthe end\n") == ran(again)


def test_tidying_up_that_takes_too_long() -> None:
    """The process ends without it."""
    assert (INTERRUPTED, "") == ran("time.sleep(60)")


def test_a_wait_inside_the_c_library_is_given_up() -> None:
    """Python cannot hear of Ctrl-C there."""
    with subprocess.Popen(
        [sys.executable, "-c", STUCK], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert "ready\n" == process.stdout.readline()
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=BOUND)

    assert (130, "tidied\n") == (process.returncode, out)


def test_nothing_is_left_behind() -> None:
    """Neither a thread nor a descriptor, and no signal is rerouted."""
    before = os.listdir("/proc/self/fd")
    with at_once():
        assert len(before) < len(os.listdir("/proc/self/fd"))

    assert before == os.listdir("/proc/self/fd")
    assert -1 == signal.set_wakeup_fd(-1)


def test_what_comes_after_is_as_before() -> None:
    """A later Ctrl-C raises as Python does."""
    after = """
try:
    signal.raise_signal(signal.SIGINT)
except KeyboardInterrupt:
    print("raised", signal.getsignal(signal.SIGINT) is signal.default_int_handler)
"""
    assert (0, "tidied up\nthe end\nraised True\n") == ran("pass", after)


@ENDING
def test_what_ends_a_command_does_so_once(number: signal.Signals) -> None:
    """Either of them later does not disturb the tidying up; after it they kill again."""
    done = subprocess.run(
        [sys.executable, "-c", TERMINATED.format(number=number.value)],
        capture_output=True,
        text=True,
        check=False,
        timeout=BOUND,
    )

    assert (-number, "ended\ntidied up\n") == (done.returncode, done.stdout), done.stderr


@ENDING
def test_a_signal_while_something_is_taken_back_anyway(number: signal.Signals) -> None:
    """It has failed and is being taken back: that goes on."""
    before = signal.signal(number, signal.SIG_DFL)  # it may be ignored where tests run
    try:
        with termination_too() as tidy:
            tidy()
            signal.raise_signal(number)
        assert signal.SIG_DFL is signal.getsignal(number)
    finally:
        signal.signal(number, before)


@pytest.mark.parametrize(
    ("number", "hearing"),
    [
        (signal.SIGINT, at_once),
        (signal.SIGTERM, termination_too),
        (signal.SIGHUP, termination_too),
    ],
)
def test_where_a_signal_is_ignored(
    number: signal.Signals, hearing: Callable[[], AbstractContextManager[object]]
) -> None:
    """It stays ignored, as after `nohup` and behind `&` in a script."""
    before = signal.signal(number, signal.SIG_IGN)
    try:
        with hearing():
            signal.raise_signal(number)
            assert number != signal.SIGINT or signal.SIG_IGN is signal.getsignal(number)
        assert signal.SIG_IGN is signal.getsignal(number)
    finally:
        signal.signal(number, before)
