"""The process behind `tests.forked`: forks for each order that it hears on a socket.

An order is a JSON object with four descriptors: the new process's three, and a pipe for its wait
status. When the socket is closed everything that was started is killed.
"""

import atexit
import contextlib
import faulthandler
import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import struct
import sys
import tempfile
import threading
import time
import tomllib
import warnings
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

running: dict[int, int] = {}
"""The pipes by process id."""


def import_all() -> None:
    """Import all packages that are shipped, whatever of them a program would use."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    for pattern in project["tool"]["setuptools"]["packages"]["find"]["include"]:
        package = importlib.import_module(pattern.rstrip("*"))
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)


def become(order: dict[str, Any], descriptors: list[int]) -> None:
    """Be what a new interpreter would be just before it runs the file."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if order["session"]:
        os.setsid()
    for number, descriptor in enumerate(descriptors[:3]):
        os.dup2(descriptor, number)
    os.closerange(3, max(int(name) for name in os.listdir("/proc/self/fd")) + 1)
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["environ"])
    time.tzset()
    tempfile.tempdir = None
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        errors = "surrogateescape" if number < 2 else "backslashreplace"
        stream = open(  # noqa: SIM115
            number,
            "w" if number else "r",
            encoding="utf-8",
            errors=errors,
            # Standard error is by the line wherever it goes.
            buffering=1 if number == 2 else -1,
            closefd=False,
        )
        if number and order["environ"].get("PYTHONUNBUFFERED"):
            stream.reconfigure(write_through=True)  # type: ignore[union-attr]
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    sys.argv = order["command"]
    if order["environ"].get("PYTHONWARNINGS"):
        warnings.simplefilter("default")
    # Whoever runs the tests may ignore them, as `nohup` does.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    faulthandler.enable(sys.stderr)  # for SIGABRT of a test whose process hangs


def reap() -> None:
    """Tell what has ended."""
    while running:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        pipe = running.pop(pid)
        with contextlib.suppress(BrokenPipeError):
            os.write(pipe, struct.pack("i", status))
        os.close(pipe)


def serve(orders: socket.socket) -> list[str] | None:
    """Fork for each order. Returns the command in the new process, and nothing at the end."""
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    # Ctrl-C is for the tests.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        ready, _, _ = select.select([orders, woken], [], [])
        if woken in ready:
            os.read(woken, 4096)
            reap()
        if orders not in ready:
            continue
        data, descriptors, _, _ = socket.recv_fds(orders, 2**20, 4)
        if not data:
            return None
        order = json.loads(data)
        pid = os.fork()
        if pid == 0:
            become(order, descriptors)
            return sys.argv
        running[pid] = descriptors[3]
        for descriptor in descriptors[:3]:
            os.close(descriptor)
        orders.send(str(pid).encode())


def run(path: str) -> None:
    """Run the file, and end as the interpreter does; only its memory is not taken apart.

    That would copy every page that is shared with the other processes.
    """
    try:
        runpy.run_path(path, run_name="__main__")
        code: object = None
    except SystemExit as end:
        code = end.code
    if not isinstance(code, int | None):
        print(code, file=sys.stderr)
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    gc.collect()  # shows what nobody has closed
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        code = code or 120
    os._exit((code or 0) & 0xFF)


import_all()
gc.collect()
gc.freeze()
with socket.socket(fileno=int(sys.argv[1])) as control:
    command = serve(control)
    if command:
        control.detach()
if command:
    run(command[0])
for process in running:
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)
