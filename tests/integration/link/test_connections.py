"""Progress and heartbeats: kept connections, stale ones, order, threads."""

import math
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import Mock

import pytest

from reporter.link import NoAnswer, ResultSource, TimeLimits, TrustError
from reporter.link.connection import Connection
from tests.aggregators.identities import Authority
from tests.aggregators.scripted import BEAT
from tests.integration.link.scripted import Scripted
from tests.scripted_server import Cut, HangUp, Hold, Say, Silence


def test_connection_is_kept_between_requests(connect):
    """One handshake for a series of updates."""
    with Scripted() as server:
        client = connect(server.config())
        for _ in range(5):
            assert 200 == client.post_progress(b"{}").status
            assert 200 == client.heartbeat().status
        assert (1, 10) == (server.handshakes, len(server.requests))


def test_progress_is_sent_byte_exact(connect):
    """Whatever it is; the answer comes back verbatim."""
    body = b' {"msg" : "\\u00e4", "x":[1 ,2]}\n trailing'
    answer = Say(400, b"invalid progress update: x\n", headers={"Content-Type": "text/plain"})
    with Scripted(progress=[answer]) as server:
        reply = connect(server.config(node="n1")).post_progress(body)
        (request,) = server.heard(1)
    assert (400, b"invalid progress update: x\n", "text/plain") == (
        reply.status,
        reply.body,
        reply.content_type,
    )
    assert ("POST", "/api/v1/progress/by-node/n1/e2e", body) == (
        request.method,
        request.target,
        request.body,
    )
    assert "application/json" == request.headers["content-type"]


def test_ids_count_up_in_one_epoch(connect):
    """So a retried append counts once; another process has another epoch."""
    with Scripted() as server:
        first, second = connect(server.config()), connect(server.config())
        for client in (first, first, second):
            client.post_progress(b"{}")
        ids = [request.headers["progress-id"].split("/") for request in server.requests]
    assert ["1", "2", "1"] == [seq for _, seq in ids]
    assert ids[0][0] == ids[1][0] != ids[2][0]


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("https://aggregator.invalid:8080", "cannot resolve aggregator.invalid: "),
        ("https://127.0.0.1:1", "cannot connect to 127.0.0.1: Connection refused"),
        ("", "the aggregator's certificate is not trusted: certificate of another run ("),
    ],
    ids=["no address", "nobody listens", "another run's"],
)
def test_the_step_that_fails_is_said_once(connect, events, url, words):
    """However often it is tried; and no request was made."""
    with Scripted(server=Authority().server()) as server:
        client = connect(server.config(aggregator_url=url or server.url))
        for _ in range(2):
            with pytest.raises((NoAnswer, TrustError)):
                client.heartbeat()
        assert [] == server.requests
    ((event, facts),) = events
    assert ("unreachable", True) == (event, facts["error"].startswith(words))


def test_the_step_that_fails_last_is_said_last(connect, events, monkeypatch):
    """A name that is known for a moment does not hide that it is not."""
    steps = ["cannot resolve a", "timed out", "cannot resolve a"]
    with Scripted() as server:
        client = connect(server.config())
        for text in steps:
            monkeypatch.setattr(Connection, "exchange", Mock(side_effect=NoAnswer(text)))
            with pytest.raises(NoAnswer):
                client.heartbeat()
    assert steps == [facts["error"] for _, facts in events]


def test_it_is_over_once_the_aggregator_has_answered(connect, events):
    """A later fault is told by what it keeps up."""
    with Scripted(listening=False) as server:
        client = connect(server.config())
        with pytest.raises(NoAnswer):
            client.heartbeat()
        server.listen()
        client.heartbeat()
    with pytest.raises(NoAnswer):
        client.heartbeat()
    assert ["unreachable", "reached"] == [event for event, _ in events]


