"""One TCP connection to a port of a Pod, through the API server and its kubelet.

A WebSocket carries it: frames of two channels, data and errors, each of which begins with the port
as two bytes. A thread moves the bytes between it and a socket, which callers use as any other.
"""

import socket
import threading
from contextlib import suppress
from datetime import UTC, datetime
from selectors import EVENT_READ, DefaultSelector
from typing import Any, Final

from websocket import ABNF, WebSocket, WebSocketBadStatusException, WebSocketException
from websocket import create_connection as open_websocket

from reporter.errors import Unavailable
from reporter.kube.answers import plain, refusal
from reporter.kube.client import Client, Request
from reporter.kube.sockets import Cutoff

PROTOCOL: Final = "v4.channel.k8s.io"
STALLED: Final = 60.0
"""Seconds after which a frame that does not come whole, or is not taken, ends the connection."""

_PATH = "/api/v1/namespaces/{namespace}/pods/{name}/portforward"
_DATA, _ERROR = 0, 1
_PORT = 2  # bytes at the beginning of each channel
_PIECE = 64 * 1024


class _Unceremonious(WebSocket):
    """Answers no closing frame: who sent it may be gone, and that would be an error of ours."""

    def send_close(self, *_: Any, **__: Any) -> None:
        """Do nothing."""


class PortForward:
    """A connection to `port` of a Pod. Raises the domain errors of a GET when it is refused.

    `socket` is our end of it: it reads to its end when the other side is gone. That nothing listens
    on the port shows only then, and `error` says it. `timeout` in seconds is for the way to the
    Pod. A `near` that is given is connected itself, and closed at the end.
    """

    def __init__(
        self,
        client: Client,
        namespace: str,
        name: str,
        port: int,
        *,
        timeout: float = 5.0,
        near: socket.socket | None = None,
    ) -> None:
        self._cutoff = Cutoff()
        names = {"namespace": namespace, "name": name}
        request = Request("GET", _PATH, names, {"ports": str(port)})
        self._far, url, headers = client.dial(request, timeout, self._cutoff)
        try:
            self._websocket = _upgraded(self._far, url, headers, timeout)
        except (OSError, WebSocketException) as error:
            self._far.close()
            self._cutoff.release()
            if isinstance(error, WebSocketBadStatusException):
                said = error.resp_headers or {}, error.resp_body or b""
                raise refusal(str(request), error.status_code, *said, datetime.now(UTC)) from None
            raise Unavailable(plain(f"{request}: {error or type(error).__name__}")) from error
        self.error = ""
        self.socket, self._near = (near, near) if near else socket.socketpair()
        self._thread = threading.Thread(target=self._run, name=f"port-forward {name}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End it, whatever it waits for."""
        self._cutoff.cut()
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        self._thread.join()

    def _run(self) -> None:
        try:
            self._websocket.settimeout(STALLED)
            self._near.settimeout(STALLED)
            self._move()
        except (OSError, WebSocketException) as error:
            self.error = self.error or plain(str(error) or type(error).__name__)
        finally:
            self._cutoff.release()
            # Without a closing handshake, which might have to be waited for.
            self._far.close()
            self._near.close()

    def _move(self) -> None:
        far, near = self._far, self._near
        begun = {_DATA: bytearray(), _ERROR: bytearray()}
        with DefaultSelector() as selector:
            for end in (far, near):
                selector.register(end, EVENT_READ)
            while True:
                # Data that TLS has decrypted already makes no descriptor readable.
                pending = far.pending()
                ready = [far] if pending else [key.fileobj for key, _ in selector.select()]
                if near in ready:
                    piece = near.recv(_PIECE)
                    if not piece:
                        return
                    self._websocket.send_binary(bytes([_DATA]) + piece)
                if far in ready and not self._receive(begun):
                    return

    def _receive(self, begun: dict[int, bytearray]) -> bool:
        """Take one frame; return whether more can come."""
        sort, frame = self._websocket.recv_data_frame(control_frame=True)
        if sort == ABNF.OPCODE_CLOSE:
            return False
        if sort != ABNF.OPCODE_BINARY or not frame.data:
            return True
        channel, data = frame.data[0], frame.data[1:]
        head = begun.get(channel)
        if head is None:
            return True
        if (missing := _PORT - len(head)) > 0:
            head += data[:missing]
            data = data[missing:]
        if channel == _ERROR:
            self.error = plain(self.error + data.decode(errors="replace"))
        elif data:
            self._near.sendall(data)
        return True


def _upgraded(far: Any, url: str, headers: dict[str, str], timeout: float) -> WebSocket:
    found: WebSocket = open_websocket(
        url.replace("https://", "wss://", 1),
        timeout=timeout,
        class_=_Unceremonious,
        socket=far,
        header=headers,
        subprotocols=[PROTOCOL],
        suppress_origin=True,
        redirect_limit=0,  # the token is for this server
    )
    return found
