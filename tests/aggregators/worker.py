"""A worker made of the standard library only: requests of one plugin, whole or in pieces."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple, Self

BOUND = 60.0
"""Nothing takes so long unless it hangs."""


class Reply(NamedTuple):
    """An answer."""

    status: int
    body: bytes
    headers: dict[str, str]

    @property
    def digest(self) -> str | None:
        """The value of Result-Digest."""
        return self.headers.get("Result-Digest")


def digest_of(body: bytes) -> str:
    """Return the value that Result-Digest has for a body."""
    return f"sha-256=:{b64encode(sha256(body).digest()).decode()}:"


def head(method: str, path: str, *headers: str) -> bytes:
    """Write the head of a request, for a bare connection."""
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: a", *headers, "", ""]).encode()


class Worker:
    """Speaks for one plugin.

    Keys are written as in paths: `global/PLUGIN` or `by-node/NODE/PLUGIN`.
    """

    def __init__(self, port: int, context: ssl.SSLContext) -> None:
        self.address, self.context = ("127.0.0.1", port), context

    @classmethod
    def of(cls, port: int, certificates: Path, plugin: str) -> Self:
        """Return one with what was exported."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(certificates / "ca.pem")
        context.load_cert_chain(certificates / f"{plugin}.crt", certificates / f"{plugin}.key")
        return cls(port, context)

    def connect(self, timeout: float = BOUND) -> ssl.SSLSocket:
        """Return a bare connection."""
        plain = socket.create_connection(self.address, timeout)
        return self.context.wrap_socket(plain, server_hostname=self.address[0])

    def connection(self, timeout: float = BOUND) -> http.client.HTTPSConnection:
        """Return a connection for several requests."""
        return http.client.HTTPSConnection(*self.address, context=self.context, timeout=timeout)

    def put(self, key: str, body: Any = b"result", **headers: str) -> Reply:
        """Send a result."""
        return self.ask("PUT", f"results/{key}", body, headers)

    def post(self, key: str, **update: Any) -> Reply:
        """Send a progress update; its Progress-Id is `id`."""
        name = update.pop("id", "")
        headers = {"Progress-Id": name} if name else {}
        return self.ask("POST", f"progress/{key}", json.dumps(update).encode(), headers)

    def beat(self, key: str) -> Reply:
        """Send a heartbeat."""
        return self.ask("GET", f"health/{key}")

    def ask(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> Reply:
        """Send one request on a connection of its own; in names of headers _ stands for -."""
        named = {name.replace("_", "-"): value for name, value in (headers or {}).items()}
        connection = self.connection()
        try:
            connection.request(method, f"/api/v1/{path}", body, named)
            return reply(connection)
        finally:
            connection.close()


def reply(connection: http.client.HTTPConnection) -> Reply:
    """Read the answer to the request that was sent."""
    answer = connection.getresponse()
    return Reply(answer.status, answer.read(), dict(answer.getheaders()))
