"""Programs of the test bed as processes that can be ended by their recorded id, also by others.

What lives here: start, wait, end. Nothing here knows Kubernetes. A record holds the id and the
start time of a process, so that a later run never ends a stranger that got the same id.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

STOP_SECONDS = 20.0


class Program:
    """One program of a bed: ``folder/run/NAME.json`` is its record, ``folder/NAME.log`` its log."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        self._record = folder / "run" / f"{name}.json"
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """The process id while the recorded process lives, else None."""
        try:
            record = json.loads(self._record.read_text())
        except FileNotFoundError:
            return None
        if self._child is not None and self._child.poll() is not None:
            return None
        return record["pid"] if started(record["pid"]) == record["started"] else None

    def start(
        self, command: list[str], *, keep: tuple[int, ...] = (), env: dict[str, str] | None = None
    ) -> None:
        """Start it in a session of its own, so that Ctrl-C in a test run leaves it to `stop`."""
        if self.pid is not None:
            raise RuntimeError(f"{self.name} already runs")
        self._record.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            self._child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                pass_fds=keep,
                env=env,
            )
        try:
            record = {"pid": self._child.pid, "started": started(self._child.pid)}
            new = self._record.with_suffix(".new")
            new.write_text(json.dumps(record))
            new.replace(self._record)
        except BaseException:  # without a record nobody could end it
            self._child.kill()
            raise

    def wait_ready(self, ready: Callable[[], bool], seconds: float = 60) -> None:
        """Wait until `ready` says yes; a RuntimeError carries the end of the log."""
        end = time.monotonic() + seconds
        while not ready():
            if self.pid is None or time.monotonic() > end:
                state = "ended" if self.pid is None else f"is not ready after {seconds:.0f} s"
                tail = self.log.read_text(errors="replace")[-3000:]
                raise RuntimeError(f"{self.name} {state}; end of {self.log}:\n{tail}")
            time.sleep(0.05)

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Let it stand still (SIGSTOP) meanwhile."""
        if (pid := self.pid) is None:
            raise RuntimeError(f"{self.name} does not run")
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def stop(self, first: signal.Signals = signal.SIGTERM, seconds: float = STOP_SECONDS) -> None:
        """End it and wait for its end; does nothing where it has ended already."""
        for number in (first, signal.SIGKILL):
            if (pid := self.pid) is None:
                break
            with suppress(ProcessLookupError):
                os.kill(pid, number)
            end = time.monotonic() + seconds
            while self.pid is not None and time.monotonic() < end:
                time.sleep(0.02)
        if self._child is not None:
            # It has been killed; a busy machine may need long to take its memory apart.
            self._child.wait(10 * STOP_SECONDS)
            self._child = None
        self._record.unlink(missing_ok=True)


def started(pid: int) -> str | None:
    """When a process started, in the system's own words; None where it does not live (any more)."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return None if fields[0] in "ZX" else fields[19]
    except (FileNotFoundError, ProcessLookupError):
        pass
    if Path("/proc/self/stat").exists():
        return None
    command = ["ps", "-o", "lstart=", "-p", str(pid)]
    shown = subprocess.run(command, capture_output=True, text=True, check=False)
    return shown.stdout.strip() or None
