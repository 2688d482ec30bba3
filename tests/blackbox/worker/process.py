"""The worker as a process of its own, started as the image starts it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from tests.aggregators.scripted import Scripted
from tests.forked import Forked
from tests.ports import free_port

LAUNCHER = Path("cmd/sonobuoy.py").absolute()
BOUND = 60.0


class Process:
    """A running worker, or another program with such a log."""

    def __init__(self, popen: subprocess.Popen[str]) -> None:
        self._popen = popen
        self.lines: list[dict[str, Any]] = []
        self.errors = ""

    def wait_log(self, message: str) -> dict[str, Any]:
        """Return the next event of that message."""
        assert self._popen.stdout is not None
        for line in self._popen.stdout:
            self.lines.append(json.loads(line))
            if self.lines[-1]["message"] == message:
                return self.lines[-1]
        raise AssertionError(f"never logged {message!r}: {self.lines}")

    def signal(self, number: int = signal.SIGTERM) -> None:
        self._popen.send_signal(number)

    def join(self) -> int:
        """Return the exit code once it has ended by itself; every line has to be a JSON object."""
        output, self.errors = self._popen.communicate(timeout=BOUND)
        self.lines += [json.loads(line) for line in output.splitlines()]
        return self._popen.returncode

    def said(self, message: str) -> list[dict[str, Any]]:
        """Return the events of that message."""
        return [line for line in self.lines if line["message"] == message]


@contextmanager
def running(*command: str, environ: dict[str, str]) -> Iterator[Process]:
    """Start a program with just this environment."""
    with Forked(
        [*command],
        env={"PATH": os.environ["PATH"], **environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as popen:
        try:
            yield Process(popen)
        finally:
            popen.kill()


def worker(
    *arguments: str, environ: dict[str, str], launcher: tuple[str, ...] = (str(LAUNCHER),)
) -> AbstractContextManager[Process]:
    """Start a worker with just this environment."""
    return running(*launcher, *(arguments or ("worker", "global")), environ=environ)


def environment(scripted: Scripted, results: Path, **variables: str) -> dict[str, str]:
    """What a launcher of plugins would give it, with no delay."""
    return {
        **scripted.environment(),
        "SONOBUOY_RESULTS_DIR": str(results),
        "SONOBUOY_PROGRESS_PORT": str(free_port()),
        "SONOBUOY_DONE_FILE_DELAY": "0s",
        **variables,
    }
