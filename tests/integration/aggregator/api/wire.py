"""A client that says exactly what it is told, byte for byte, and reads what comes back."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass

HANG = 60.0
"""Nothing takes so long unless it hangs."""


@dataclass(frozen=True)
class Reply:
    """One answer; header names in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def said(self) -> tuple[int, bytes]:
        return self.status, self.body


class Wire:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def send(self, *parts: bytes) -> None:
        """Send; a peer that has closed already shows when its answer is read."""
        try:
            self._writer.write(b"".join(parts))
            await asyncio.wait_for(self._writer.drain(), HANG)
        except (ConnectionError, ssl.SSLError):
            return

    async def reply(self, *, method: str = "GET") -> Reply:
        """Read one answer, interim ones included."""
        head = await asyncio.wait_for(self._reader.readuntil(b"\r\n\r\n"), HANG)
        status, *lines = head.decode("latin-1").split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in lines if line)
        code = int(status.split()[1])
        size = 0 if method == "HEAD" or code == 100 else int(headers.get("content-length", 0))
        body = await asyncio.wait_for(self._reader.readexactly(size), HANG)
        cased = dict(line.split(": ", 1) for line in lines if line)
        return Reply(code, {name.lower(): value for name, value in cased.items()}, body)

    async def some(self, size: int) -> bytes:
        """Read so many bytes of what comes."""
        return await asyncio.wait_for(self._reader.readexactly(size), HANG)

    async def rest(self) -> bytes:
        """Read until the peer closes; what it had to say until then."""
        try:
            return await asyncio.wait_for(self._reader.read(-1), HANG)
        except (ConnectionError, ssl.SSLError):
            return b""

    def cut(self) -> None:
        """Be gone, without a word."""
        self._writer.transport.abort()


@asynccontextmanager
async def connected(
    address: tuple[str, int], context: ssl.SSLContext | None, *, source: str | None = None
) -> AsyncIterator[Wire]:
    """Connect from an address of this machine, and be gone at the end."""
    host = "127.0.0.1" if context is not None else None
    reader, writer = await asyncio.wait_for(
        asyncio.open_connection(
            *address, ssl=context, server_hostname=host, local_addr=(source, 0) if source else None
        ),
        HANG,
    )
    wire = Wire(reader, writer)
    try:
        yield wire
    finally:
        wire.cut()
        with_error = asyncio.gather(writer.wait_closed(), return_exceptions=True)
        await asyncio.wait_for(with_error, HANG)


def head(method: str, target: str, *headers: str, host: str = "aggregator") -> bytes:
    """Write a request's head."""
    lines = [f"{method} {target} HTTP/1.1", f"Host: {host}", *headers, "", ""]
    return "\r\n".join(lines).encode()


def request(method: str, target: str, body: bytes | None = None, *headers: str) -> bytes:
    """Write a request, with a length if it has a body."""
    if body is None:
        return head(method, target, *headers)
    return head(method, target, *headers, f"Content-Length: {len(body)}") + body


def chunks(pieces: Iterable[bytes]) -> bytes:
    """Write a chunked body."""
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
