"""`/events`: slow readers and too many of them, who may read, and the end of the service."""

import asyncio
import ssl
import threading
import time
import urllib.error
import urllib.request
from itertools import takewhile
from typing import Any

import pytest

from reporter.aggregator.certificates import tls
from reporter.aggregator.http import Audience, Pace
from reporter.core.run.plan import Key
from reporter.core.run.progress import Progress
from tests.aggregators.served import BOUND, Aggregator, plan
from tests.integration.aggregator.event_stream import applied, serving, without_time
from tests.integration.aggregator_http import certs
from tests.integration.aggregator_http.scene import E2E, situation
from tests.integration.aggregator_http.wire import HANG

GRACE = 5.0


"""A stopping process waits so long for requests at work, seconds."""


@situation
async def test_heartbeats_are_told_without_a_new_revision():
    """Ages change all the time: told seldom, with the id that the reader already has."""
    async with serving() as scene:
        scene.store.record_heartbeat(E2E, time.monotonic() - 60, beat=True)
        reader = await scene.read()
        (first,) = await reader.until("snapshot")
        scene.store.record_heartbeat(E2E, time.monotonic(), beat=True)
        (event,) = await reader.until("entry")

        assert (60, 0) == (
            first.data["plugins"][0]["last-heartbeat"],
            event.data["last-heartbeat"],
        )
        assert first.id == event.id


@situation
async def test_comments_when_nothing_happens():
    """So that proxies keep the connection, and a peer that vanished is noticed."""
    async with serving(Pace(comment=0.05)) as scene:
        reader = await scene.read()
        await reader.until("snapshot")
        waiting = asyncio.create_task(reader.next())
        async with asyncio.timeout(HANG):
            while reader.comments < 3:
                await asyncio.sleep(0.01)
        waiting.cancel()


@situation
async def test_the_33rd_stream():
    """K16: 503; a place is free again as soon as a reader is gone."""
    async with serving() as scene:
        readers = [await scene.read() for _ in range(32)]
        for reader in readers:
            await reader.until("snapshot")
        refused = await scene.read()
        readers[7].cut()
        async with asyncio.timeout(HANG):
            while (admitted := await scene.read()).status == 503:
                await asyncio.sleep(0.01)

        assert [200] * 32 == [reader.status for reader in readers]
        assert (503, "5") == (refused.status, refused.headers["retry-after"])
        assert 200 == admitted.status


@situation
async def test_a_reader_that_does_not_read():
    """K16: closed when it takes nothing for its time; others see everything meanwhile."""
    nodes = [f"node-{number}" for number in range(5000)]
    run_plan = {"run": certs.RUN, "plugins": [{"name": "p", "nodes": nodes}]}
    async with serving(Pace(flush=0.02, patience=0.5), run_plan=run_plan) as scene:
        await scene.dial(buffer=4096)
        reader = await scene.read()
        (first,) = await reader.until("snapshot")
        key = Key("p", "node-77")
        await scene.progress(key, "news")
        entry, _ = await reader.until("run")
        assert "news" == entry.data["progress"]["msg"]
        await scene.connections(1)
        assert 5000 == len(first.data["plugins"])


@situation
async def test_what_a_slow_reader_gets():
    """It skips states, and in the end it knows what everybody knows."""
    nodes = [f"node-{number}" for number in range(2000)]
    run_plan = {"run": certs.RUN, "plugins": [{"name": "p", "nodes": nodes}]}
    async with serving(Pace(flush=0.01, patience=30.0), run_plan=run_plan) as scene:
        deaf = await scene.dial(buffer=4096)
        for number in range(50):
            for node in nodes[40::40]:
                update = Progress(msg=f"{number} {'x' * 500}")
                await scene.store.record_progress(Key("p", node), update, None, at=1.0)
            await scene.progress(Key("p", nodes[0]), f"{number} {'x' * 500}")
            await asyncio.sleep(0.01)
        slow = await scene.hear(deaf)
        revision = scene.store.snapshot().revision
        document: dict[str, Any] = {}
        entries = 0
        while document.get("revision") != revision:
            event = await slow.next()
            assert event is not None
            entries += event.name == "entry"
            document = applied(document, [event])

        assert without_time(await scene.status()) == without_time(document)
        assert entries < 50 * 50 / 2


