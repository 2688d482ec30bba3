"""Stopping and waking, with real signals and real descriptors."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from reporter.common import lifecycle

BOUND = 20.0

WAITS = """
import sys, time
from reporter.common import lifecycle
stop = lifecycle.install()
print("ready", flush=True)
while not stop.requested:
    stop.wake.wait(None)
print("stopping", stop.signal, 0 <= time.monotonic() - stop.requested_at < 10, flush=True)
"""

NEVER_ENDS = WAITS + "while True:\n    stop.wake.wait(None)\n"


@pytest.fixture
def wake():
    """A waiting primitive of its own."""
    subject = lifecycle.Wake()
    yield subject
    subject.close()


@contextlib.contextmanager
def program(code, *before):
    """Run Python code in a process of its own that has said it is ready."""
    process = subprocess.Popen(
        [*before, sys.executable, "-c", code], stdout=subprocess.PIPE, text=True
    )
    try:
        assert "ready\n" == process.stdout.readline()
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_the_first_signal_wakes_the_loop_and_is_remembered(signum):
    """A wait without end returns at once, and says when and by what it was ended."""
    with program(WAITS) as process:
        process.send_signal(signum)

        assert f"stopping {int(signum)} True\n" == process.stdout.readline()
        assert 0 == process.wait(BOUND)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (signal.SIGTERM, signal.SIGTERM),
        (signal.SIGINT, signal.SIGTERM),
        (signal.SIGTERM, signal.SIGINT),
    ],
)
def test_the_second_signal_exits_at_once(first, second):
    """Whoever asks twice does not want to wait; the exit code says which signal it was."""
    with program(NEVER_ENDS) as process:
        process.send_signal(first)
        assert process.stdout.readline().startswith("stopping")
        process.send_signal(second)

        assert 128 + second == process.wait(BOUND)


def test_a_signal_taken_by_another_thread_wakes_the_main_thread():
    """The kernel chose the wrong thread: the descriptor written by the C handler wakes ours."""
    code = """
import os, signal, threading, time
from reporter.common import lifecycle
stop = lifecycle.install()
def other():
    input()
    time.sleep(0.2)  # until the main thread sleeps in poll(); too short only weakens the test
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
    threading.Event().wait()
threading.Thread(target=other, daemon=True).start()
print("ready", flush=True)
while not stop.requested:
    stop.wake.wait(None)
print("stopping", flush=True)
os._exit(0)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        try:
            assert "ready\n" == process.stdout.readline()
            process.stdin.write("\n")
            process.stdin.flush()
            assert "stopping\n" == process.stdout.readline()
            assert 0 == process.wait(BOUND)
        finally:
            process.kill()


def test_the_handler_works_as_process_1():
    """Process 1 has no default actions: without a handler SIGTERM would do nothing."""
    unshare = shutil.which("unshare")
    if unshare is None or os.geteuid() != 0:
        pytest.skip("a process 1 of our own needs root and unshare")
    code = "import os; assert os.getpid() == 1\n" + NEVER_ENDS
    with program(code, unshare, "--pid", "--fork", "--kill-child", "--mount-proc") as process:
        inner = int(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text())
        os.kill(inner, signal.SIGTERM)
        assert "stopping 15 True\n" == process.stdout.readline()
        os.kill(inner, signal.SIGTERM)

        assert 143 == process.wait(BOUND)


def test_the_program_may_stop_itself():
    """The first request counts, and a first signal after it still is no second."""
    stop = lifecycle.Stop()
    assert not stop.requested
    stop.request()
    first = stop.requested_at
    stop.request()
    stop.on_signal(signal.SIGTERM, None)

    assert stop.requested
    assert first == stop.requested_at
    assert signal.SIGTERM == stop.signal
    assert stop.wake.wait(None) is None
    stop.wake.close()


def test_waiting_for_a_stop_ends_with_it_and_with_nothing_else(wake):
    """As the link waits for a `threading.Event`: a wake for another reason is not its end."""
    stop = lifecycle.Stop(wake)
    begun = time.monotonic()
    wake.wake()

    assert not stop.wait(0.05)
    assert time.monotonic() - begun >= 0.05
    thread = threading.Thread(target=stop.request)
    thread.start()
    assert stop.wait()
    assert stop.is_set()
    thread.join()


def test_a_wake_from_another_thread_ends_a_wait(wake):
    """Threads fill a mailbox and wake the loop."""
    thread = threading.Thread(target=wake.wake)
    thread.start()

    assert wake.wait(None) is None
    thread.join()


def test_wakes_coalesce(wake):
    """A million wakes before a wait end one wait, and never block the waker."""
    for _ in range(100_000):
        wake.wake()
    assert wake.wait(None) is None

    begun = time.monotonic()
    assert set() == wake.wait(0.05)
    assert time.monotonic() - begun >= 0.05


def test_others_may_wait_in_their_own_way(wake):
    """An event loop watches the descriptor; `wait` makes it unreadable again."""
    assert [] == select.select([wake], [], [], 0)[0]
    wake.wake()
    assert [wake] == select.select([wake], [], [], 60)[0]
    wake.wait(0)
    assert [] == select.select([wake], [], [], 0)[0]


def test_descriptors_end_a_wait_and_are_named(wake):
    """An inotify descriptor can be waited for together with wakes."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert set() == wake.wait(0, [ours.fileno()])
        theirs.send(b"x")
        assert {ours.fileno()} == wake.wait(None, [ours.fileno()])


def test_a_wake_is_told_although_a_descriptor_is_ready_too(wake):
    """It would be forgotten; the descriptor stays readable for the next wait."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.send(b"x")
        wake.wake()

        assert wake.wait(None, [ours.fileno()]) is None
        assert {ours.fileno()} == wake.wait(None, [ours.fileno()])


def test_a_broken_descriptor_is_named_instead_of_raising(wake):
    """Its owner finds out by reading; the loop goes on."""
    reader, writer = os.pipe()
    os.close(writer)
    assert {reader} == wake.wait(None, [reader])

    os.close(reader)
    assert {reader} == wake.wait(None, [reader])


@pytest.mark.parametrize("timeout", [0, -1, -1e300])
def test_a_wait_that_is_over_already_returns_at_once(wake, timeout):
    """A deadline in the past is no error."""
    assert set() == wake.wait(timeout)


@pytest.mark.parametrize("timeout", [2**31, 1e12, float("inf")])
def test_a_wait_longer_than_poll_can_count_is_no_error(wake, timeout):
    """poll() takes 32 bits of milliseconds."""
    wake.wake()

    assert wake.wait(timeout) is None


def test_little_is_imported_before_the_handler_stands():
    """What comes before the handler is time in which a SIGTERM is lost."""
    code = (
        "import sys; before = set(sys.modules); import reporter.common.lifecycle;"
        "print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run(
        [
            sys.executable,
            "-I",
            "-S",
            "-c",
            f"import sys; sys.path.insert(0, {str(Path.cwd())!r}); {code}",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    heavy = {"threading", "logging", "selectors", "socket", "typing", "asyncio", "subprocess"}

    assert set() == heavy & set(done.stdout.split())
