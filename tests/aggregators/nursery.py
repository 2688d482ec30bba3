"""Processes of the aggregator without half a second of imports each, for tests that start hundreds.

A nursery is a process that has imported everything and forks for each start. What is forked runs
the launcher as it is, and can be killed like any process.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]


class Forked:
    """A process that a nursery has started; as much of `subprocess.Popen` as is needed."""

    def __init__(self, nursery: Nursery, pid: int) -> None:
        self.pid = pid
        self._nursery, self._handle = nursery, os.pidfd_open(pid)
        self._code: int | None = None

    def poll(self) -> int | None:
        """Return the exit code, or nothing while it runs."""
        if self._code is None and select.select([self._handle], [], [], 0)[0]:
            return self.wait(0)
        return self._code

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code once it has ended."""
        if self._code is None:
            if not select.select([self._handle], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("aggregator", timeout or 0.0)
            self._code = self._nursery.reap(self.pid)
            os.close(self._handle)
        return self._code

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            signal.pidfd_send_signal(self._handle, number)


class Nursery:
    """Starts launchers; to be used in a `with` statement, which ends whatever still runs."""

    def __init__(self) -> None:
        self._turn = threading.Lock()

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / "launch_nursery.py")],
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "PYTHONSAFEPATH": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def start(self, command: Sequence[str], output: Path) -> Forked:
        """Run a launcher with its arguments; what it prints goes to `output`, a FIFO."""
        return Forked(self, self._ask({"start": list(command), "output": str(output)}))

    def reap(self, pid: int) -> int:
        """Return the exit code of a process that has ended, as Popen has it."""
        return self._ask({"reap": pid})

    def _ask(self, order: dict[str, Any]) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._turn:
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()
            return int(self._process.stdout.readline())
