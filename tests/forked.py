"""Python programs as processes of their own, without half a second of imports each.

A process that has imported the product forks for each start. What comes out is a process like any
other, with its own arguments, environment, directory, descriptors, signals and exit code.
"""

from __future__ import annotations

import atexit
import json
import os
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
VERSION_OF = {
    name: Path(os.environ.get(f"OTHER_{name.upper()}", ROOT))
    for name in ("reporter", "aggregator", "command")
}
"""Where a program is run from: `make test-versions` names the checkout of another version."""
READ_AT_START = ("PYTHON", "OPENSSL")
FRESH = {"PYTHONNOUSERSITE": "1"}
"""With this in its environment a program is started by a new interpreter."""


class _Parent:
    """The process that forks; it ends with this one."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            # Isolated, as the launcher of the worker wants to be; without the environment of the
            # test that happens to be the first.
            self._process = subprocess.Popen(
                [sys.executable, "-I", str(ROOT / "tests" / "forking.py"), str(theirs.fileno())],
                env={"PATH": os.environ["PATH"]} | _mark(),
                pass_fds=[theirs.fileno()],
                cwd=ROOT,
            )

    def start(self, order: dict[str, Any], descriptors: list[int]) -> int:
        """Return the id of a new process; its wait status is written to the last descriptor."""
        with self._turn:
            socket.send_fds(self._socket, [json.dumps(order).encode()], descriptors)
            return int(self._socket.recv(64))

    def close(self) -> None:
        """End it; it ends what it has started."""
        self._socket.close()
        self._process.wait()


_parents: dict[int, _Parent] = {}


def _parent() -> _Parent:
    if os.getpid() not in _parents:
        _parents[os.getpid()] = _Parent()
        atexit.register(_parents[os.getpid()].close)
    return _parents[os.getpid()]


def _mark() -> dict[str, str]:
    """Return what continuous integration finds its leaks by, and what measures coverage."""
    names = ("CI_RUN_MARK", "COVERAGE_PROCESS_CONFIG")
    return {name: os.environ[name] for name in names if name in os.environ}


class Forked(subprocess.Popen[Any]):
    """A `Popen` whose command is a Python file and its arguments.

    Where the interpreter or a library would read its start's environment, or there is no Linux, a
    new interpreter is started after all.
    """

    _status: int | None = None
    _told: int

    # The three private methods are the same in Python 3.11 to 3.13.

    def _execute_child(self, args: list[str], *rest: Any) -> None:
        _, preexec_fn, _, pass_fds, cwd, env = rest[:6]
        p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite = rest[9:15]
        session = rest[20]
        env = dict(os.environ if env is None else env)
        if preexec_fn or pass_fds or not _can_fork(env):
            command = [sys.executable, *args]
            super()._execute_child(command, *rest)  # type: ignore[misc]
            return
        order = {
            "command": [os.fspath(word) for word in args],
            "environ": env,
            "folder": os.fspath(cwd or os.getcwd()),
            "session": bool(session),
        }
        self._told, tell = os.pipe()
        try:
            given = [p2cread, c2pwrite, errwrite]
            descriptors = [number if fd == -1 else fd for number, fd in enumerate(given)]
            self.pid = _parent().start(order, [*descriptors, tell])
            self._child_created = True
        finally:
            os.close(tell)
            self._close_pipe_fds(  # type: ignore[attr-defined]
                p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite
            )

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        if not hasattr(self, "_told"):
            found: tuple[int, int] = super()._try_wait(wait_flags)  # type: ignore[misc]
            return found
        if self._status is None:
            os.set_blocking(self._told, not wait_flags & os.WNOHANG)
            try:
                self._status = struct.unpack("i", os.read(self._told, 4))[0]
            except BlockingIOError:
                return 0, 0
            os.close(self._told)
        return self.pid, self._status

    def _internal_poll(self, *rest: Any, **more: Any) -> int | None:
        if not hasattr(self, "_told"):
            found: int | None = super()._internal_poll(*rest, **more)  # type: ignore[misc]
            return found
        with self._waitpid_lock:  # type: ignore[attr-defined]
            if self.returncode is None:
                pid, status = self._try_wait(os.WNOHANG)
                if pid:
                    self._handle_exitstatus(status)  # type: ignore[attr-defined]
            return self.returncode


def _can_fork(environ: Mapping[str, str]) -> bool:
    return sys.platform == "linux" and all(map(_makes_no_difference, environ, environ.values()))


def _makes_no_difference(name: str, value: str) -> bool:
    """Say whether a process that runs already can be given this variable."""
    if name == "LANG" or name.startswith("LC_"):
        return value == "" or value.upper().endswith(("UTF-8", "UTF8"))
    usual = {
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": str(ROOT),
        "PYTHONSAFEPATH": "1",
        "PYTHONUNBUFFERED": "1",
        "PYTHONWARNINGS": "default",
    }
    return not name.startswith(READ_AT_START) or usual.get(name) == value


def run(
    command: list[str],
    *,
    input: Any = None,  # noqa: A002  # as in subprocess.run
    timeout: float | None = None,
    check: bool = False,
    capture_output: bool = False,
    **options: Any,
) -> subprocess.CompletedProcess[Any]:
    """Do what `subprocess.run` does."""
    if input is not None:
        options["stdin"] = subprocess.PIPE
    if capture_output:
        options |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with Forked(command, **options) as process:
        try:
            out, err = process.communicate(input, timeout=timeout)
        except BaseException:
            process.kill()
            raise
    done = subprocess.CompletedProcess(command, process.returncode, out, err)
    if check:
        done.check_returncode()
    return done
