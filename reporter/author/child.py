"""A process of this machine in place of the adapter's container, seen as the API shows a Pod.

As in a container everything ends with the first process: what that leaves behind is killed before
its end is shown, so the result file is final then. The meaning of the Pod is not decided here.
"""

import contextlib
import ctypes
import os
import resource
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from reporter.author.memory_cgroup import MemoryCgroup
from reporter.common.lifecycle import Stop
from reporter.verdict.facts import (
    Container,
    Form,
    Pod,
    PodSeen,
    RestartPolicy,
    Running,
    State,
    Terminated,
    Waiting,
)

POD = "try-pod"
GRACE = 5.0  # seconds between SIGTERM and SIGKILL; a Pod has 30, a person at a terminal has not
_START_ERROR = 128  # the exit code of a container that the runtime could not start
_NEVER = float("inf")
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PATIENCE = 2.0  # seconds; a process stuck in the kernel cannot be waited for


class Child:
    """One run of a command. Times are seconds.

    A requested stop is the deletion of the Pod: SIGTERM, then SIGKILL after the grace period. Only
    for the main thread of a program that has no other children and sleeps until a signal comes.
    """

    def __init__(
        self, stop: Stop, cgroup: MemoryCgroup | None, *, data_limit: int | None = None
    ) -> None:
        self._stop, self._cgroup, self._data_limit = stop, cgroup, data_limit
        now = _wall()
        self._pod = Pod(
            name=POD,
            uid=str(uuid.uuid4()),
            created_at=now,
            started_at=now,
            form=Form.NATIVE,
            restart=RestartPolicy("Never"),
            only_adapters_write=True,
            grace=GRACE,
        )
        self._state: State = Waiting("ContainerCreating")
        self._process: subprocess.Popen[bytes] | None = None
        self._end_at = self._kill_at = _NEVER  # when SIGTERM and SIGKILL are due

    def start(self, command: Sequence[str], environ: Mapping[str, str]) -> None:
        """Start it with an empty standard input; its output goes to our standard error."""
        _adopt()
        # Its end wakes the loop: only a signal that has a handler does.
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        # The clock that stamps files, which lags behind the other one by a tick: a file of this run
        # must not look older than the run.
        started = _wall()
        try:
            self._process = subprocess.Popen(  # noqa: S603
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL if sys.stderr is None else 2,
                env=dict(environ),
                start_new_session=True,
                preexec_fn=self._before_exec(),  # noqa: PLW1509 - no other thread runs
            )
        except OSError as error:
            self._state = Terminated(
                exit_code=_START_ERROR,
                reason="StartError",
                message=_cause(command[0], error),
                finished_at=_wall(),
            )
        else:
            self._state = Running(started)

    def look(self, *, fresh: bool = False, timeout: float = 0.0) -> PodSeen:
        """Return the present state; it is always current. Sends what signal is due."""
        self._notice_end()
        self._signal_if_due()
        phase = "Running" if isinstance(self._state, Running) else "Pending"
        if isinstance(self._state, Terminated):
            phase = "Failed" if self._state.exit_code else "Succeeded"
        return PodSeen(replace(self._pod, phase=phase, adapter=Container("adapter", self._state)))

    def next_request(self) -> float:
        """Return when a signal is due; the child's end wakes the loop by itself."""
        return min(self._end_at, self._kill_at)

    def end_at(self, moment: float) -> None:
        """Send SIGTERM at that time (monotonic), and SIGKILL when the grace period is over."""
        self._end_at = moment

    def hurry(self) -> None:
        """Let the grace period be over; for a signal handler."""
        self._kill_at = time.monotonic()

    def close(self) -> None:
        """End it, whatever it does, and what it left behind."""
        if self._process is None or not isinstance(self._state, Running):
            return
        self._signal(signal.SIGKILL)
        end = time.monotonic() + GRACE
        while not _has_ended(self._process) and time.monotonic() < end:
            time.sleep(0.01)
        self._notice_end()

    def _signal_if_due(self) -> None:
        now = time.monotonic()
        ended = isinstance(self._state, Terminated)
        if self._stop.requested and not self._pod.deleting and not ended:
            self._pod = replace(self._pod, deletion_requested_at=_wall(), deletion_grace=GRACE)
            self._end_at = now
        if now >= self._end_at:
            self._end_at, self._kill_at = _NEVER, min(self._kill_at, now + GRACE)
            self._signal(signal.SIGTERM)
        if now >= self._kill_at:
            self._kill_at = _NEVER
            self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        if self._process is not None and self._process.returncode is None:
            _kill_group(self._process.pid, number)

    def _notice_end(self) -> None:
        process, state = self._process, self._state
        if process is None or not isinstance(state, Running) or not _has_ended(process):
            return
        finished = _wall()
        _kill_group(process.pid, signal.SIGKILL)
        code = process.wait()
        _end_orphans()
        # As containerd and the kubelet say it: 128 + the signal; one OOM kill inside is enough.
        reason = "Error" if code else "Completed"
        if self._cgroup is not None and self._cgroup.oom_kills:
            reason = "OOMKilled"
        self._state = Terminated(
            exit_code=code if code >= 0 else 128 - code,
            reason=reason,
            started_at=state.started_at,
            finished_at=finished,
            signal=max(0, -code),
        )

    def _before_exec(self) -> Callable[[], None]:
        steps = [_die_with_parent()]
        if self._cgroup is not None:
            steps.append(self._cgroup.joiner())
        limit = self._data_limit

        def prepare() -> None:
            for step in steps:
                step()
            if limit is not None:
                resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))

        return prepare


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Return whether it has; not reaped, so that nobody gets its id while its group is killed."""
    if not hasattr(os, "waitid"):
        return process.poll() is not None
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _kill_group(leader: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)


def _wall() -> float:
    clock = getattr(time, "CLOCK_REALTIME_COARSE", time.CLOCK_REALTIME)
    return time.clock_gettime(clock)


def _cause(program: str, error: OSError) -> str:
    if isinstance(error, FileNotFoundError) and "/" not in program:
        return f'exec: "{program}": executable file not found in $PATH'
    return f'exec: "{program}": {os.strerror(error.errno or 0).lower()}'


def _adopt() -> None:
    """Become the parent of what our children leave behind, where the system can do that (Linux)."""
    _prctl()(_PR_SET_CHILD_SUBREAPER, 1)


def _die_with_parent() -> Callable[[], None]:
    """Return what a new child calls before exec, so that it is killed when we are."""
    # Everything is looked up here: between fork and exec as little as possible may happen.
    parent, prctl = os.getpid(), _prctl()

    def tie() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)

    return tie


def _end_orphans() -> None:
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
