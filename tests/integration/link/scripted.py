"""An aggregator that does what a script says: a TLS server on threads, for tests of workers.

Each kind of request (`results`, `progress`, `health`) has its own list of acts; the last one is
repeated. Requests are recorded as they came.
"""

import hashlib
import os
import socket
import ssl
import struct
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import BinaryIO, Self

from reporter.link.config import WorkerConfig
from tests.integration.link.certs import Authority, Identities, Pair, identities

FEATURES = "heartbeat, outcome, digest, progress-id"
HANG_SECONDS = 60.0
KEPT_BODY = 64 * 1024 * 1024


@dataclass(frozen=True)
class Say:
    """Answer.

    `early`: before the body is read; then input is discarded for `discard` seconds at most, and the
    connection closed. `pace`: seconds between the bytes of the answer. `cut`: only so many bytes
    of the answer, then the connection ends. `close`: the answer says so.
    """

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    early: bool = False
    discard: float = 5.0
    pace: float = 0.0
    cut: int | None = None
    close: bool = False

    def encode(self) -> bytes:
        """The answer as bytes."""
        headers = {"Content-Length": str(len(self.body)), **self.headers}
        if self.close or self.early:
            headers["Connection"] = "close"
        lines = [f"HTTP/1.1 {self.status} Status"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        return "\r\n".join([*lines, "", ""]).encode("latin-1") + self.body


@dataclass(frozen=True)
class Silence:
    """Read the request, or only so many bytes of its body, then neither read nor answer."""

    after: int | None = None


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
BEAT = Say(
    body=b'{"interval_seconds":15,"status":"running"}',
    headers={"Aggregator-Features": FEATURES, "Cache-Control": "no-store"},
)


@dataclass
class Heard:
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


class Scripted:
    """The server, as a context manager. Answers 200 to everything without a script.

    With `listening=False` connections are refused until `listen`. `tickets` are TLS 1.3 session
    tickets, which our aggregator does not send and others do.
    """

    def __init__(
        self,
        *,
        results: Sequence[Act] = (Say(),),
        progress: Sequence[Act] = (Say(),),
        health: Sequence[Act] = (BEAT,),
        server: Pair | None = None,
        client_ca: Authority | None = None,
        listening: bool = True,
        tickets: int = 0,
        maximum: ssl.TLSVersion = ssl.TLSVersion.MAXIMUM_SUPPORTED,
    ) -> None:
        self._scripts = {
            "results": list(results),
            "progress": list(progress),
            "health": list(health),
        }
        self._client_ca = client_ca or identities().ca
        self._tickets, self._maximum = tickets, maximum
        self.connections = 0
        self.handshakes = 0
        self.handshake_errors: list[str] = []
        self.requests: list[Heard] = []
        self._changed = threading.Condition()
        self._closing = threading.Event()
        self._open: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self.present(server or identities().server)
        self._listener = socket.socket()
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listener.bind(("127.0.0.1", 0))  # who only binds, refuses
        self.port = self._listener.getsockname()[1]
        if listening:
            self.listen()

    @property
    def url(self) -> str:
        """Its address by IP."""
        return f"https://127.0.0.1:{self.port}"

    def config(self, who: Identities | None = None, **changes: object) -> WorkerConfig:
        """Settings of a worker of this aggregator, for plugin `e2e`."""
        who = who or identities()
        given: dict[str, object] = {
            "aggregator_url": self.url,
            "plugin": "e2e",
            "ca_cert": who.ca.pem,
            "client_cert": who.client.certificate,
            "client_key": who.client.sec1,
        }
        return WorkerConfig(**{**given, **changes})  # type: ignore[arg-type]

    def environment(self, who: Identities | None = None) -> dict[str, str]:
        """The same as `config`, as a worker's environment."""
        who = who or identities()
        return {
            "AGGREGATOR_URL": self.url,
            "RESULT_TYPE": "e2e",
            "CA_CERT": who.ca.pem,
            "CLIENT_CERT": who.client.certificate,
            "CLIENT_KEY": who.client.sec1,
        }

    def present(self, server: Pair) -> None:
        """Show this certificate from the next connection on."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.maximum_version = self._maximum
        context.num_tickets = self._tickets
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=self._client_ca.pem)
        if self._client_ca.sonobuoy:
            # OpenSSL cannot check such a client either; who it is does not matter here.
            context.verify_mode = ssl.CERT_NONE
        _load(context, server)
        self._context = context

    def script(self, kind: str, *acts: Act) -> None:
        """Go on with these acts for `results`, `progress` or `health`."""
        with self._changed:
            self._scripts[kind] = list(acts)

    def listen(self) -> None:
        """Accept connections from now on."""
        self._listener.listen(64)
        self._start(self._accept)

    def heard(self, count: int, kind: str = "", timeout: float = HANG_SECONDS) -> list[Heard]:
        """Wait until so many requests (of this kind) were read; return all of them so far."""

        def matching() -> list[Heard]:
            return [r for r in self.requests if f"/{kind}" in r.target]

        with self._changed:
            assert self._changed.wait_for(lambda: len(matching()) >= count, timeout), matching()
            return matching()

    def close(self) -> None:
        """End every connection and thread."""
        self._closing.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._changed:
            held = list(self._open)
        for connection in held:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start(self, target: object, *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self._closing.is_set():
            try:
                raw, _ = self._listener.accept()
            except OSError:
                return
            with self._changed:
                self.connections += 1
                self._open.add(raw)
            self._start(self._serve, raw)

    def _serve(self, raw: socket.socket) -> None:
        raw.settimeout(HANG_SECONDS)
        held = raw
        try:
            secure = self._context.wrap_socket(raw, server_side=True, do_handshake_on_connect=False)
            with self._changed:
                self._open.discard(raw)
                self._open.add(secure)
            held = secure
            try:
                secure.do_handshake()
            except OSError as error:
                with self._changed:
                    self.handshake_errors.append(str(error))
                return
            with self._changed:
                self.handshakes += 1
            with secure.makefile("rb") as incoming:
                while self._one(secure, incoming):
                    pass
        except (OSError, ValueError):
            pass  # the worker hung up, or we are closing
        finally:
            with self._changed:
                self._open.discard(held)
            held.close()

    def _one(self, secure: ssl.SSLSocket, incoming: BinaryIO) -> bool:
        """Read a request and act; say whether the connection goes on."""
        request = _head(incoming)
        if request is None:
            return False
        act = self._next(request.target)
        if isinstance(act, Say) and act.early:
            self._record(request)
            secure.sendall(act.encode())
            secure.settimeout(max(act.discard, 0.001))
            end = time.monotonic() + act.discard
            with suppress(OSError):
                while time.monotonic() < end and incoming.read1(65536):  # type: ignore[attr-defined]
                    pass
            return False
        limit = act.after if isinstance(act, Silence | Cut) else None
        request.whole = _body(request, incoming, limit)
        self._record(request)
        match act:
            case Cut():
                if act.reset:
                    linger = struct.pack("ii", 1, 0)
                    secure.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                return False
            case Silence():
                self._closing.wait(HANG_SECONDS)
                return False
            case Hold():
                act.until.wait(HANG_SECONDS)
                return self._answer(secure, act.then)
            case HangUp():
                self._answer(secure, act.say)
                return False
            case Say():
                return self._answer(secure, act)

    def _answer(self, secure: ssl.SSLSocket, say: Say) -> bool:
        data = say.encode() if say.cut is None else say.encode()[: say.cut]
        if say.pace:
            for byte in data:
                secure.sendall(bytes([byte]))
                if self._closing.wait(say.pace):
                    return False
        else:
            secure.sendall(data)
        return not say.close and say.cut is None

    def _next(self, target: str) -> Act:
        with self._changed:
            for kind, acts in self._scripts.items():
                if f"/api/v1/{kind}/" in target:
                    return acts.pop(0) if len(acts) > 1 else acts[0]
        return Say(404, b"404 page not found\n")

    def _record(self, request: Heard) -> None:
        with self._changed:
            self.requests.append(request)
            self._changed.notify_all()


def _head(incoming: BinaryIO) -> Heard | None:
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        line = incoming.readline()
        if not line:
            return None
        head += line
    first, *rest = head[:-4].decode("latin-1").split("\r\n")
    method, target, _ = first.split(" ")
    pairs = [line.split(":", 1) for line in rest]
    return Heard(method, target, {name.lower(): value.strip() for name, value in pairs}, head)


def _body(request: Heard, incoming: BinaryIO, limit: int | None) -> bool:
    """Read the body, or so many bytes of it; say whether all of it came."""
    sha256, kept = hashlib.sha256(), bytearray()
    wanted = int(request.headers.get("content-length", "0"))
    allowed = wanted if limit is None else min(limit, wanted)
    try:
        while request.length < allowed:
            piece = incoming.read(min(65536, allowed - request.length))
            if not piece:
                return False
            request.length += len(piece)
            sha256.update(piece)
            if request.length <= KEPT_BODY:
                kept += piece
    except OSError:
        return False
    finally:
        request.digest, request.body = sha256.hexdigest(), bytes(kept)
    return request.length == wanted


def _load(context: ssl.SSLContext, pair: Pair) -> None:
    held = os.memfd_create("server")
    try:
        os.write(held, (pair.certificate + pair.pkcs8).encode())
        context.load_cert_chain(f"/proc/self/fd/{held}")
    finally:
        os.close(held)