def test_heartbeat_tells_what_the_aggregator_can(connect):
    """Its wish and its features."""
    with Scripted() as server:
        client = connect(server.config(node="n1"))
        beat = client.heartbeat()
        assert "/api/v1/health/by-node/n1/e2e" == server.heard(1)[0].target
    assert (200, 1.0) == (beat.status, beat.interval)
    assert {"heartbeat", "outcome", "digest", "progress-id"} == beat.features


@pytest.mark.parametrize(
    ("acts", "statuses", "ids", "handshakes"),
    [
        pytest.param([HangUp()] * 3, [200] * 3, "1 2 3", 3, id="its keep-alive was over"),
        pytest.param([Say(), Cut(2), Say()], [200] * 2, "1 2 2", 2, id="closed as we speak"),
        pytest.param(
            [Say(), Cut(2, reset=True), Say()], [200] * 2, "1 2 2", 2, id="reset as we speak"
        ),
        pytest.param([Cut(2)], [None], "1", 1, id="a new one was not stale"),
        pytest.param(
            [Say(), Say(cut=5), Say()], [200, None], "1 2", 1, id="a part of an answer: it has it"
        ),
    ],
)
def test_what_is_sent_again_on_a_new_connection(connect, acts, statuses, ids, handshakes):
    """With its id, and only where a kept one has ended before any byte of the answer."""
    found = []
    with Scripted(progress=acts) as server:
        client = connect(server.config())
        for _ in statuses:
            try:
                found.append(client.post_progress(b"{}").status)
            except NoAnswer:
                found.append(None)
        sent = [request.headers["progress-id"].split("/")[1] for request in server.requests]
    assert (statuses, ids.split(), handshakes) == (found, sent, server.handshakes)


@pytest.mark.parametrize("body", [b"-5\r\nabc", b"zz\r\n", b"ffffffffffffffffff\r\nabc"])
def test_answer_that_cannot_be_read_is_its_status(connect, body):
    """Whatever a proxy makes of it: the library's own errors must not end a worker's thread."""
    broken = Say(200, body, headers={"Transfer-Encoding": "chunked"}, close=True)
    with Scripted(progress=[broken, Say()]) as server:
        client = connect(server.config())
        assert [200, 200] == [client.post_progress(b"{}").status for _ in range(2)]
        assert 2 == server.handshakes


def test_early_answer_to_progress_ends_the_connection(connect):
    """What is left of the body would be taken for the next request."""
    with Scripted(progress=[Say(413, early=True), Say()]) as server:
        client = connect(server.config())
        assert 413 == client.post_progress(b"x" * 5_000_000).status
        assert 200 == client.post_progress(b"{}").status
        assert 2 == server.handshakes


def test_w20_heartbeat_gives_up_after_its_limit(connect):
    """W20: a hanging aggregator costs a beat five seconds and the upload nothing."""
    assert (5.0, 10.0) == (TimeLimits().heartbeat, TimeLimits().progress)
    with Scripted(health=[Silence()], progress=[Say(pace=0.1)]) as server:
        client = connect(server.config(), limits=TimeLimits(heartbeat=0.3, progress=0.3))
        with pytest.raises(NoAnswer, match="timed out"):
            client.heartbeat()
        with pytest.raises(NoAnswer, match="timed out"):
            client.post_progress(b"{}")
        assert client.put_result(ResultSource.from_bytes(b"{}", "a.json")).delivered


def test_a_kept_connection_that_hangs_is_not_a_stale_one(connect):
    """Nothing is connected to in the words, because nothing was."""
    with Scripted(health=[Say(), Silence()]) as server:
        client = connect(server.config(), limits=TimeLimits(heartbeat=2.0))
        client.heartbeat()
        with pytest.raises(NoAnswer, match=r"^timed out"):
            client.heartbeat()
        assert 1 == server.handshakes


def test_an_answer_to_a_body_that_is_not_read_on(connect):
    """Nobody reads it and nobody closes: the answer is found once sending has taken too long."""
    body = ResultSource.from_bytes(bytes(24 * 2**20), "a.bin")  # more than sockets hold
    with Scripted(results=[Silence(0, Say(409, close=True)), Say()]) as server:
        delivery = connect(server.config(), limits=TimeLimits(silence=0.3)).put_result(body)
    assert (409, 1) == (delivery.status, delivery.attempts)


