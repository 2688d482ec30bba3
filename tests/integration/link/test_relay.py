"""The relay: real sockets on this machine, a scripted aggregator behind a real client."""

import contextlib
import http.client
import json
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from reporter.link.client import AggregatorClient
from reporter.link.connection import NoAnswer
from reporter.link.messages import Reply
from reporter.link.relay import Relay
from tests.integration.link.scripted import Scripted
from tests.ports import free_port
from tests.scripted_server import Say

BOUND = 30.0
REPLACING = b'{"msg":"half","total":10,"completed":5}'
APPENDING = b'{"msg":"more","appendcompleted":1}'


class Told:
    """What the relay said, and a way to wait for it."""

    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []
        self._changed = threading.Condition()

    def __call__(self, event: str, facts: dict[str, Any]) -> None:
        with self._changed:
            self.events.append((event, facts))
            self._changed.notify_all()

    def words(self) -> list[str]:
        return [event for event, _ in self.events]

    def wait(self, word: str) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: word in self.words(), BOUND), self.events


class Aggregator:
    """In place of the client: answers from a list, the last one again and again."""

    def __init__(self, *replies: Reply | Exception) -> None:
        self._replies = list(replies) or [Reply(200)]
        self.bodies: list[bytes] = []
        self._changed = threading.Condition()
        self.gate: threading.Event | None = None
        self.entered = threading.Event()

    def post_progress(self, update: bytes, /) -> Reply:
        self.entered.set()
        if self.gate:
            assert self.gate.wait(BOUND)
        with self._changed:
            self.bodies.append(update)
            self._changed.notify_all()
        reply = self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]
        if isinstance(reply, Exception):
            raise reply
        return reply

    def wait(self, count: int) -> list[bytes]:
        """Return what was sent once it is so much."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.bodies) >= count, BOUND), self.bodies
            return list(self.bodies)


@contextlib.contextmanager
def relayed(client: Any, port: int = 0, **options: Any) -> Iterator[Relay]:
    relay = Relay(client, port, **options)
    relay.start()
    try:
        yield relay
    finally:
        relay.close()


def send(
    relay: Relay,
    body: bytes = REPLACING,
    *,
    method: str = "POST",
    path: str = "/progress",
    host: str = "127.0.0.1",
) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(host, relay.port, timeout=BOUND)
    with contextlib.closing(connection):
        connection.request(method, path, body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        return response.status, response.read()


def raw(relay: Relay, data: bytes) -> socket.socket:
    client = socket.create_connection(("127.0.0.1", relay.port), BOUND)
    client.sendall(data)
    return client


def answer(client: socket.socket) -> bytes:
    with client:
        return b"".join(iter(lambda: client.recv(65536), b""))


@pytest.mark.parametrize(
    ("method", "status", "body"),
    [("POST", 200, b""), ("PUT", 400, b"invalid progress update: not JSON\n")],
)
def test_the_aggregators_answer_is_the_plugins(method: str, status: int, body: bytes) -> None:
    """W13: same code, same body; the update goes out byte-exact, as a POST with an id."""
    update = b'{ "msg":"\xc3\xbc" ,\n"total":1} trailing \xff'
    with (
        Scripted(progress=[Say(status, body)]) as scripted,
        AggregatorClient(scripted.config()) as client,
        relayed(client) as relay,
    ):
        found = send(relay, update, method=method)
        (heard,) = scripted.heard(1, "progress")

    assert (status, body) == found
    assert ("POST", "/api/v1/progress/global/e2e", update) == (
        heard.method,
        heard.target,
        heard.body,
    )
    assert ("application/json", str(len(update))) == (
        heard.headers["content-type"],
        heard.headers["content-length"],
    )
    assert "/" in heard.headers["progress-id"]


@pytest.mark.parametrize(
    ("reply", "found", "event"),
    [
        (Reply(404, b"-"), (404, b"-"), "progress_unwanted"),
        (NoAnswer("refused"), (500, b""), "progress_not_delivered"),
    ],
    ids=["Sonobuoy's for a node", "no aggregator"],
)
def test_what_is_noted_once(reply: Reply | Exception, found: object, event: str) -> None:
    """W13, W14: the plugin hears each answer; the log does not."""
    told = Told()
    with relayed(Aggregator(reply), on_event=told) as relay:
        assert [found] * 3 == [send(relay, APPENDING) for _ in range(3)]

    assert ["relay_listens", event] == told.words()


def test_other_requests_reach_nobody() -> None:
    """W14: and the aggregator hears nothing of them."""
    aggregator = Aggregator()
    with relayed(aggregator) as relay:
        assert 404 == send(relay, path="/other")[0]
        assert 405 == send(relay, method="DELETE")[0]

    assert [] == aggregator.bodies


def addresses() -> list[str]:
    """This machine's addresses that others can reach."""
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe,
        contextlib.suppress(OSError),
    ):
        probe.connect(("192.0.2.1", 9))  # sends nothing
        return [probe.getsockname()[0]]
    return []


def test_only_this_machine_is_listened_to() -> None:
    """W14, F21: on both loopback addresses and on no other."""
    with relayed(Aggregator()) as relay:
        assert 200 == send(relay, host="127.0.0.1")[0]
        if socket.has_ipv6:
            assert 200 == send(relay, host="::1")[0]
        for address in ["127.0.0.2", *addresses()]:
            with pytest.raises(OSError, match="refused"):
                socket.create_connection((address, relay.port), BOUND)


