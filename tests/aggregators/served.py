"""A real aggregator, started as a process on free ports, with its certificates at hand."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import tarfile
import threading
import time
import urllib.request
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self

from tests.aggregators.worker import Worker
from tests.forked import VERSION_OF, Forked
from tests.ports import free_port

ROOT = Path(__file__).resolve().parents[2]
LAUNCHER = VERSION_OF["aggregator"] / "cmd" / "status-aggregator.py"
BOUND = 60.0
TICK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Usage:
    """What a process has used: seconds of CPU, peak memory in bytes."""

    cpu_seconds: float
    peak_bytes: int


def usage(pid: int) -> Usage:
    """Read it of a running process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    status = Path(f"/proc/{pid}/status").read_text()
    (peak,) = (line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))
    return Usage((int(fields[11]) + int(fields[12])) / TICK, int(peak) * 1024)


def plan(plugin: str, nodes: Sequence[str], **more: Any) -> dict[str, Any]:
    """Return a plan of one plugin on these nodes."""
    named = {"name": plugin, **({"nodes": list(nodes)} if nodes else {}), **more}
    return {"run": str(uuid.uuid4()), "plugins": [named]}


class Aggregator:
    """One run below a folder; `start` it, `kill` it and `start` it again.

    A `fresh` one is started by an interpreter of its own, for who measures what it takes.
    """

    launcher: Sequence[str] = (str(LAUNCHER),)

    def __init__(
        self,
        folder: Path,
        document: dict[str, Any],
        *flags: str,
        fresh: bool = False,
        limits: Mapping[str, float] | None = None,
    ) -> None:
        self.folder, self.flags, self.fresh = folder, flags, fresh
        self.state, self.output = folder / "state", folder / "output"
        self.certificates = folder / "certificates"
        self.plugin = document["plugins"][0]["name"]
        self.port, self.status_port = free_port(), free_port()
        self.events: list[dict[str, Any]] = []
        self._changed = threading.Condition()
        self.seconds_to_start = list[float]()
        self._process: subprocess.Popen[str] | None = None
        self._reader: threading.Thread | None = None
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "plan.json").write_text(json.dumps(document))

    @property
    def url(self) -> str:
        """Where workers connect."""
        return f"https://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """The process."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> Self:
        """Start it and return when workers can connect."""
        began = time.monotonic()
        self.launch()
        self.wait_ready()
        self.seconds_to_start.append(time.monotonic() - began)
        return self

    def launch(self) -> None:
        """Start it and wait for nothing."""
        command = [
            *(*self.launcher, "run"),
            *("--plan", str(self.folder / "plan.json")),
            *("--state", str(self.state), "--output", str(self.output)),
            *("--listen", f"127.0.0.1:{self.port}"),
            *("--status-listen", f"127.0.0.1:{self.status_port}"),
            *("--advertise-address", f"127.0.0.1:{self.port}"),
            *("--export-certs", str(self.certificates), *self.flags),
        ]
        self._process = self._run(command)
        lines = self._process.stdout
        self._reader = threading.Thread(target=self._listen, args=(lines,), daemon=True)
        self._reader.start()

    def _run(self, command: list[str]) -> subprocess.Popen[str]:
        environ = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(LAUNCHER.parents[1]),
            "PYTHONSAFEPATH": "1",
        }
        if self.fresh:
            command = [sys.executable, *command]
            return subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True)
        return Forked(command, env=environ, stdout=subprocess.PIPE, text=True)

    def _listen(self, lines: IO[str]) -> None:
        with lines:
            for line in lines:
                # The last one of a killed process may be a part of one.
                with self._changed, suppress(ValueError):
                    self.events.append(json.loads(line))
                    self._changed.notify_all()

    def said(self, message: str) -> list[dict[str, Any]]:
        """Return the log events of that message, of all processes so far."""
        return [event for event in self.events if event["message"] == message]

    def wait_log(self, message: str, count: int = 1) -> list[dict[str, Any]]:
        """Return the log events of that message once there are so many."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.said(message)) >= count, BOUND), message
        return self.said(message)

    def worker(self, plugin: str) -> Worker:
        """Return a client with the certificate of a plugin."""
        return Worker.of(self.port, self.certificates, plugin)

    def wait_ready(self) -> None:
        """Return when `/readyz` says so; fail when the process has ended."""
        end = time.monotonic() + BOUND
        while time.monotonic() < end:
            assert self._process is not None
            assert self._process.poll() is None, f"it has ended: {self.events[-3:]}"
            try:
                self.ask("/readyz")
            except OSError:
                threading.Event().wait(0.02)
            else:
                return
        raise AssertionError("not ready")

    def ask(self, path: str) -> bytes:
        """Return the body of a path of the status listener."""
        url = f"http://127.0.0.1:{self.status_port}{path}"
        with urllib.request.urlopen(url, timeout=BOUND) as answer:
            return bytes(answer.read())

    def status(self) -> dict[str, Any]:
        """Return the run's status."""
        found: dict[str, Any] = json.loads(self.ask("/status"))
        return found

    def entry(self, key: str) -> dict[str, Any]:
        """Return what the status says of one key."""
        (found,) = (entry for entry in self.status()["plugins"] if entry["key"] == key)
        return dict(found)

    def detail(self, key: str) -> dict[str, Any]:
        """Return what the status says of one key alone, with whole lists."""
        found: dict[str, Any] = json.loads(self.ask(f"/status/{key}"))
        return found

    def result(self, key: str) -> bytes:
        """Return what a key has sent, or its error."""
        return self.ask(f"/results/{key}")

    def members(self, key: str) -> dict[str, bytes]:
        """Return the files of the archive that a key has sent."""
        with tarfile.open(fileobj=io.BytesIO(self.result(key))) as archive:
            files = ((member.name, archive.extractfile(member)) for member in archive)
            return {name: file.read() for name, file in files if file is not None}

    def wait_status(self, wanted: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
        """Return the run's status once it is as wanted."""
        end = time.monotonic() + BOUND
        while not wanted(found := self.status()):
            assert time.monotonic() < end, found
            threading.Event().wait(0.02)
        return found

    def metrics(self) -> dict[str, float]:
        """Return what is counted, by name with labels."""
        lines = self.ask("/metrics").decode().splitlines()
        pairs = (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
        return {name: float(value) for name, value in pairs}

    def wait_metrics(self, wanted: Mapping[str, float]) -> None:
        """Wait until these are the values: what is counted after an answer, too."""
        end = time.monotonic() + BOUND
        while wanted != (found := {name: self.metrics().get(name) for name in wanted}):
            assert time.monotonic() < end, found
            threading.Event().wait(0.02)

    def usage(self) -> Usage:
        """Return what the process has used so far."""
        return usage(self.pid)

    def kill(self) -> None:
        """End it without a warning, as a node's failure would."""
        self.signal(signal.SIGKILL)
        self.wait_end()

    def signal(self, number: int) -> None:
        """Send a signal."""
        assert self._process is not None
        self._process.send_signal(number)

    def wait_end(self) -> int:
        """Wait until the process has ended by itself and return its exit code."""
        assert self._process is not None
        assert self._reader is not None
        code = self._process.wait(BOUND)
        self._reader.join(BOUND)
        return code

    def stop(self) -> int:
        """End it by SIGTERM and return the exit code."""
        self.signal(signal.SIGTERM)
        return self.wait_end()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        if self._process is not None and self._process.poll() is None:
            self.kill()
