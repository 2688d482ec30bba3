"""Opening connections: slow name services, addresses that swallow packets, ends that move."""

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from reporter.common import dialing
from reporter.common.dialing import dial

SOON = 2.0
"""A hang bound far below what the test would otherwise wait for."""
LONG = 60.0

Resolve = Callable[..., None]


def lasting(seconds: float) -> Callable[[], float]:
    """Return what is left of so many seconds."""
    end = time.monotonic() + seconds
    return lambda: end - time.monotonic()


@pytest.fixture
def resolve(monkeypatch: pytest.MonkeyPatch) -> Resolve:
    """Let the name `server` stand for these addresses."""
    asked = socket.getaddrinfo

    def become(*places: tuple[str, int]) -> None:
        found = [entry for place in places for entry in asked(*place, type=socket.SOCK_STREAM)]

        def answer(host: str, *arguments: object, **more: object) -> object:
            return found if host == "server" else asked(host, *arguments, **more)  # type: ignore[arg-type]

        monkeypatch.setattr(socket, "getaddrinfo", lambda *a, **k: _named(answer, a, k))

    return become


def _named(answer: Callable[..., object], a: tuple[object, ...], k: dict[str, object]) -> object:
    # Whether it is an address has to be asked of the system.
    if k.get("flags") == socket.AI_NUMERICHOST and a[0] == "server":
        raise socket.gaierror(socket.EAI_NONAME, "not an address")
    return answer(*a, **k)


@contextlib.contextmanager
def swallowing(host: str) -> Iterator[int]:
    """Give a port whose packets are dropped: a listener whose queue is full."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind((host, 0))
        listener.listen(0)
        port = listener.getsockname()[1]
        for _ in range(4):
            filling = stack.enter_context(socket.socket())
            filling.setblocking(False)
            filling.connect_ex((host, port))
        yield port


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """A server that takes connections."""
    with socket.create_server(("127.0.0.1", 0)) as sock:
        yield sock


def refusing() -> int:
    """Return a port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port: int = sock.getsockname()[1]
        return port


def test_an_address_is_not_looked_up(listener: socket.socket) -> None:
    """Nor does it take a thread."""
    before = threading.active_count()
    with dial("127.0.0.1", listener.getsockname()[1], lasting(LONG)) as sock:
        assert listener.getsockname() == sock.getpeername()
    assert before == threading.active_count()


def test_options_are_set_before_it_connects(listener: socket.socket) -> None:
    """As urllib3 wants them."""
    nodelay = (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with dial("127.0.0.1", listener.getsockname()[1], lasting(LONG), [nodelay]) as sock:
        assert 0 != sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_first_address_that_swallows_packets_leaves_the_second_its_time(
    listener: socket.socket, resolve: Resolve
) -> None:
    """The second one is tried beside it after a quarter of a second."""
    with swallowing("127.0.0.1") as port:
        resolve(("127.0.0.1", port), ("127.0.0.1", listener.getsockname()[1]))
        begun = time.monotonic()
        with dial("server", 443, lasting(LONG)) as sock:
            assert listener.getsockname() == sock.getpeername()
        assert time.monotonic() - begun < SOON


def test_a_first_address_that_refuses_holds_nobody_up(
    listener: socket.socket, resolve: Resolve
) -> None:
    """There is nothing to wait for."""
    resolve(("127.0.0.1", refusing()), ("127.0.0.1", listener.getsockname()[1]))
    with dial("server", 443, lasting(LONG)) as sock:
        assert listener.getsockname() == sock.getpeername()


def test_the_last_refusal_is_told(resolve: Resolve) -> None:
    """In the system's words."""
    resolve(("127.0.0.1", refusing()), ("127.0.0.1", refusing()))
    with pytest.raises(OSError, match="Connection refused"):
        dial("server", 443, lasting(LONG))


def test_time_is_over_where_all_swallow(resolve: Resolve) -> None:
    """At the end of the limit, not later."""
    with swallowing("127.0.0.1") as one, swallowing("127.0.0.1") as other:
        resolve(("127.0.0.1", one), ("127.0.0.1", other))
        begun = time.monotonic()
        with pytest.raises(TimeoutError):
            dial("server", 443, lasting(0.5))
        assert time.monotonic() - begun < SOON


def test_the_end_may_move_while_it_waits() -> None:
    """A signal shortens what is left."""
    moved = threading.Event()
    threading.Timer(0.2, moved.set).start()
    with swallowing("127.0.0.1") as port:
        begun = time.monotonic()
        with pytest.raises(TimeoutError):
            dial("127.0.0.1", port, lambda: 0.0 if moved.is_set() else LONG)
        assert time.monotonic() - begun < SOON


def test_a_name_service_that_hangs_is_inside_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """And however often it is asked, it holds one thread."""
    answered = threading.Event()
    questions: list[object] = []

    def hang(*arguments: object, **more: object) -> object:
        if more.get("flags") == socket.AI_NUMERICHOST:
            raise socket.gaierror(socket.EAI_NONAME, "not an address")
        questions.append(arguments)
        answered.wait(LONG)
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    begun = time.monotonic()
    for _ in range(3):
        with pytest.raises(socket.gaierror, match="no DNS response"):
            dial("slow", 443, lasting(0.1))
    assert time.monotonic() - begun < SOON
    assert [("slow", 443)] == questions
    answered.set()
    with pytest.raises(socket.gaierror, match="Temporary failure"):
        dial("slow", 443, lasting(LONG))
    assert {} == dialing._lookups


@pytest.mark.parametrize("name", ["a" * 64 + ".example", "a..b"])
def test_what_is_no_name_is_an_unknown_one(name: str) -> None:
    """Python's own encoding refuses some, in words that nobody knows."""
    with pytest.raises(socket.gaierror, match="not a valid host name"):
        dial(name, 443, lasting(LONG))


def test_an_address_that_is_refused_at_once(resolve: Resolve) -> None:
    """As one of a family without a route: the next one is tried, and no socket is left open."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        resolve(("255.255.255.255", port), ("127.0.0.1", port))
        with dial("server", port, lasting(LONG)) as connected:
            assert ("127.0.0.1", port) == connected.getpeername()
        resolve(("255.255.255.255", port))
        with pytest.raises(OSError, match=r"unreachable|denied"):
            dial("server", port, lasting(LONG))


def test_a_lookup_without_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system's limit on threads is an error like any other, and over when it is."""

    def refused(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", refused)
            with pytest.raises(OSError, match="can't start new thread"):
                dial("localhost", port, lasting(LONG))
        dial("localhost", port, lasting(LONG)).close()