def test_the_port_is_taken_and_later_free() -> None:
    """W15, F21: said once; the relay comes up when the other one is gone."""
    told = Told()
    with socket.socket() as other:
        port = free_port()
        other.bind(("127.0.0.1", port))
        other.listen()
        relay = Relay(Aggregator(), port, on_event=told, retry_port=0.05)
        relay.start()
        told.wait("relay_port_taken")
        assert not relay.listening.wait(0.2)
        other.close()
        try:
            assert relay.listening.wait(BOUND)
            assert 200 == send(relay)[0]
        finally:
            relay.close()

    assert ["relay_port_taken", "relay_listens"] == told.words()


def test_only_the_second_address_is_taken() -> None:
    """W15: half a relay would answer some clients and not others."""
    if not socket.has_ipv6:
        pytest.skip("no IPv6 here")
    with socket.socket(socket.AF_INET6) as other:
        other.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        other.bind(("::1", 0))
        other.listen()
        with relayed(Aggregator(), other.getsockname()[1], retry_port=60.0) as relay:
            assert not relay.listening.is_set()
            with pytest.raises(OSError, match="refused"):
                socket.create_connection(("127.0.0.1", relay.port), BOUND)


def test_one_at_a_time_in_the_order_of_arrival() -> None:
    """Two updates under way at once could overtake each other."""
    aggregator = Aggregator()
    aggregator.gate = threading.Event()
    bodies = [json.dumps({"total": number}).encode() for number in range(5)]
    with relayed(aggregator) as relay:
        clients = []
        for body in bodies:
            head = f"POST /progress HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n"
            clients.append(raw(relay, head.encode() + body))
        aggregator.gate.set()
        statuses = [answer(client).split(b" ")[1] for client in clients]

    assert [b"200"] * 5 == statuses
    assert bodies == aggregator.bodies


def test_a_client_that_waits_to_be_asked_is_asked() -> None:
    """Expect: 100-continue, as curl sends it."""
    aggregator = Aggregator()
    with relayed(aggregator) as relay:
        head = b"POST /progress HTTP/1.1\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n"
        client = raw(relay, head)
        assert b"HTTP/1.1 100 Continue\r\n\r\n" == client.recv(65536)
        client.sendall(b"abc")
        assert answer(client).startswith(b"HTTP/1.1 200 ")

    assert [b"abc"] == aggregator.bodies


def test_one_mebibyte_and_one_byte_more() -> None:
    """W13: the limit is the wire's; who is over it still hears so."""
    aggregator = Aggregator()
    with relayed(aggregator) as relay:
        assert 200 == send(relay, b"x" * (1 << 20))[0]
        assert 413 == send(relay, b"x" * ((1 << 20) + 1))[0]

    assert [1 << 20] == [len(body) for body in aggregator.bodies]


def test_time_spent_forwarding_is_nobodys_fault() -> None:
    """A client whose bytes could not be read meanwhile keeps its seconds."""
    aggregator = Aggregator()
    aggregator.gate = threading.Event()
    clock = [0.0]
    with relayed(aggregator, clock=lambda: clock[0]) as relay:
        half = raw(relay, b"POST /progress HTTP/1.1\r\nContent-Length: 3\r\n\r\na")
        first = raw(relay, b"POST /progress HTTP/1.1\r\nContent-Length: 1\r\n\r\n1")
        assert aggregator.entered.wait(BOUND)  # who came before is connected by now
        clock[0] += 9.0
        aggregator.gate.set()
        assert answer(first).startswith(b"HTTP/1.1 200 ")
        half.sendall(b"bc")
        assert answer(half).startswith(b"HTTP/1.1 200 ")


def test_the_newest_replacing_update_is_sent_again_until_it_is_taken() -> None:
    """The end of a run is not lost, though the plugin was told 500."""
    aggregator = Aggregator(NoAnswer("refused"), Reply(503), Reply(200))
    with relayed(aggregator, rng=lambda: 0.05) as relay:
        assert (500, b"") == send(relay)
        assert [REPLACING] * 3 == aggregator.wait(3)
        assert 200 == send(relay, APPENDING)[0]

    assert [REPLACING] * 3 + [APPENDING] == aggregator.bodies


@pytest.mark.parametrize(
    ("updates", "replies", "sent"),
    [
        ([REPLACING], [NoAnswer("refused"), Reply(200)], [REPLACING, REPLACING]),
        ([REPLACING, b"{}"], [NoAnswer("refused"), Reply(200)], [REPLACING, b"{}"]),
        ([REPLACING, APPENDING], [NoAnswer("refused"), Reply(200)], [REPLACING, APPENDING]),
        ([APPENDING], [NoAnswer("refused")], [APPENDING]),
        ([APPENDING], [Reply(503)], [APPENDING]),
        ([b"not JSON"], [NoAnswer("refused")], [b"not JSON"]),
        ([REPLACING], [Reply(400)], [REPLACING]),
        ([REPLACING], [Reply(403)], [REPLACING]),
        ([REPLACING], [Reply(404)], [REPLACING]),
        ([REPLACING], [Reply(410)], [REPLACING]),
    ],
)
def test_only_the_newest_replacing_update_has_a_last_try_at_the_end(
    updates: list[bytes], replies: list[Reply | Exception], sent: list[bytes]
) -> None:
    """What the plugin was told is the truth: an append sent twice would count twice.

    An older update that is sent after an append would undo it.
    """
    aggregator = Aggregator(*replies)
    relay = Relay(aggregator, 0, rng=lambda: 0.9)
    relay.start()
    try:
        for update in updates:
            send(relay, update)
    finally:
        relay.close(last_try=True)

    assert sent == aggregator.bodies
