"""A proxy before the API server, for the Pods: it answers, delays and loses as it is told.

It serves with the API server's own certificate and passes streams on as they come. What a Pod asked
for is known by the Pod's token, refused or not.
"""

from __future__ import annotations

import http.client
import json
import random
import socket
import ssl
import threading
import time
from base64 import urlsafe_b64decode
from collections import deque
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tests.http_server import Connection, Dropped, HttpServer, Request, head

RETRY_AFTER = 3
KEPT = 50_000
NOT_PASSED = frozenset({"connection", "keep-alive", "transfer-encoding", "content-length", "host"})
REASONS = {403: "Forbidden", 409: "Conflict", 429: "TooManyRequests", 500: "InternalError"}


@dataclass(frozen=True)
class Trouble:
    """What becomes of requests with one of `methods` and with `part` in their path.

    A number: that status instead of the server's answer. `hang`: passed on after up to 12 s,
    whether somebody still waits or not. `cut`: no answer, half of them after the server has done
    it. `slow`: up to a second for each piece. `silent`: nothing at all, on open streams too.
    """

    what: int | Literal["hang", "cut", "slow", "silent"]
    methods: tuple[str, ...] = ("GET", "PATCH", "POST", "PUT", "DELETE")
    part: str = ""


@dataclass(frozen=True)
class Asked:
    """A request of a Pod; `status` is 0 where it got no answer from here."""

    at: float
    client: str
    method: str
    path: str
    status: int


class Proxy(HttpServer):
    """Passes requests on to the API server at `upstream` (on this machine), from all addresses."""

    def __init__(self, upstream: int, pki: Path, seed: str) -> None:
        super().__init__(address="0.0.0.0")
        self._trouble: Trouble | None = None
        self._over = threading.Event()
        self._over.set()
        self._upstream, self._rng = upstream, random.Random(f"{seed}/proxy")
        self._trust = ssl.create_default_context(cafile=str(pki / "ca.crt"))
        self._identity = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._identity.load_cert_chain(pki / "apiserver.crt", pki / "apiserver.key")
        self._asked: deque[Asked] = deque(maxlen=KEPT)
        self._passing: set[socket.socket] = set()

    @contextmanager
    def during(self, trouble: Trouble) -> Iterator[None]:
        """Have this trouble meanwhile."""
        self._over.clear()
        self._trouble = trouble
        if trouble.what == "cut":
            self.drop_connections()
        try:
            yield
        finally:
            self._trouble = None
            self._over.set()

    def asked(self, since: float) -> list[Asked]:
        """What was asked for since then (Unix seconds), oldest first."""
        return [each for each in self._asked.copy() if each.at >= since]

    def context(self) -> ssl.SSLContext:
        """As the API server."""
        return self._identity

    def close(self) -> None:
        """End what is passed on, too."""
        self._over.set()
        for each in self._passing.copy():
            with suppress(OSError):
                # Not the method of SSLSocket: another thread reads from it.
                socket.socket.shutdown(each, socket.SHUT_RDWR)
        super().close()

    def exchange(self, connection: Connection, request: Request) -> None:
        """Pass it on, or do what is to be done to it now."""
        connection.read_body(request)
        at, status = time.time(), 0
        who = _pod(request) or str(connection.socket.getpeername()[0])
        what = self._trouble_of(request)
        try:
            if isinstance(what, int):
                status = what
                connection.send(_refusal(status))
                return
            if what == "silent":
                self._over.wait()
                raise Dropped
            if what == "cut" and self.roll() < 0.5:
                raise Dropped
            # Of two writes that hang the second often overtakes the first.
            time.sleep(self.roll(12.0 if self.roll() < 0.5 else 0.1) if what == "hang" else 0.0)
            time.sleep(self.roll() if what == "slow" else 0.0)
            status = self._pass_on(connection, request, answered=what != "cut")
        finally:
            self._asked.append(Asked(at, who, request.method, request.target, status))

    def _pass_on(self, connection: Connection, request: Request, *, answered: bool) -> int:
        """Return the status of the server's answer."""
        server = http.client.HTTPSConnection("127.0.0.1", self._upstream, context=self._trust)
        with closing(server), self._kept(server):
            fields = {k: v for k, v in request.headers.items() if k not in NOT_PASSED}
            try:
                server.request(request.method, request.target, request.body or None, fields)
                answer = server.getresponse()
                if not answered:
                    raise Dropped
                fields = {k: v for k, v in answer.getheaders() if k.lower() not in NOT_PASSED}
                if chunked := answer.length is None:
                    fields["Transfer-Encoding"] = "chunked"
                else:
                    fields["Content-Length"] = str(answer.length)
                connection.send(head(answer.status, fields))
                while piece := answer.read1(65536):
                    what = self._trouble_of(request)
                    if what == "slow":
                        time.sleep(self.roll())
                    elif what == "silent":
                        self._over.wait()
                    connection.send(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)
            except http.client.HTTPException:
                raise Dropped from None
            if chunked:
                connection.send(b"0\r\n\r\n")
            return answer.status

    @contextmanager
    def _kept(self, server: http.client.HTTPSConnection) -> Iterator[None]:
        server.connect()
        kept = server.sock
        self._passing.add(kept)
        try:
            yield
        finally:
            self._passing.discard(kept)

    def _trouble_of(self, request: Request) -> int | str:
        """What becomes of a request now; nothing where it is passed on."""
        trouble = self._trouble
        if trouble is None or request.method not in trouble.methods:
            return ""
        return trouble.what if trouble.part in request.target else ""

    def roll(self, longest: float = 1.0) -> float:
        return self._rng.uniform(0.0, longest)


def _pod(request: Request) -> str:
    """The Pod that the token was made for, if it names one."""
    with suppress(ValueError, KeyError, IndexError):
        said = request.headers.get("authorization", "").split(".")[1]
        claims = json.loads(urlsafe_b64decode(said + "=" * (-len(said) % 4)))["kubernetes.io"]
        return f"{claims['namespace']}/{claims['pod']['name']}"
    return ""


def _refusal(status: int) -> bytes:
    said = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": status}
    body = json.dumps(said | {"reason": REASONS[status], "message": "the soak's proxy"}).encode()
    fields = {"Content-Type": "application/json", "Content-Length": str(len(body))}
    if status == 429:
        fields["Retry-After"] = str(RETRY_AFTER)
    return head(status, fields) + body
