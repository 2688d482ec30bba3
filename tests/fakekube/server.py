"""The HTTP of the fake: note requests, answer them, misbehave on script."""

import json
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from email.utils import format_datetime
from typing import Any, NoReturn, Protocol
from urllib.parse import parse_qsl, urlsplit

from tests.fakekube import discovery
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
from tests.fakekube.forward import Forward
from tests.fakekube.journal import Entry
from tests.fakekube.rbac import Tokens, unknown_path
from tests.fakekube.store import Store
from tests.fakekube.stream import Event, Stream
from tests.http_server import Connection, Dropped, HttpServer, Request, head

VERSION = "v1.34.4"


class Backend(Protocol):
    """What the server asks of the fake."""

    store: Store
    tokens: Tokens
    bookmark_every: float
    offered: discovery.Offered
    forwards: Mapping[tuple[str, str | None, int], int]
    clock: Callable[[], datetime]

    def begin(self, entry: Entry) -> Fault | None:
        """Note a request; return the fault that strikes it."""

    def noted(self) -> None:
        """Tell waiters that an entry has changed."""

    def handshake(self) -> ssl.SSLContext:
        """Return the context for a new connection. Raises Dropped to refuse it."""


class Server(HttpServer):
    """The fake's server; see HttpServer."""

    def __init__(self, backend: Backend, port: int) -> None:
        super().__init__(port)
        self._backend = backend
        self.listen()

    def context(self) -> ssl.SSLContext:
        """Return what the fake shows now, unless it refuses."""
        return self._backend.handshake()

    def exchange(self, connection: Connection, request: Request) -> None:
        """Note the request, and answer it or fail."""
        connection.read_body(request)
        parts = urlsplit(request.target)
        entry = Entry(
            method=request.method,
            path=parts.path,
            query=dict(parse_qsl(parts.query, keep_blank_values=True)),
            headers=request.headers,
            body=request.body,
            time=time.monotonic(),
        )
        fault = self._backend.begin(entry)
        try:
            _Exchange(self._backend, connection).answer(entry, fault)
        finally:
            entry.ended = time.monotonic()
            self._backend.noted()


class _Exchange:
    """One request's answer."""

    def __init__(self, backend: Backend, connection: Connection) -> None:
        self._backend, self._connection = backend, connection

    def answer(self, entry: Entry, fault: Fault | None) -> None:
        if isinstance(fault, Answer) and not fault.apply:
            self._send(entry, fault.status, fault.payload(), fault.headers)
            return
        if isinstance(fault, Reset | Hang) and not fault.apply:
            self._misbehave(fault)
        code, found, headers = self._right_answer(entry)
        if isinstance(fault, Reset | Hang):
            self._misbehave(fault)
        if isinstance(found, Forward):
            entry.status = code
            self._backend.noted()
            found.serve(self._connection)
        elif isinstance(found, Stream):
            self._watch(entry, found, fault)
        elif isinstance(fault, Answer):
            self._send(entry, fault.status, fault.payload(), fault.headers)
        else:
            self._send(entry, code, found, headers, fault if isinstance(fault, Slow) else None)

    def _right_answer(self, entry: Entry) -> tuple[int, Any, dict[str, str]]:
        backend = self._backend
        target = target_of(entry.path)
        try:
            if entry.path == "/version":
                return 200, {"major": "1", "minor": "34", "gitVersion": VERSION}, {}
            if (document := discovery.said(entry, backend.offered)) is not None:
                return 200, document, {}
            others = discovery.read(entry, backend.offered, backend.store, backend.tokens)
            if others is not None:
                return 200, others, {}
            if target is None:
                role = backend.tokens.role_of(entry.headers.get("authorization"))
                return 403, unknown_path(role, entry.path).body, {}
            authorize(entry, target, backend.tokens)
            if entry.is_watch and entry.method == "GET" and target.name is None:
                return 200, Stream(entry, target, backend.store, backend.bookmark_every), {}
            if target.subresource == "portforward" and entry.method == "GET":
                backend.store.get("Pod", target.namespace, target.name or "")
                port = int(entry.query["ports"])
                local = backend.forwards.get((target.namespace, target.name, port))
                return 101, Forward(entry.headers["sec-websocket-key"], port, local), {}
            code, found, warnings = answer(entry, target, backend.store, backend.tokens)
        except ApiError as error:
            return error.code, error.body, {}
        except NotImitated as error:
            return 501, status(501, "", f"the fake does not imitate {error}"), {}
        return code, found, _warning(warnings)

    def _misbehave(self, fault: Reset | Hang) -> NoReturn:
        if isinstance(fault, Hang):
            self._connection.wait_until_left()
        self._connection.reset()

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
        lines["Date"] = format_datetime(self._backend.clock(), usegmt=True)
        first = head(code, lines | dict(headers))
        entry.status = code
        with suppress(ValueError, RecursionError):
            entry.answer = json.loads(data)
        if slow is None:
            self._connection.send(first + data)
            return
        if not slow.headers:
            self._connection.send(first)
        slowly = first + data if slow.headers else data
        self._connection.send(slowly, step=slow.step, every=slow.every)

    def _watch(self, entry: Entry, stream: Stream, fault: Fault | None) -> None:
        headers = {"Content-Type": "application/json", "Transfer-Encoding": "chunked"}
        self._connection.send(head(200, headers))
        entry.status = 200
        self._backend.noted()
        for event in self._with_fault(stream, entry, fault):
            if event is None:
                if self._connection.left(0):
                    raise Dropped
            elif isinstance(event, bytes):
                self._chunk(event)
            else:
                self._chunk(encode(event))
                entry.events.append(event)
                self._backend.noted()
        self._connection.send(b"0\r\n\r\n")

    def _with_fault(
        self, stream: Stream, entry: Entry, fault: Fault | None
    ) -> Iterator[Event | bytes | None]:
        """Yield the events of the stream until the fault strikes."""
        pending = fault if isinstance(fault, Silence | ErrorEvent | CloseMidStream | Line) else None
        for event in stream:
            if pending is not None and len(entry.events) >= pending.after:
                match pending:
                    case Silence():
                        self._connection.wait_until_left()
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
        self._connection.send(f"{len(data):x}\r\n".encode() + data + b"\r\n")


def _warning(warnings: list[str]) -> dict[str, str]:
    return {"Warning": f'299 - "{", ".join(warnings)}"'} if warnings else {}
