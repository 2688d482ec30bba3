"""`reporter.kube.api`'s watch of a Pod: what it yields, how it ends, and how it is ended."""

import gc
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from reporter import errors
from reporter.errors import Forbidden, KubeError, Unauthorized, Unavailable
from reporter.kube.api import KubeApi
from reporter.kube.stream import Watch
from tests.calm import Calm
from tests.fakekube import (
    Answer,
    CloseMidStream,
    ErrorEvent,
    FakeKube,
    Hang,
    Line,
    Reset,
    Silence,
    make_job,
    make_pod,
    terminated,
)
from tests.integration.kube.connecting import NAMESPACE, POD, full_backlog, watch

LONG = 30.0
"""Nothing in these tests may take so long; a close has a bound of a sixth of it."""


@pytest.fixture
def fake() -> Iterator[FakeKube]:
    with FakeKube() as fake:
        fake.create_pod(make_pod(fake.create_job(make_job()), name=POD))
        yield fake


class Reader:
    """Iterates a watch in a thread of its own and keeps what came, and how it ended."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        try:
            for event in self.watch:
                self.events.append(event)
        except BaseException as error:
            self.error = error

    def join(self) -> "Reader":
        self._thread.join(LONG)
        assert not self._thread.is_alive()
        return self

    def close(self) -> "Reader":
        """Close the watch; the iteration must end at once and without an error."""
        started = time.monotonic()
        self.watch.close()
        self.join()
        assert time.monotonic() - started < LONG / 6
        assert self.error is None
        return self


def types(reader: Reader) -> list[str]:
    return [kind for kind, _ in reader.events]


def test_it_starts_with_the_present_state_and_follows(fake: FakeKube, api: KubeApi) -> None:
    """ADDED, a bookmark, then every change, and DELETED with the last state."""
    reader = Reader(watch(api))
    fake.wait_for(lambda: len(reader.events) == 2)
    exited = make_pod(make_job(), adapter_state=terminated(3))["status"]
    fake.update_pod(POD, lambda pod: pod | {"status": exited})
    fake.wait_for(lambda: len(reader.events) == 3)
    fake.delete_pod(POD)
    fake.wait_for(lambda: len(reader.events) == 5)
    reader.close()

    assert ["ADDED", "BOOKMARK", "MODIFIED", "MODIFIED", "DELETED"] == types(reader)
    assert exited == reader.events[2][1]["status"]
    assert "deletionTimestamp" in reader.events[4][1]["metadata"]


def test_the_request_is_the_published_one(fake: FakeKube, api: KubeApi) -> None:
    """One Pod by field selector, bookmarks, the server's timeout, no resourceVersion."""
    next(iter(watch(api)))
    (entry,) = fake.journal

    assert entry.path == "/api/v1/namespaces/default/pods"
    assert {
        "watch": "true",
        "fieldSelector": "metadata.name=pod",
        "timeoutSeconds": "300",
        "allowWatchBookmarks": "true",
    } == entry.query


def test_the_servers_timeout_is_a_normal_end(fake: FakeKube, api: KubeApi) -> None:
    """The iteration just ends; the caller watches again."""
    reader = Reader(watch(api, server_timeout=1)).join()

    assert reader.error is None
    assert ["ADDED", "BOOKMARK"] == types(reader)


def test_bookmarks_keep_a_quiet_watch_alive(fake: FakeKube, api: KubeApi) -> None:
    """Silence is counted from the last sign of life, not from the start."""
    fake.bookmark_every = 0.1
    reader = Reader(watch(api, server_timeout=2, silence=1.0)).join()

    assert reader.error is None
    assert len(reader.events) > 10


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (Answer(403), Forbidden),
        (Answer(429), Unavailable),
        (Answer(500), Unavailable),
        (Answer(302, {"Location": "/api/v1/namespaces/default/pods"}, b""), Unavailable),
        (Reset(), Unavailable),
        (ErrorEvent(410, after=0), Unavailable),
        (ErrorEvent(500, after=2), Unavailable),
        (CloseMidStream(after=1), Unavailable),
        (Line(b"{not json\n", after=1), Unavailable),
        (Line(b"[]\n", after=1), Unavailable),
        (Line(b'{"type": "MODIFIED"}\n', after=1), Unavailable),
        (Line(b'{"type": "MODIFIED", "object": {"kind": "Job"}}\n', after=1), Unavailable),
        (Line(b'{"type": ["ADDED"], "object": {"kind": "Pod"}}\n', after=1), Unavailable),
        (Line(b'{"type": "NEW", "object": {"kind": "Pod"}}\n', after=1), Unavailable),
        (Line(b"[" * 200_000 + b"\n", after=1), Unavailable),
        (Line(b"\xff\n", after=1), Unavailable),
        (Line(b'{"x": "' + b"x" * 5_000_000, after=1), Unavailable),
    ],
    ids=lambda value: repr(value)[:60],
)
def test_a_watch_that_breaks_ends_with_an_error(
    fake: FakeKube, api: KubeApi, fault: Any, error: type[KubeError]
) -> None:
    """Refused, broken, ended by the server, or carrying what no API server sends."""
    fake.fail(fault)
    reader = Reader(watch(api)).join()

    assert error is type(reader.error)
    assert len(fake.journal) == 1
    assert getattr(fault, "after", 0) == len(reader.events)