def test_silent_handshake_is_bounded(connect):
    """Somebody listens and never speaks TLS."""
    with socket.create_server(("127.0.0.1", 0)) as mute, Scripted() as server:
        config = server.config(aggregator_url=f"https://127.0.0.1:{mute.getsockname()[1]}")
        client = connect(config, limits=TimeLimits(handshake=0.2))
        with pytest.raises(NoAnswer, match="timed out"):
            client.heartbeat()


def test_end_that_comes_nearer_ends_a_silent_handshake(connect):
    """It was far away when the handshake began."""
    with socket.create_server(("127.0.0.1", 0)) as mute, Scripted() as server:
        config = server.config(aggregator_url=f"https://127.0.0.1:{mute.getsockname()[1]}")
        stopped = threading.Event()
        client = connect(config, ends=lambda: 0.0 if stopped.is_set() else math.inf)
        began = time.monotonic()
        with ThreadPoolExecutor(1) as pool:
            delivery = pool.submit(client.put_result, ResultSource.from_bytes(b"{}", "a.json"))
            peer, _ = mute.accept()
            with peer:
                peer.recv(1)
                stopped.set()
                assert "timed out" in delivery.result().text
        assert time.monotonic() - began < TimeLimits().handshake


def test_a_try_without_room_for_a_thread(connect, monkeypatch):
    """In a Pod whose process ids are used up it fails like any other, and may be made again."""
    start = threading.Thread.start

    def refused(thread):
        if thread.name == "deadline":
            raise RuntimeError("can't start new thread")
        start(thread)

    with Scripted() as server:
        client = connect(server.config())
        assert 200 == client.heartbeat().status
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", refused)
            with pytest.raises(NoAnswer, match="start new thread"):
                client.heartbeat()
        assert 200 == client.heartbeat().status


def test_many_threads_share_a_client(connect):
    """Every request gets its own answer; updates arrive in the order of their ids."""
    with Scripted() as server:
        client = connect(server.config())

        def work(number: int) -> list[object]:
            source = ResultSource.from_bytes(b"%d" % number * 10_000, f"{number}.bin")
            return [
                client.post_progress(b'{"msg":"%d"}' % number).status,
                client.heartbeat().status,
                client.put_result(source).digest == source.open().digest,
            ]

        with ThreadPoolExecutor(16) as pool:
            done = list(pool.map(work, range(64)))
        ids = [int(r.headers["progress-id"].split("/")[1]) for r in server.heard(64, "progress")]
    assert [[200, 200, True]] * 64 == done
    assert list(range(1, 65)) == ids


def test_updates_do_not_overtake_each_other(connect):
    """An append with a lower id than the last one would be ignored."""
    release = threading.Event()
    with Scripted(progress=[Hold(release), Say()], health=[BEAT]) as server:
        client = connect(server.config())
        with ThreadPoolExecutor(2) as pool:
            first = pool.submit(client.post_progress, b'{"msg":"1"}')
            server.heard(1)
            second = pool.submit(client.post_progress, b'{"msg":"2"}')
            # A beat does not wait for them.
            assert 200 == client.heartbeat().status
            assert 1 == len(server.heard(1, "progress"))
            release.set()
            assert [200, 200] == [first.result().status, second.result().status]
        assert [b"1", b"2"] == [r.body[8:9] for r in server.heard(2, "progress")]


def test_close_while_another_thread_speaks(connect):
    """Its connection is closed as soon as it is done, not kept."""
    release = threading.Event()
    with Scripted(progress=[Hold(release)]) as server:
        client = connect(server.config())
        with ThreadPoolExecutor(1) as pool:
            spoken = pool.submit(client.post_progress, b"{}")
            server.heard(1)
            client.close()
            release.set()
            assert 200 == spoken.result().status
        with server.changed:
            assert server.changed.wait_for(lambda: server.open == 0, 30)
