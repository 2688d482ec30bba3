"""An aggregator as a process of its own, and plain clients of the standard library for it."""

from __future__ import annotations

import http.client
import json
import os
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, Self

from tests import forked
from tests.forked import ROOT, VERSION_OF, Forked

BOUND = 60.0
"""Nothing takes so long unless it hangs."""
IN_POD = str(ROOT / "tests" / "blackbox" / "in_pod.py")
VERSION = VERSION_OF["aggregator"]
PROGRAM = str(VERSION / "cmd" / "status-aggregator.py")
PLAN = {
    "run": "run-1",
    "plugins": [{"name": "e2e"}, {"name": "sysd", "nodes": ["node1", "node2"]}],
}
KEYS = ("global/e2e", "by-node/node1/sysd", "by-node/node2/sysd")

Object = dict[str, Any]


class Reply(NamedTuple):
    """An answer."""

    status: int
    body: bytes
    headers: dict[str, str]

    @property
    def json(self) -> Any:
        """The body, decoded."""
        return json.loads(self.body)


class Aggregator:
    """One process. What it logs is in `events`, what it says on stderr in `errors` at its end."""

    def __init__(self, folder: Path, arguments: list[str], environ: dict[str, str]) -> None:
        self.folder, self.events = folder, list[Object]()
        self.lines = list[str]()
        self._changed = threading.Condition()
        self.process = Forked(
            [IN_POD, PROGRAM, *arguments],
            env={
                "PATH": os.environ["PATH"],
                "PYTHONPATH": str(VERSION),
                # Warnings show on stderr, which has to stay empty.
                "PYTHONWARNINGS": "default",
                **environ,
            },
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        self.port = self.status_port = 0

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._changed:
                self.lines.append(line)
                with suppress(ValueError):
                    self.events.append(json.loads(line))
                self._changed.notify_all()
        with self._changed:
            self._changed.notify_all()

    def said(self, message: str) -> list[Object]:
        """Return the log events of that message."""
        return [event for event in self.events if event["message"] == message]

    def wait_log(self, message: str) -> Object:
        """Return the first log event of that message."""
        with self._changed:
            ended = lambda: not self._reader.is_alive()  # noqa: E731
            self._changed.wait_for(lambda: self.said(message) or ended(), BOUND)
            assert self.said(message), self.lines
            return self.said(message)[0]

    def ready(self) -> Self:
        """Wait until it serves."""
        self.port = self.wait_log("Worker listener ready")["port"]
        self.status_port = self.wait_log("Status listener ready")["port"]
        return self

    def end(self, signum: int | None = None) -> tuple[int, str]:
        """Send a signal, if one is given; return exit code and stderr."""
        if signum is not None:
            self.process.send_signal(signum)
        code = self.process.wait(BOUND)
        self._reader.join(BOUND)
        assert self.process.stderr is not None
        return code, self.process.stderr.read()

    def close(self) -> None:
        """Leave nothing behind."""
        self.process.kill()
        self.process.wait()
        self._reader.join()
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()

    # Clients

    def context(self, plugin: str) -> ssl.SSLContext:
        """Return the TLS of a worker: what was exported for its plugin."""
        certs = self.folder / "certs"
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        context.load_verify_locations(certs / "ca.pem")
        context.load_cert_chain(certs / f"{plugin}.crt", certs / f"{plugin}.key")
        return context

    def connection(self, plugin: str) -> http.client.HTTPSConnection:
        """Return a worker's connection."""
        return http.client.HTTPSConnection(
            "127.0.0.1", self.port, context=self.context(plugin), timeout=BOUND
        )

    def worker(self, method: str, path: str, body: bytes | None = None, **headers: str) -> Reply:
        """Send one request of the worker that the path belongs to."""
        connection = self.connection(path.rsplit("/", 1)[1])
        return ask(connection, method, f"/api/v1/{path}", body, headers)

    def upload(self, key: str, body: bytes = b"result") -> Reply:
        """Send a result; `key` as it stands in paths."""
        return self.worker("PUT", f"results/{key}", body)

    def progress(self, key: str, **update: object) -> Reply:
        """Send a progress update."""
        return self.worker("POST", f"progress/{key}", json.dumps(update).encode())

    def get(self, path: str, **headers: str) -> Reply:
        """Ask the status listener."""
        connection = http.client.HTTPConnection("127.0.0.1", self.status_port, timeout=BOUND)
        return ask(connection, "GET", path, headers=headers)

    def status(self) -> Object:
        """Return the run's status."""
        found: Object = self.get("/status").json
        return found

    def entries(self) -> dict[str, Object]:
        """Return the entries by key, without what changes by itself."""
        return {e["key"]: e | {"last-heartbeat": None} for e in self.status()["plugins"]}

    def wait_status(self, wanted: Callable[[Object], bool]) -> Object:
        """Return the status once it is as wanted."""
        end = time.monotonic() + BOUND
        while not wanted(found := self.status()):
            assert time.monotonic() < end, found
            time.sleep(0.02)
        return found


def ask(
    connection: http.client.HTTPConnection,
    method: str,
    path: str,
    body: bytes | None = None,
    headers: dict[str, str] | None = None,
) -> Reply:
    """Send one request on a connection of its own."""
    try:
        names = {name.replace("_", "-"): value for name, value in (headers or {}).items()}
        connection.request(method, path, body, names)
        answer = connection.getresponse()
        return Reply(answer.status, answer.read(), dict(answer.getheaders()))
    finally:
        connection.close()


class Site:
    """A folder for one run, with its plan, and the processes that were started there."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.started = folder, list[Aggregator]()
        self.write_plan(PLAN)

    def write_plan(self, plan: object) -> None:
        """Replace the plan; text is written as it is."""
        text = plan if isinstance(plan, str) else json.dumps(plan)
        (self.folder / "plan.json").write_text(text, encoding="utf-8")

    def start(self, *flags: str, **variables: str) -> Aggregator:
        """Start a process; a variable given as "" is not set."""
        environ = {
            "PLAN": "plan.json",
            "STATE": "state",
            "OUTPUT": "out",
            "LISTEN": "127.0.0.1:0",
            "STATUS_LISTEN": "127.0.0.1:0",
            "EXPORT_CERTS": "certs",
        } | variables
        started = Aggregator(self.folder, ["run", *flags], environ)
        self.started.append(started)
        return started

    def run(self, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
        """Run the program to its end."""
        return forked.run(
            [IN_POD, PROGRAM, *arguments],
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(VERSION), **environ},
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=BOUND,
        )


@contextmanager
def site(folder: Path) -> Iterator[Site]:
    """A site whose processes end with it."""
    found = Site(folder)
    try:
        yield found
    finally:
        for process in found.started:
            process.close()


def closed(port: int) -> bool:
    """Whether nobody listens there."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=BOUND).close()
    except OSError:
        return True
    return False


def wait(wanted) -> None:
    """Wait until something is true."""
    end = time.monotonic() + BOUND
    while not wanted():
        assert time.monotonic() < end
        time.sleep(0.02)
