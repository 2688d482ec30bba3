"""A process of this machine in place of the adapter's container, seen as the API shows a Pod.

As in a container everything ends with the first process: what that leaves behind is killed before
its end is shown, so the result file is final then. The meaning of the Pod is not decided here.
"""

import contextlib
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from reporter.author.memory_cgroup import MemoryCgroup
from reporter.common.orphans import adopt, die_with_parent, end_orphans
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

GRACE = 5.0  # seconds between SIGTERM and SIGKILL; a Pod has 30, a person at a terminal has not
_POLL = 0.01  # seconds between two looks whether it has ended, where looking is all there is
_START_ERROR = 128  # the exit code of a container that the runtime could not start


class Stop(Protocol):
    """Whether the person wants it to end."""

    @property
    def requested(self) -> bool:
        """Whether to end."""


class Child:
    """One run of a command. Times are seconds; `wake` is called, from a thread, at its end.

    A requested stop is the deletion of the Pod: SIGTERM, then SIGKILL after the grace period. Only
    for a program that has no other children.
    """

    def __init__(
        self,
        stop: Stop,
        wake: Callable[[], None],
        *,
        name: str,
        uid: str,
        cgroup: MemoryCgroup | None = None,
        data_limit: int | None = None,
    ) -> None:
        self._stop, self._wake = stop, wake
        self._cgroup, self._data_limit = cgroup, data_limit
        now = _wall()
        self._pod = Pod(
            name=name,
            uid=uid,
            created_at=now,
            started_at=now,
            form=Form.NATIVE,
            restart=RestartPolicy("Never"),
            own_volume=True,
            grace=GRACE,
        )
        self._lock = threading.Lock()  # guards the state, and the process id against being reused
        self._state: State = Waiting("ContainerCreating")
        self._process: subprocess.Popen[bytes] | None = None
        self._reaped = False
        self._end_at = self._kill_at = float("inf")  # when SIGTERM and SIGKILL are due
        self._waiter = threading.Thread(target=self._await_end, name="child", daemon=True)

    def start(self, command: Sequence[str], environ: Mapping[str, str]) -> None:
        """Start it with an empty standard input; its output goes to our standard error."""
        adopt()
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
                preexec_fn=self._before_exec(),  # noqa: PLW1509 - no thread runs yet
            )
        except OSError as error:
            self._state = Terminated(
                exit_code=_START_ERROR,
                reason="StartError",
                message=_cause(command[0], error),
                finished_at=_wall(),
            )
            return
        self._state = Running(started)
        self._waiter.start()

    def look(self, *, fresh: bool = False, timeout: float = 0.0) -> PodSeen:
        """Return the present state; it is always current. Sends what signal is due."""
        self._signal_if_due()
        with self._lock:
            state = self._state
        phase = "Running" if isinstance(state, Running) else "Pending"
        if isinstance(state, Terminated):
            phase = "Failed" if state.exit_code else "Succeeded"
        return PodSeen(replace(self._pod, phase=phase, adapter=Container("adapter", state)))

    def next_look(self) -> float:
        """Return when a signal is due; the child's end wakes the loop by itself."""
        return min(self._end_at, self._kill_at)

    @property
    def ended(self) -> bool:
        """Whether it has ended, with all it started."""
        with self._lock:
            return isinstance(self._state, Terminated)

    def end_at(self, moment: float) -> None:
        """Send SIGTERM at that time (monotonic), and SIGKILL when the grace period is over."""
        self._end_at = moment

    def hurry(self) -> None:
        """Let the grace period be over; for a signal handler."""
        self._kill_at = time.monotonic()

    def close(self) -> None:
        """End it, whatever it does, and what it left behind."""
        if self._process is not None:
            self._signal(signal.SIGKILL)
            self._waiter.join(GRACE)

    def _signal_if_due(self) -> None:
        now = time.monotonic()
        if self._stop.requested and not self._pod.deleting and not self.ended:
            self._pod = replace(self._pod, deletion_requested_at=_wall(), deletion_grace=GRACE)
            self._end_at = now
        if now >= self._end_at:
            self._end_at, self._kill_at = float("inf"), min(self._kill_at, now + GRACE)
            self._signal(signal.SIGTERM)
        if now >= self._kill_at:
            self._kill_at = float("inf")
            self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        with self._lock:
            if self._process is not None and not self._reaped:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(self._process.pid, number)

    def _await_end(self) -> None:
        process = self._process
        assert process is not None
        if hasattr(os, "waitid"):
            # Not reaped yet: its id, which is its group's, stays ours while the group is killed.
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
            finished = _wall()
            self._signal(signal.SIGKILL)
        else:
            self._await_and_reap(process)
            finished = _wall()
        with self._lock:
            code = process.wait()
            self._reaped = True
        if self._cgroup is not None:
            self._cgroup.kill()
        end_orphans()
        with self._lock:
            self._state = self._ended(code, finished)
        self._wake()

    def _await_and_reap(self, process: "subprocess.Popen[bytes]") -> None:
        """Wait where a process cannot be waited for without reaping it; then kill its group."""
        while True:
            # Under the lock, so that no signal goes to an id that may be somebody else's by now.
            with self._lock:
                if process.poll() is not None:
                    self._reaped = True
                    break
            time.sleep(_POLL)
        # While members are left, their group keeps its id, and without any there is no such group.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)

    def _ended(self, code: int, finished: float) -> Terminated:
        """As containerd and the kubelet say it: 128 + the signal; one OOM kill inside is enough."""
        exit_code = code if code >= 0 else 128 - code
        reason = "Error" if exit_code else "Completed"
        if self._cgroup is not None and self._cgroup.oom_kills:
            reason = "OOMKilled"
        started = self._state.started_at if isinstance(self._state, Running) else None
        return Terminated(
            exit_code=exit_code,
            reason=reason,
            started_at=started,
            finished_at=finished,
            signal=max(0, -code),
        )

    def _before_exec(self) -> Callable[[], None]:
        steps = [die_with_parent()]
        if self._cgroup is not None:
            steps.append(self._cgroup.joiner())
        limit = self._data_limit

        def prepare() -> None:
            for step in steps:
                step()
            if limit is not None:
                resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))

        return prepare


def _wall() -> float:
    clock = getattr(time, "CLOCK_REALTIME_COARSE", time.CLOCK_REALTIME)
    return time.clock_gettime(clock)


def _cause(program: str, error: OSError) -> str:
    if isinstance(error, FileNotFoundError) and "/" not in program:
        return f'exec: "{program}": executable file not found in $PATH'
    return f'exec: "{program}": {os.strerror(error.errno or 0).lower()}'
