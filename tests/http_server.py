"""The HTTP server of the tests: sockets, TLS, threads, requests. What is answered, others say.

`tests.scripted_server` answers as a script says, `tests.fakekube` as a Kubernetes API server.
"""

from __future__ import annotations

import hashlib
import socket
import ssl
import struct
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import BinaryIO, NoReturn, Self

KEPT_BODY = 64 * 1024 * 1024


class Dropped(Exception):
    """The connection ends here."""


@dataclass
class Request:
    """A request: `head` and `body` as they came, `headers` by lower-case name.

    Of a body over 64 MiB only `length` and `digest` are kept. `whole`: it was read to its end.
    """

    method: str
    target: str
    headers: dict[str, str]
    head: bytes
    body: bytes = b""
    length: int = 0
    digest: str = ""
    whole: bool = False


class Connection:
    """A client's connection: its requests, and whatever a server may do to it."""

    def __init__(self, held: socket.socket, incoming: BinaryIO) -> None:
        self.socket, self.incoming = held, incoming

    def next_request(self) -> Request:
        """Read a head. Raises Dropped at the end, ValueError if it is not HTTP."""
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            line = self.incoming.readline()
            if not line:
                raise Dropped
            head += line
        first, *rest = head[:-4].decode("latin-1").split("\r\n")
        method, target, _ = first.split(" ")
        pairs = [line.split(":", 1) for line in rest]
        return Request(method, target, {name.lower(): text.strip() for name, text in pairs}, head)

    def read_body(self, request: Request, limit: int | None = None) -> None:
        """Read the body, or so many bytes of it, into the request."""
        sha256, kept = hashlib.sha256(), bytearray()
        wanted = int(request.headers.get("content-length", "0"))
        allowed = wanted if limit is None else min(limit, wanted)
        with suppress(OSError):
            while request.length < allowed:
                piece = self.incoming.read(min(65536, allowed - request.length))
                if not piece:
                    break
                request.length += len(piece)
                sha256.update(piece)
                if request.length <= KEPT_BODY:
                    kept += piece
        request.digest, request.body = sha256.hexdigest(), bytes(kept)
        request.whole = request.length == wanted

    def send(self, data: bytes, *, step: int = 0, every: float = 0.0) -> None:
        """Send all at once, or `step` bytes every so many seconds. Raises Dropped once it left."""
        for start in range(0, len(data), step or max(len(data), 1)):
            self.socket.sendall(data[start : start + (step or len(data))])
            if step and self.left(every):
                raise Dropped

    def left(self, seconds: float) -> bool:
        """Whether the client has gone, waiting so long for it. It must have nothing to say."""
        self.socket.settimeout(max(seconds, 0.001))
        try:
            return not self.socket.recv(1)
        except TimeoutError:
            return False
        finally:
            self.socket.settimeout(None)

    def wait_until_left(self) -> None:
        """Read on and discard it until the client has gone."""
        with suppress(OSError):
            while self.socket.recv(65536):
                pass

    def reset(self) -> NoReturn:
        """End it as a crashed host does."""
        linger = struct.pack("ii", 1, 0)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        raise Dropped


class HttpServer:
    """Listens on an address with a thread for each connection; a context manager.

    A subclass overrides `exchange`, for TLS `context` too, and calls `listen` once it is ready.
    Until then connections are refused. `close` ends every connection and thread.
    """

    def __init__(self, port: int = 0, address: str = "127.0.0.1") -> None:
        self.changed = threading.Condition()
        """Notified when anything below has changed."""
        self.connections = 0
        self.handshakes = 0
        self.handshake_errors: list[str] = []
        self.closing = threading.Event()
        self._guards: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._accepting: threading.Thread | None = None
        self._listener = socket.socket()
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listener.bind((address, port))  # who only binds, refuses
        self.port: int = self._listener.getsockname()[1]

    def exchange(self, connection: Connection, request: Request) -> None:
        """Read the request's body, and answer. Raises Dropped to end the connection."""
        raise NotImplementedError

    def context(self) -> ssl.SSLContext | None:
        """Return the context for a new connection, None for one without TLS.

        Raises Dropped to refuse it.
        """
        return None

    @property
    def open(self) -> int:
        """How many connections are open."""
        return len(self._guards)

    def listen(self) -> None:
        """Accept connections from now on."""
        self._listener.listen(128)
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def drop_connections(self) -> None:
        """End every open connection, whatever it is doing."""
        with self.changed:
            for guard in self._guards:
                with suppress(OSError):
                    guard.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Refuse connections, end those that are open, and wait for the threads."""
        self.closing.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        if self._accepting is not None:
            self._accepting.join()
        self._listener.close()
        self.drop_connections()
        for thread in self._threads:
            thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _accept(self) -> None:
        while True:
            try:
                raw, _ = self._listener.accept()
            except OSError:
                return
            guard = raw.dup()
            with self.changed:
                self.connections += 1
                self._guards.add(guard)
                self.changed.notify_all()
            thread = threading.Thread(target=self._serve, args=(raw, guard), daemon=True)
            self._threads = [*filter(threading.Thread.is_alive, self._threads), thread]
            thread.start()

    def _serve(self, raw: socket.socket, guard: socket.socket) -> None:
        held = raw
        try:
            held.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            context = self.context()
            if context is not None:
                held = context.wrap_socket(raw, server_side=True, do_handshake_on_connect=False)
                self._shake_hands(held)
            with held.makefile("rb") as incoming:
                connection, ends = Connection(held, incoming), False
                while not ends:
                    request = connection.next_request()
                    ends = request.headers.get("connection", "").lower() == "close"
                    self.exchange(connection, request)
        except (OSError, ValueError, Dropped):
            pass  # the client hung up, or we are closing
        finally:
            held.close()
            with self.changed:
                self._guards.discard(guard)
                guard.close()
                self.changed.notify_all()

    def _shake_hands(self, secure: ssl.SSLSocket) -> None:
        try:
            secure.do_handshake()
        except OSError as error:
            with self.changed:
                self.handshake_errors.append(str(error))
            raise Dropped from error
        with self.changed:
            self.handshakes += 1
            self.changed.notify_all()


def head(status: int, headers: Mapping[str, str]) -> bytes:
    """The head of an answer as bytes."""
    phrase = HTTPStatus(status).phrase if status in set(HTTPStatus) else "Status"
    lines = [f"HTTP/1.1 {status} {phrase}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")