def test_a_stream_that_ends_inside_an_event_is_an_error(fake: FakeKube, api: KubeApi) -> None:
    """Half a line at the clean end of the body."""
    fake.fail(Answer(200, body=b'{"type": "ADDED", "obj'))
    reader = Reader(watch(api)).join()

    assert Unavailable is type(reader.error)


@pytest.mark.parametrize("fault", [Hang(), Silence(), Silence(after=1)], ids=str)
def test_silence_is_a_dead_connection(fake: FakeKube, api: KubeApi, fault: Any) -> None:
    """Half-open: no error ever comes from the network, before the answer or after an event."""
    fake.fail(fault)
    started = time.monotonic()
    reader = Reader(watch(api, silence=0.5)).join()

    # Before the first byte of an answer it is not the watch that is silent.
    expected = Unavailable if isinstance(fault, Hang) else errors.Silence
    assert expected is type(reader.error)
    assert 0.4 < time.monotonic() - started < 5


def test_a_401_is_tried_once_more_with_a_fresh_token(fake: FakeKube, api: KubeApi) -> None:
    """As with every request."""
    api.get("Pod", NAMESPACE, POD)
    fake.revoke(fake.read_token())
    reader = Reader(watch(api)).join()
    assert Unauthorized is type(reader.error)

    old = fake.read_token()
    fake.write_token(fake.token("reporter"))
    fake.revoke(old)
    first, _ = next(iter(watch(api)))

    assert first == "ADDED"


def test_requests_go_on_beside_a_watch(fake: FakeKube, api: KubeApi) -> None:
    """The watch has a connection of its own."""
    reader = Reader(watch(api))
    fake.wait_for(lambda: reader.events)

    assert fake.pod(POD) == api.get("Pod", NAMESPACE, POD)
    reader.close()


# Ending it from another thread


def closed_while(fake: FakeKube, reader: Reader, reached: Callable[[], Any]) -> Reader:
    fake.wait_for(reached)
    return reader.close()


def test_close_while_streaming(fake: FakeKube, api: KubeApi) -> None:
    """The reader waits for the next event."""
    reader = Reader(watch(api))
    closed_while(fake, reader, lambda: len(reader.events) == 2)

    fake.wait_for(lambda: fake.journal[0].ended)


def test_close_while_the_server_has_not_answered(fake: FakeKube, api: KubeApi) -> None:
    """The reader waits for the answer's head."""
    fake.fail(Hang())
    reader = Reader(watch(api))
    closed_while(fake, reader, lambda: fake.journal)

    assert [] == reader.events


def test_close_during_the_handshake(fake: FakeKube) -> None:
    """The peer has accepted and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as mute:
        server = f"https://127.0.0.1:{mute.getsockname()[1]}"
        api = KubeApi.connect(server, ca_file=fake.ca_file, token_file=fake.token_file)
        reader = Reader(watch(api))
        peer, _ = mute.accept()
        with peer:
            peer.recv(1)
            with Calm() as calm:
                reader.close()

    assert calm.seconds < 1.5


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux' full backlog that drops packets")
def test_close_while_connecting(fake: FakeKube) -> None:
    """TCP connect has no answer and would go on for three seconds."""
    with full_backlog() as server:
        api = KubeApi.connect(server, ca_file=fake.ca_file, token_file=fake.token_file)
        before = sockets_connecting()
        reader = Reader(watch(api))
        fake.wait_for(lambda: sockets_connecting() > before)
        with Calm() as calm:
            reader.close()

    assert calm.seconds < 1.5


def sockets_connecting() -> int:
    """Count TCP sockets in state SYN_SENT on this machine."""
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    return sum(line.split()[3] == "02" for line in lines)


def test_close_before_it_began(fake: FakeKube, api: KubeApi) -> None:
    """Nothing is sent any more, and nothing comes."""
    closed = watch(api)
    closed.close()
    closed.close()

    assert [] == list(closed)
    assert [] == fake.journal


@pytest.mark.skipif(sys.platform != "linux", reason="counts descriptors in /proc")
def test_watches_leave_no_descriptor_behind(fake: FakeKube, api: KubeApi) -> None:
    """However they end: by break, by close, by refusal, by silence."""
    counts = []
    for _ in range(3):
        next(iter(watch(api)))
        reader = Reader(watch(api))
        closed_while(fake, reader, lambda reader=reader: reader.events)
        fake.fail(Answer(403))
        Reader(watch(api)).join()
        fake.fail(Silence())
        Reader(watch(api, silence=0.1)).join()
        fake.wait_for(lambda: all(entry.ended for entry in fake.journal))
        fake.stop()
        gc.collect()
        counts.append(len(os.listdir("/proc/self/fd")))
        fake.start()

    assert [counts[0]] * 3 == counts
