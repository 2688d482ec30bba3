"""Runs a program of cmd/ as a Pod would: with an API server, a token and a CA.

    in_pod.py [--modules] PROGRAM ARGUMENTS...

The address of the API server is in SERVER. CA_FILE and TOKEN_FILE are what the program finds where
a Pod has them; only root could put them there. SIGUSR1 closes the sockets that listen on the port
in the file CLOSE_PORT, as nothing in the program would. With `--modules` the names of all loaded
modules go to stderr at the end.
"""

import builtins
import io
import os
import runpy
import signal
import socket
import ssl
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

MOUNTED = "/var/run/secrets/kubernetes.io/serviceaccount"


def with_files(mounted: dict[str, str]) -> None:
    """Let whoever opens one of these paths have another file."""

    def redirected(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            return function(*map(found, args), **{name: found(named[name]) for name in named})

        return call

    def found(value: Any) -> Any:
        is_path = isinstance(value, str | os.PathLike)
        return mounted.get(os.fspath(value), value) if is_path else value

    # The product opens them with these. Others stay as they are: `os` knows its functions by name.
    builtins.open = io.open = redirected(open)
    os.path.isfile, os.path.exists = redirected(os.path.isfile), redirected(os.path.exists)
    verify = redirected(ssl.SSLContext.load_verify_locations)
    ssl.SSLContext.load_verify_locations = verify  # type: ignore[method-assign]


def close_listeners(*_: object) -> None:
    """Close descriptors behind the back of whoever owns them."""
    with open(os.environ["CLOSE_PORT"], encoding="ascii") as file:
        port = int(file.read())
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            found = socket.socket(fileno=os.dup(int(name)))
            try:
                listens = found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
                if listens and found.getsockname()[1] == port:
                    os.close(int(name))
            finally:
                found.close()


if "SERVER" in os.environ:
    server = urlsplit(os.environ.pop("SERVER"))
    os.environ["KUBERNETES_SERVICE_HOST"] = server.hostname or ""
    os.environ["KUBERNETES_SERVICE_PORT"] = str(server.port)
    names = {"ca.crt": "CA_FILE", "token": "TOKEN_FILE"}
    with_files({f"{MOUNTED}/{file}": os.environ.pop(name) for file, name in names.items()})
if "CLOSE_PORT" in os.environ:
    signal.signal(signal.SIGUSR1, close_listeners)
show_modules = sys.argv[1] == "--modules"
sys.argv = sys.argv[1 + show_modules :]
try:
    runpy.run_path(sys.argv[0], run_name="__main__")
finally:
    if show_modules:
        print(*sorted(sys.modules), sep="\n", file=sys.stderr)
