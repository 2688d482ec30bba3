"""Opening a TCP connection within its time, whatever the name service and the network do.

Only modules of the standard library may be imported here: the link, which others use by itself,
stands on this too.
"""

import errno
import math
import os
import select
import socket
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

STAGGER_SECONDS = 0.25
"""How long an address is waited for before the next one is tried beside it (RFC 8305)."""
SLICE_SECONDS = 0.1
"""How often a wait looks whether its end has moved."""

Option = tuple[int, int, int | bytes]
_Address = Any  # as getaddrinfo gives it


def dial(
    host: str, port: int, left: Callable[[], float], options: Iterable[Option] = ()
) -> socket.socket:
    """Connect to the address of `host` that answers first.

    `left` gives the seconds that are left, and may change its mind meanwhile: looking the name up
    is inside them. An address that swallows packets holds up the next one by a quarter of a second.
    `options` are set on the socket before it connects. Raises OSError: gaierror where the name is
    unknown or nobody says what it is, TimeoutError when the time is over.
    """
    addresses = _lookup(host, port, left)
    poller, waiting = select.poll(), dict[int, socket.socket]()
    failure: OSError = TimeoutError("timed out")
    next_at = 0.0
    try:
        while addresses or waiting:
            if addresses and (not waiting or time.monotonic() >= next_at):
                next_at = time.monotonic() + STAGGER_SECONDS
                try:
                    sock = _begin(addresses.pop(0), options)
                except OSError as error:
                    failure = error
                    continue
                waiting[sock.fileno()] = sock
                poller.register(sock, select.POLLOUT)
            pause = min(left(), SLICE_SECONDS)
            if pause <= 0:
                raise TimeoutError("timed out")
            if addresses:
                pause = min(pause, max(next_at - time.monotonic(), 0.0))
            for fd, _ in poller.poll(math.ceil(pause * 1000)):
                poller.unregister(fd)
                sock = waiting.pop(fd)
                code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                if not code:
                    return sock
                sock.close()
                failure, next_at = OSError(code, os.strerror(code)), 0.0
        raise failure
    finally:
        for sock in waiting.values():
            sock.close()


def outlive_silence(sock: socket.socket) -> None:
    """Let TCP ask a silent peer whether it is there, and end the connection within a minute.

    Where a system lacks an option, it asks at its own pace.
    """
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, name):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _begin(address: _Address, options: Iterable[Option]) -> socket.socket:
    family, kind, protocol, _, place = address
    sock = socket.socket(family, kind, protocol)
    try:
        for option in options:
            sock.setsockopt(*option)
        sock.setblocking(False)
        code = sock.connect_ex(place)
        if code not in {0, errno.EINPROGRESS}:
            raise OSError(code, os.strerror(code))
    except OSError:
        sock.close()
        raise
    return sock


class _Lookup(threading.Thread):
    """One question to the name service, which nothing can hurry."""

    def __init__(self, host: str, port: int) -> None:
        super().__init__(name="lookup", daemon=True)
        self._place = host, port
        self.found: list[_Address] = []
        self.failure: OSError | None = None

    def run(self) -> None:
        try:
            self.found = socket.getaddrinfo(*self._place, type=socket.SOCK_STREAM)
        except OSError as error:
            self.failure = error
        except UnicodeError:
            self.failure = socket.gaierror(socket.EAI_NONAME, "not a valid host name")


_lock = threading.Lock()
_lookups: dict[tuple[str, int], _Lookup] = {}
"""Those under way: a name service that hangs costs one thread a name, however often it is asked."""


def _lookup(host: str, port: int, left: Callable[[], float]) -> list[_Address]:
    try:
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except (OSError, UnicodeError):
        pass  # a name
    with _lock:
        lookup = _lookups.get((host, port))
        if lookup is None or not lookup.is_alive():
            lookup = _lookups[host, port] = _Lookup(host, port)
            try:
                lookup.start()
            except RuntimeError as error:  # no thread can be started
                raise OSError(errno.EAGAIN, str(error)) from None
    while lookup.is_alive():
        pause = min(left(), SLICE_SECONDS)
        if pause <= 0:
            raise socket.gaierror(socket.EAI_AGAIN, "no DNS response")
        lookup.join(pause)
    with _lock:
        if _lookups.get((host, port)) is lookup:
            del _lookups[host, port]
    if lookup.failure is not None:
        raise lookup.failure
    return list(lookup.found)