@situation
async def test_who_may_read():
    """K15: as `/status`."""
    async with serving() as scene:
        assert 403 == (await scene.read(host="evil.example")).status
    async with serving(audience=Audience.ANY) as scene:
        assert 200 == (await scene.read(host="evil.example")).status


@situation
async def test_other_methods():
    """HEAD gets the head alone, the rest 405."""
    async with serving() as scene:
        head_only = await scene.read(method="HEAD")
        refused = await scene.read(method="POST")

        assert (200, "text/event-stream; charset=utf-8") == (
            head_only.status,
            head_only.headers["content-type"],
        )
        assert [] == await head_only.rest()
        assert 405 == refused.status


@situation
async def test_the_service_stops():
    """Streams end at once and without `end`: the run goes on, and readers will come back."""
    async with serving() as scene:
        reader = await scene.read()
        scene.app.close()
        events = await reader.rest()
        refused = await scene.read()

        assert ["snapshot"] == [event.name for event in events]
        assert 503 == refused.status


@situation
async def test_nothing_is_done_for_nobody():
    """When the last reader is gone no timer and no subscription is left."""
    async with serving() as scene:
        for _ in range(2):
            reader = await scene.read()
            await reader.until("snapshot")
            assert 1 == len(scene.store._published._subscribers)
            reader.cut()
            async with asyncio.timeout(HANG):
                while scene.store._published._subscribers:
                    await asyncio.sleep(0.005)
            await scene.connections(0)


@situation
async def test_over_tls():
    """K15: with a certificate that the listener knows; without one 403."""
    context = tls.worker_context(certs.authority().certificate, certs.server())
    context.verify_mode = ssl.CERT_OPTIONAL
    async with serving(audience=Audience.CERTIFIED, server=context) as scene:
        pair = certs.authority().pair("reader", "reader")
        known, unknown = [
            await scene.hear(
                await scene.dial(ask=False), certs.client_context(each), host="status.example"
            )
            for each in (pair, None)
        ]
        await scene.progress(E2E, "m")
        events = await known.until("run")

        assert (200, 403) == (known.status, unknown.status)
        assert ["snapshot", "entry", "run"] == [event.name for event in events]


def test_the_settings_of_streams(tmp_path):
    """How many there may be, how often they are written to, and what a reader may have missed."""
    flags = ("--max-event-streams", "1", "--event-comment-seconds", "1", "--event-history", "0")
    with Aggregator(tmp_path, plan("e2e", []), *flags) as aggregator:
        url = f"http://127.0.0.1:{aggregator.status_port}/events"
        with urllib.request.urlopen(url, timeout=BOUND) as stream:
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(url, timeout=BOUND)
            refused.value.close()
            began = time.monotonic()
            lines = list(takewhile(lambda line: line != b": still here\n", stream))
            waited = time.monotonic() - began
        *_, known = [line[4:].strip().decode() for line in lines if line.startswith(b"id: ")]
        aggregator.worker("e2e").post("global/e2e", msg="news", appendcompleted=1)
        again = urllib.request.Request(url, headers={"Last-Event-ID": known})
        end = time.monotonic() + BOUND
        while True:  # until it is noticed that the first reader is gone
            try:
                stream = urllib.request.urlopen(again, timeout=BOUND)
                break
            except urllib.error.HTTPError as error:
                error.close()
                assert time.monotonic() < end
                threading.Event().wait(0.02)
        with stream:
            events = [stream.readline() for _ in range(3)]

    assert 503 == refused.value.code
    assert waited < 10  # the default is 15
    assert b"event: snapshot\n" == events[2]


def test_a_process_that_stops(tmp_path):
    """SIGTERM ends the streams, and the process does not wait for its readers."""
    with Aggregator(tmp_path, plan("e2e", [])) as aggregator:
        url = f"http://127.0.0.1:{aggregator.status_port}/events"
        with urllib.request.urlopen(url, timeout=BOUND) as stream:
            first = [stream.readline() for _ in range(3)]
            began = time.monotonic()
            code = aggregator.stop()
            rest = stream.read()

    assert [b"retry: 3000\n", b"\n", b"event: snapshot\n"] == first
    assert (0, False) == (code, b"event: end" in rest)
    assert time.monotonic() - began < GRACE
