"""A status listener that answers what a test wants, and status-ctl run against it or others."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import ssl
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests import forked
from tests.fakekube import FakeKube, Hang
from tests.forked import VERSION_OF, Forked
from tests.http_server import Request
from tests.scripted_server import Act, Say, ScriptedServer

ROOT = Path(__file__).resolve().parents[3]
VERSION = VERSION_OF["command"]
STATUS_CTL = [sys.executable, str(VERSION / "cmd" / "status-ctl.py")]
BOUND = 60.0


class Scripted(ScriptedServer):
    """Serves `paths`; a path with several acts does one after the other, and stays at the last.

    A query has acts of its own where there are any, else those of its path. What the client says it
    has already (If-None-Match) is answered with 304.
    """

    def __init__(self, tls: ssl.SSLContext | None = None, **paths: Act | list[Act]) -> None:
        super().__init__()
        self._tls = tls
        self._paths: dict[str, list[Act]] = {}
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"
        for name, acts in paths.items():
            self.answer(f"/{name}", *(acts if isinstance(acts, list) else [acts]))
        self.listen()

    def answer(self, path: str, *acts: Act) -> None:
        """Do this from now on."""
        with self.changed:
            self._paths[path] = list(acts)

    def context(self) -> ssl.SSLContext | None:
        """Return that of the constructor."""
        return self._tls

    def next_act(self, request: Request) -> Act:
        """Return the next of its path."""
        none: list[Act] = [Say(404, b"404 page not found")]
        acts = self._paths.get(request.target.partition("?")[0], none)
        acts = self._paths.get(request.target, acts)
        act = acts.pop(0) if len(acts) > 1 else acts[0]
        tag = request.headers.get("if-none-match")
        if isinstance(act, Say) and tag is not None and tag == act.headers.get("ETag"):
            return Say(304, headers=act.headers)
        return act


def entry(plugin: str, node: str = "", status: str = "running", **more: Any) -> dict[str, Any]:
    """Return an element of `plugins`."""
    return {
        "name": plugin,
        "node": node,
        "status": status,
        "last-heartbeat": 3,
        "key": f"{plugin}/{node or 'global'}",
        "result_status": "",
        "result_counts": None,
        "reason": "",
        "message": "",
        "stale": False,
        "late": False,
        "retry_until": None,
        "attempts": 1,
        "received_at": None,
        "digest": None,
        "bytes": None,
        "notes": 0,
        "error": None,
        "progress": None,
        **more,
    }


def run_status(status: str = "running", *entries: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return a document of `/status`."""
    decided = sum(each["status"] not in {"running"} for each in entries)
    reported = sum(each["status"] == "complete" for each in entries)
    return {
        "status": status,
        "percent_complete": round(decided / len(entries), 4) if entries else 1.0,
        "plugins_reported": round(reported / len(entries), 4) if entries else 1.0,
        "plugins": list(entries),
        "api_version": "v1",
        "run": "5e1f0c6a",
        "revision": 42,
        "time": "2030-01-01T12:00:00.000000Z",
        "final": False,
        "result_status": "",
        "error": None,
        "tar-info": None,
        **more,
    }


class Home:
    """A user's home: where the state directory is, and a kubeconfig may be."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.connection = folder / "state" / "status-reporter" / "connection.json"
        self.environ = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(VERSION),
            "HOME": str(folder),
            "XDG_STATE_HOME": str(folder / "state"),
            "TERM": "xterm",
            "LANG": "C.UTF-8",
        }

    def run(self, *arguments: str, given: bytes = b"", **environ: str) -> tuple[int, str, str]:
        """Run status-ctl in a pipe: exit code, standard output, standard error.

        `given` is its standard input.
        """
        done = forked.run(
            [STATUS_CTL[1], *arguments],
            input=given,
            env=self.environ | environ,
            cwd=self.folder,
            capture_output=True,
            timeout=BOUND,
        )
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    @contextmanager
    def started(self, *arguments: str, **environ: str) -> Iterator[Forked]:
        """Start it in a pipe."""
        with Forked(
            [STATUS_CTL[1], *arguments],
            env=self.environ | environ,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            try:
                yield process
            finally:
                if process.poll() is None:
                    process.kill()

    def terminal(
        self,
        *arguments: str,
        columns: int = 100,
        rows: int = 30,
        seen: Callable[[str, int], object] = lambda *_: None,
        typed: str = "",
        **environ: str,
    ) -> tuple[int, str]:
        """Run it on a terminal: exit code, and all that was written there.

        `seen` is called with what was written so far, and the process's id; `typed` is what a
        person types ahead.
        """
        controller, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        process = Forked(
            [STATUS_CTL[1], *arguments],
            env=self.environ | environ,
            cwd=self.folder,
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            start_new_session=True,
        )
        os.close(terminal)
        os.write(controller, typed.encode())
        killer = threading.Timer(BOUND, process.kill)
        killer.start()
        written = b""
        try:
            while True:
                try:
                    piece = os.read(controller, 65536)
                except OSError:  # nobody has the terminal any more
                    break
                if not piece:
                    break
                written += piece
                seen(written.decode(errors="replace"), process.pid)
            return process.wait(BOUND), written.decode(errors="replace").replace("\r\n", "\n")
        finally:
            killer.cancel()
            os.close(controller)
            if process.poll() is None:
                process.kill()
                process.wait()


def interrupt(pid: int) -> None:
    """Ctrl-C."""
    os.kill(pid, signal.SIGINT)


def interrupted(home: Home, fake: FakeKube, *arguments: str) -> tuple[int, bytes, bytes]:
    """Send Ctrl-C to a command whose API server does not answer; return what `run` does."""
    fake.fail(Hang(), times=None)
    return interrupted_when(lambda: fake.journal, home, fake, *arguments)


def interrupted_when(
    reached: Callable[[], object], home: Home, fake: FakeKube, *arguments: str
) -> tuple[int, bytes, bytes]:
    """Send it Ctrl-C as soon as this is so."""
    with home.started(*arguments) as process:
        fake.wait_for(reached)
        interrupt(process.pid)
        out, err = process.communicate(timeout=BOUND)
    return process.returncode, out, err
