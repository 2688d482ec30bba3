"""A port-forward: the bytes of one TCP connection to a port of a Pod, and every way it can end."""

import socket
import threading
from collections.abc import Iterator
from contextlib import closing

import pytest
from websocket import ABNF, WebSocket, WebSocketConnectionClosedException

from reporter.errors import Forbidden, NotFound, Unavailable
from reporter.kube.api import KubeApi
from reporter.kube.port_forward import PortForward
from tests.fakekube import Answer, FakeKube, Reset, Rule, make_job, make_pod

BOUND = 30.0
LARGE = bytes(range(256)) * 2_000  # 512 KB: many frames


@pytest.fixture
def fake() -> Iterator[FakeKube]:
    """An API server with one Pod, and a person who may reach it."""
    with FakeKube(role="person") as fake:
        fake.tokens.roles["person"] = (Rule(("get",), ("pods/portforward",)),)
        fake.create_pod(make_pod(make_job(), name="there"))
        yield fake


@pytest.fixture
def listener(fake: FakeKube) -> Iterator[socket.socket]:
    """What listens on the Pod's port 8081."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(BOUND)
        fake.forwards["default", "there", 8081] = listener.getsockname()[1]
        yield listener


def opened(api: KubeApi, name: str = "there", port: int = 8081) -> PortForward:
    found = api.port_forward("default", name, port, timeout=BOUND)
    found.socket.settimeout(BOUND)
    return found


def everything(end: socket.socket) -> bytes:
    found = bytearray()
    while piece := end.recv(65536):
        found += piece
    return bytes(found)


def test_what_is_sent_comes_back(api: KubeApi, listener: socket.socket) -> None:
    """Whole and in order, both ways at once."""

    def echo() -> None:
        end, _ = listener.accept()
        with end:
            while piece := end.recv(65536):
                end.sendall(piece)

    serving = threading.Thread(target=echo)
    serving.start()
    with closing(opened(api)) as forward:
        sending = threading.Thread(target=forward.socket.sendall, args=(LARGE,))
        sending.start()
        got = bytearray()
        while len(got) < len(LARGE):
            got += forward.socket.recv(65536)
        sending.join(BOUND)
    serving.join(BOUND)

    assert LARGE == got
    assert not serving.is_alive()


def test_the_pod_ends_the_connection(api: KubeApi, listener: socket.socket) -> None:
    """What it sent before is read to its end."""
    forward = opened(api)
    end, _ = listener.accept()
    end.sendall(LARGE[:100_000])
    end.close()

    assert LARGE[:100_000] == everything(forward.socket)
    assert "" == forward.error
    forward.close()


def test_a_closing_frame_of_somebody_who_is_gone(
    api: KubeApi, listener: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reply to it would fail; that the connection has ended is no trouble."""
    answering = WebSocket.send

    def gone(self: WebSocket, payload: bytes, opcode: int = ABNF.OPCODE_TEXT) -> int:
        if opcode == ABNF.OPCODE_CLOSE:
            raise WebSocketConnectionClosedException("socket is already closed.")
        return answering(self, payload, opcode)

    monkeypatch.setattr(WebSocket, "send", gone)
    forward = opened(api)
    end, _ = listener.accept()
    end.close()

    assert b"" == everything(forward.socket)
    assert "" == forward.error
    forward.close()


def test_we_end_the_connection(api: KubeApi, listener: socket.socket) -> None:
    """The Pod sees it, and no thread is left."""
    forward = opened(api)
    end, _ = listener.accept()
    end.settimeout(BOUND)
    forward.close()

    assert b"" == end.recv(1)
    end.close()
    assert not [one for one in threading.enumerate() if one.name.startswith("port-forward")]


def test_our_end_is_closed_by_who_uses_it(api: KubeApi, listener: socket.socket) -> None:
    """As http.client does, which knows nothing of the rest."""
    forward = opened(api)
    end, _ = listener.accept()
    end.settimeout(BOUND)
    forward.socket.close()

    assert b"" == end.recv(1)
    end.close()
    forward.close()


def test_nothing_listens_on_the_port(api: KubeApi) -> None:
    """The kubelet's words, as the connection ends."""
    forward = opened(api, port=9999)

    assert b"" == everything(forward.socket)
    assert "error forwarding port 9999: connection refused" == forward.error
    forward.close()


def test_the_api_server_goes_away(api: KubeApi, fake: FakeKube, listener: socket.socket) -> None:
    """The connection ends, with a reason."""
    forward = opened(api)
    end, _ = listener.accept()
    fake.drop_connections()

    assert b"" == everything(forward.socket)
    assert forward.error
    end.close()
    forward.close()


def test_no_such_pod(api: KubeApi) -> None:
    """As a GET would say it."""
    with pytest.raises(NotFound, match='pods "nobody" not found'):
        opened(api, "nobody")


def test_no_right_to_it(api: KubeApi, fake: FakeKube) -> None:
    """As a GET would say it."""
    fake.tokens.roles["person"] = (Rule(("get",), ("pods",)),)
    with pytest.raises(Forbidden, match="portforward"):
        opened(api)


@pytest.mark.parametrize("location", ["https://127.0.0.1:1/", ""])
def test_a_redirect_is_not_followed(api: KubeApi, fake: FakeKube, location: str) -> None:
    """The token is for this server alone."""
    fake.fail(Answer(302, headers={"Location": location}))
    with pytest.raises(Unavailable, match="Redirect"):
        opened(api)


@pytest.mark.parametrize("fault", [Answer(200), Answer(503), Reset()], ids=["200", "503", "reset"])
def test_something_in_between_answers(api: KubeApi, fake: FakeKube, fault: Answer | Reset) -> None:
    """A proxy that knows no WebSocket, an overloaded server, a reset: trying again may help."""
    fake.fail(fault)
    with pytest.raises(Unavailable):
        opened(api)
