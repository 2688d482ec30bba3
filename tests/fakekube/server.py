"""Sockets, TLS and HTTP of the fake: accept, read requests, answer them, misbehave on script."""

import json
import socket
import ssl
import struct
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import Any, Protocol
from urllib.parse import parse_qsl, urlsplit

from tests.fakekube.answers import ApiError, NotImitated, status
from tests.fakekube.api import answer, authorize, encode, target_of
from tests.fakekube.faults import (
    Answer,
    CloseMidStream,
    ErrorEvent,
    Fault,
    Hang,
    Line,
    Reset,
    Silence,
    Slow,
)
from tests.fakekube.journal import Entry
from tests.fakekube.rbac import Tokens, unknown_path
from tests.fakekube.store import Store
from tests.fakekube.stream import Event, Stream


class Backend(Protocol):
    """What the server asks of the fake."""

    store: Store
    tokens: Tokens
    bookmark_every: float

    def begin(self, entry: Entry) -> Fault | None:
        """Note a request; return the fault that strikes it."""

    def noted(self) -> None:
        """Tell waiters that an entry has changed."""

    def handshake(self) -> ssl.SSLContext | None:
        """Return the context for a new connection; None refuses it."""


class Dropped(Exception):
    """The connection ends here."""


class Server:
    """Listens on 127.0.0.1; `stop` ends every connection and returns when no thread is left."""

    def __init__(self, backend: Backend, port: int) -> None:
        self._backend = backend
        self._listener = socket.create_server(("127.0.0.1", port))
        self.port: int = self._listener.getsockname()[1]
        self._lock = threading.Lock()
        self._guards: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._accepting = threading.Thread(target=self._accept, name="fakekube-accept")
        self._stopped = False
        self._accepting.start()

    def stop(self) -> None:
        """Go away: refuse connections and end those that are open."""
        with self._lock:
            self._stopped = True
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._accepting.join()
        self._listener.close()
        self.drop_connections()
        for thread in self._threads:
            thread.join()

    def drop_connections(self) -> None:
        """End every open connection, whatever it is doing."""
        with self._lock:
            for guard in self._guards:
                with suppress(OSError):
                    guard.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            try:
                raw, _ = self._listener.accept()
            except OSError:
                return
            guard = raw.dup()
            serve = threading.Thread(target=self._connection, args=(raw, guard), name="fakekube")
            with self._lock:
                if self._stopped:
                    guard.close()
                    raw.close()
                    return
                self._guards.add(guard)
                self._threads = [thread for thread in self._threads if thread.is_alive()]
                self._threads.append(serve)
                serve.start()

    def _connection(self, raw: socket.socket, guard: socket.socket) -> None:
        conn: socket.socket = raw
        try:
            context = self._backend.handshake()
            if context is not None:
                conn = context.wrap_socket(raw, server_side=True)
                _Handler(conn, ("127.0.0.1", 0), self._backend)  # type: ignore[arg-type]
        except (OSError, ValueError, Dropped):
            pass
        finally:
            with self._lock:
                self._guards.discard(guard)
            guard.close()
            conn.close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Backend  # type: ignore[assignment]

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def _serve(self) -> None:
        parts = urlsplit(self.path)
        entry = Entry(
            method=self.command,
            path=parts.path,
            query=dict(parse_qsl(parts.query, keep_blank_values=True)),
            headers={name.lower(): value for name, value in self.headers.items()},
            body=self.rfile.read(int(self.headers.get("Content-Length") or 0)),
            time=time.monotonic(),
        )
        fault = self.server.begin(entry)
        try:
            self._answer(entry, fault)
        finally:
            entry.ended = time.monotonic()
            self.server.noted()

    do_GET = do_PATCH = do_PUT = do_POST = do_DELETE = _serve

    def _answer(self, entry: Entry, fault: Fault | None) -> None:
        if isinstance(fault, Answer) and not fault.apply:
            self._send(entry, fault.status, fault.payload(), fault.headers)
            return
        if isinstance(fault, Reset | Hang) and not fault.apply:
            self._misbehave(fault)
        code, found, headers = self._right_answer(entry)
        if isinstance(fault, Reset | Hang):
            self._misbehave(fault)
        if isinstance(found, Stream):
            self._watch(entry, found, fault)
        elif isinstance(fault, Answer):
            self._send(entry, fault.status, fault.payload(), fault.headers)
        else:
            self._send(entry, code, found, headers, fault if isinstance(fault, Slow) else None)

    def _right_answer(self, entry: Entry) -> tuple[int, Any, dict[str, str]]:
        backend = self.server
        target = target_of(entry.path)
        try:
            if target is None:
                role = backend.tokens.role_of(entry.headers.get("authorization"))
                return 403, unknown_path(role, entry.path).body, {}
            authorize(entry, target, backend.tokens)
            if entry.is_watch and entry.method == "GET" and target.name is None:
                return 200, Stream(entry, target, backend.store, backend.bookmark_every), {}
            code, found, warnings = answer(entry, target, backend.store)
        except ApiError as error:
            return error.code, error.body, {}
        except NotImitated as error:
            return 501, status(501, "", f"the fake does not imitate {error}"), {}
        return code, found, _warning(warnings)

    def _misbehave(self, fault: Reset | Hang) -> None:
        if isinstance(fault, Hang):
            self._wait_for_the_peer_to_leave()
        linger = struct.pack("ii", 1, 0)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        raise Dropped

    def _wait_for_the_peer_to_leave(self) -> None:
        with suppress(OSError):
            while self.connection.recv(4096):
                pass

    def _send(
        self,
        entry: Entry,
        code: int,
        found: dict[str, Any] | bytes,
        headers: Mapping[str, str],
        slow: Slow | None = None,
    ) -> None:
        data = found if isinstance(found, bytes) else encode(found)
        lines = {"Content-Type": "application/json", "Content-Length": str(len(data))}
        head = _head(code, lines | dict(headers))
        entry.status = code
        with suppress(ValueError, RecursionError):
            entry.answer = json.loads(data)
        if slow is None:
            self.wfile.write(head + data)
            return
        pieces = head + data if slow.headers else data
        self.wfile.write(b"" if slow.headers else head)
        for start in range(0, len(pieces), slow.step):
            self.wfile.write(pieces[start : start + slow.step])
            if self._left(slow.every):
                raise Dropped

    def _watch(self, entry: Entry, stream: Stream, fault: Fault | None) -> None:
        headers = {"Content-Type": "application/json", "Transfer-Encoding": "chunked"}
        self.wfile.write(_head(200, headers))
        entry.status = 200
        self.server.noted()
        for event in self._with_fault(stream, entry, fault):
            if event is None:
                if self._left(0):
                    raise Dropped
            elif isinstance(event, bytes):
                self._chunk(event)
            else:
                self._chunk(encode(event))
                entry.events.append(event)
                self.server.noted()
        self.wfile.write(b"0\r\n\r\n")

    def _with_fault(
        self, stream: Stream, entry: Entry, fault: Fault | None
    ) -> Iterator[Event | bytes | None]:
        """Yield the events of the stream until the fault strikes."""
        pending = fault if isinstance(fault, Silence | ErrorEvent | CloseMidStream | Line) else None
        for event in stream:
            if pending is not None and len(entry.events) >= pending.after:
                match pending:
                    case Silence():
                        self._wait_for_the_peer_to_leave()
                        raise Dropped
                    case CloseMidStream():
                        raise Dropped
                    case ErrorEvent(code, message):
                        yield {"type": "ERROR", "object": status(code, "Expired", message)}
                        return
                    case Line(data):
                        yield data
                        pending = None
            yield event

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def _left(self, seconds: float) -> bool:
        """Whether the peer has gone, waiting so long for it."""
        self.connection.settimeout(max(seconds, 0.001))
        try:
            return not self.connection.recv(1)
        except TimeoutError:
            return False
        finally:
            self.connection.settimeout(None)


def _warning(warnings: list[str]) -> dict[str, str]:
    return {"Warning": f'299 - "{", ".join(warnings)}"'} if warnings else {}


def _head(code: int, headers: Mapping[str, str]) -> bytes:
    phrase = HTTPStatus(code).phrase if code in set(HTTPStatus) else "?"
    lines = [f"HTTP/1.1 {code} {phrase}", *(f"{name}: {value}" for name, value in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
