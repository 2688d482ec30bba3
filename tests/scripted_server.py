"""An HTTP server that does what a script says: answers, or everything that can go wrong instead."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from tests.http_server import Connection, Dropped, HttpServer, Request, head

HANG_SECONDS = 60.0


@dataclass(frozen=True)
class Say:
    """Answer; a body that is not bytes is sent as JSON.

    `length` is announced instead of the body's own, and then the connection ends.
    `early`: before the body is read; then input is discarded for `discard` seconds at most, and the
    connection closed. `pace`: seconds between the bytes of the answer. `cut`: only so many bytes
    of the answer, then the connection ends. `close`: the answer says so.
    """

    status: int = 200
    body: Any = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    length: int | None = None
    early: bool = False
    discard: float = 5.0
    pace: float = 0.0
    cut: int | None = None
    close: bool = False

    def encode(self) -> bytes:
        """The answer as bytes, as far as it is sent."""
        data = self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()
        length = len(data) if self.length is None else self.length
        headers = {"Content-Length": str(length), **self.headers}
        if self.close or self.early:
            headers["Connection"] = "close"
        return (head(self.status, headers) + data)[: self.cut]

    @property
    def is_last(self) -> bool:
        """Whether the connection ends with it."""
        return self.close or self.early or self.cut is not None or self.length is not None


@dataclass(frozen=True)
class Silence:
    """Read the request, or only so many bytes of its body, then neither read nor answer.

    Or answer `early`, before that.
    """

    after: int | None = None
    early: Say | None = None


@dataclass(frozen=True)
class Cut:
    """End the connection after so many bytes of the body; with `reset` as a crashed host does."""

    after: int = 0
    reset: bool = False


@dataclass(frozen=True)
class Hold:
    """Read the request, and answer only once `until` is set."""

    until: threading.Event
    then: Say = field(default_factory=Say)


@dataclass(frozen=True)
class HangUp:
    """Answer, then close the connection though the answer did not say so."""

    say: Say = field(default_factory=Say)


Act = Say | Silence | Cut | Hold | HangUp


class ScriptedServer(HttpServer):
    """A subclass says which act is next. `requests` are recorded as they came, before the act."""

    def __init__(self, address: str = "127.0.0.1") -> None:
        super().__init__(address=address)
        self.requests: list[Request] = []

    def next_act(self, request: Request) -> Act:
        """Return the act for this request; its body is not yet read."""
        raise NotImplementedError

    def heard(self, count: int, part: str = "", timeout: float = HANG_SECONDS) -> list[Request]:
        """Wait until so many requests (with this part of the path) were read; return all so far."""

        def matching() -> list[Request]:
            return [request for request in self.requests if f"/{part}" in request.target]

        with self.changed:
            assert self.changed.wait_for(lambda: len(matching()) >= count, timeout), matching()
            return matching()

    def exchange(self, connection: Connection, request: Request) -> None:
        """Read as far as the act does, and do it."""
        with self.changed:
            act = self.next_act(request)
        if not (isinstance(act, Say) and act.early):
            connection.read_body(request, act.after if isinstance(act, Silence | Cut) else None)
        with self.changed:
            self.requests.append(request)
            self.changed.notify_all()
        match act:
            case Silence():
                if act.early:
                    connection.send(act.early.encode())
                self.closing.wait(HANG_SECONDS)
                raise Dropped
            case Cut():
                if act.reset:
                    connection.reset()
                raise Dropped
            case Hold():
                act.until.wait(HANG_SECONDS)
                _answer(connection, act.then)
            case HangUp():
                _answer(connection, act.say)
                raise Dropped
            case Say():
                _answer(connection, act)


def _answer(connection: Connection, say: Say) -> None:
    connection.send(say.encode(), step=1 if say.pace else 0, every=say.pace)
    if say.early:
        connection.socket.settimeout(max(say.discard, 0.001))
        end = time.monotonic() + say.discard
        with suppress(OSError):
            while time.monotonic() < end and connection.incoming.read1(65536):  # type: ignore[attr-defined]
                pass
    if say.is_last:
        raise Dropped
