"""Port-forwards of the fake: the WebSocket that the kubelet speaks, to a port of this machine."""

import base64
import hashlib
import select
import socket
import struct
from contextlib import suppress

from tests.http_server import Connection, Dropped, head

PROTOCOL = "v4.channel.k8s.io"
_MAGIC = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_BINARY, _CLOSE, _PING, _PONG = 2, 8, 9, 10


class Forward:
    """A port-forward to `port` of a Pod, which is the port `local` here; None: nobody listens."""

    def __init__(self, key: str, port: int, local: int | None) -> None:
        self._key, self._port, self._local = key, port, local

    def serve(self, connection: Connection) -> None:
        """Carry it until one side ends it. Raises Dropped, as the connection is of no more use."""
        accept = base64.b64encode(hashlib.sha1(self._key.encode() + _MAGIC).digest()).decode()
        upgrade = {"Upgrade": "websocket", "Connection": "Upgrade"}
        said = {"Sec-WebSocket-Accept": accept, "Sec-WebSocket-Protocol": PROTOCOL}
        far = connection.socket
        far.sendall(head(101, upgrade | said))
        for channel in (0, 1):
            far.sendall(_frame(_BINARY, bytes([channel]) + struct.pack("<H", self._port)))
        if self._local is None:
            words = f"error forwarding port {self._port}: connection refused"
            far.sendall(_frame(_BINARY, b"\1" + words.encode()) + _frame(_CLOSE, b""))
            raise Dropped
        with socket.create_connection(("127.0.0.1", self._local)) as near, suppress(OSError):
            _carry(far, near)
        raise Dropped


def _carry(far: socket.socket, near: socket.socket) -> None:
    begun = bytearray()
    pending = getattr(far, "pending", int)
    far.sendall(_frame(_PING, b"there?"))
    while True:
        ready = [far] if pending() else select.select([far, near], [], [])[0]
        if near in ready:
            piece = near.recv(65536)
            # In two frames, as a kubelet may cut it.
            for part in (piece[:1000], piece[1000:]):
                if part:
                    far.sendall(_frame(_BINARY, b"\0" + part))
            if not piece:
                far.sendall(_frame(_CLOSE, b""))
                return
        if far in ready:
            piece = far.recv(65536)
            if not piece:
                return
            begun += piece
            while (found := _taken(begun)) is not None:
                sort, data = found
                if sort == _CLOSE:
                    return
                if sort == _BINARY:
                    near.sendall(data[1:])


def _frame(sort: int, data: bytes) -> bytes:
    if len(data) < 126:
        return bytes([0x80 | sort, len(data)]) + data
    if len(data) < 65536:
        return bytes([0x80 | sort, 126]) + struct.pack(">H", len(data)) + data
    return bytes([0x80 | sort, 127]) + struct.pack(">Q", len(data)) + data


def _taken(begun: bytearray) -> tuple[int, bytes] | None:
    """Take one whole frame of a client, which masks it, from what has come."""
    if len(begun) < 2:
        return None
    size, at = begun[1] & 0x7F, 2
    if size >= 126:
        form = ">H" if size == 126 else ">Q"
        at += struct.calcsize(form)
        if len(begun) < at:
            return None
        (size,) = struct.unpack_from(form, begun, 2)
    if len(begun) < at + 4 + size:
        return None
    sort, mask = begun[0] & 0x0F, begun[at : at + 4]
    data = begun[at + 4 : at + 4 + size]
    data = bytearray(byte ^ mask[place % 4] for place, byte in enumerate(data))
    del begun[: at + 4 + size]
    return sort, bytes(data)
