"""A status listener that answers what a test wants, and status-ctl run against it or others."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

from tests import forked
from tests.forked import Forked

ROOT = Path(__file__).resolve().parents[3]
STATUS_CTL = [sys.executable, str(ROOT / "cmd" / "status-ctl.py")]
BOUND = 60.0


class Reply(NamedTuple):
    """What is answered; a dict is sent as JSON. Only a part of the length may be sent."""

    status: int = 200
    body: Any = b""
    headers: tuple[tuple[str, str], ...] = ()
    length: int | None = None

    @property
    def data(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


class Scripted:
    """Serves `paths`; a path with several replies gives one after the other, and stays at the last.

    A query has replies of its own where there are any, else those of its path.

    `asked` are the requests so far: path and headers. `gate` holds every answer back until set.
    """

    def __init__(self, context: Any = None, **paths: Reply | list[Reply]) -> None:
        self.paths: dict[str, list[Reply]] = {}
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.gate = threading.Event()
        self.gate.set()
        self.changed = threading.Condition()
        for name, replies in paths.items():
            self.answer(f"/{name}", *([replies] if isinstance(replies, Reply) else replies))
        scripted = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                scripted.serve(self)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = False
        self._server.handle_error = lambda *_: None  # type: ignore[method-assign]
        if context is not None:
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.port: int = self._server.server_address[1]
        self.url = f"{'https' if context else 'http'}://127.0.0.1:{self.port}"
        self._open: list[BaseHTTPRequestHandler] = []

    def answer(self, path: str, *replies: Reply) -> None:
        self.paths[path] = list(replies)

    def serve(self, handler: BaseHTTPRequestHandler) -> None:
        with self.changed:
            self._open.append(handler)
            self.asked.append((handler.path, dict(handler.headers)))
            none = [Reply(404, b"404 page not found")]
            replies = self.paths.get(handler.path.partition("?")[0], none)
            replies = self.paths.get(handler.path, replies)
            reply = replies.pop(0) if len(replies) > 1 else replies[0]
            self.changed.notify_all()
        self.gate.wait(BOUND)
        tag = dict(reply.headers).get("ETag")
        unchanged = tag is not None and handler.headers.get("If-None-Match") == tag
        data = b"" if unchanged else reply.data
        handler.send_response(304 if unchanged else reply.status)
        for header in reply.headers:
            handler.send_header(*header)
        handler.send_header(
            "Content-Length", str(len(data) if reply.length is None else reply.length)
        )
        handler.end_headers()
        handler.wfile.write(data)
        if reply.length not in {None, len(data)}:
            handler.close_connection = True

    def wait_asked(self, count: int) -> None:
        """Return when it was asked so often."""
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.asked) >= count, BOUND)

    def __enter__(self) -> Scripted:
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.gate.set()
        self._server.shutdown()
        self._thread.join()
        with self.changed:
            for handler in self._open:
                with suppress(OSError):
                    handler.connection.shutdown(2)
        self._server.server_close()


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
            "PYTHONPATH": str(ROOT),
            "HOME": str(folder),
            "XDG_STATE_HOME": str(folder / "state"),
            "TERM": "xterm",
            "LANG": "C.UTF-8",
        }

    def run(self, *arguments: str, **environ: str) -> tuple[int, str, str]:
        """Run status-ctl in a pipe: exit code, standard output, standard error."""
        done = forked.run(
            [STATUS_CTL[1], *arguments],
            env=self.environ | environ,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
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
        **environ: str,
    ) -> tuple[int, str]:
        """Run it on a terminal: exit code, and all that was written there.

        `seen` is called with what was written so far, and the process's id.
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
