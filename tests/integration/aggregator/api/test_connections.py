"""Connections under pressure: what is slow, too large or malformed harms nobody else."""

import asyncio
import contextlib
import errno
import os
import resource
import socket

import pytest

from tests.aggregators import run_certificates as certs
from tests.integration.aggregator.api.scene import (
    E2E,
    HEALTH,
    NODE1,
    PROGRESS,
    RESULT,
    serving,
    situation,
)
from tests.integration.aggregator.api.wire import (
    HANG,
    Reply,
    Wire,
    chunks,
    connected,
    head,
    request,
)

SOON = 10.0
"""What takes a second may take so long on a busy machine."""
STALL = b"\x16\x03\x01\x02\x00\x01\x00"  # the beginning of a handshake
BRISK = {
    "keep_alive": 0.4,
    "limits": {
        "HEADER": 0.4,
        "BODY_SILENCE": 0.4,
        "UPLOAD_RATE_AFTER": 0.8,
        "DISCARD": 1.0,
    },
}


async def beat(wire: Wire) -> Reply:
    """Send a heartbeat of e2e on a connection that is there."""
    await wire.send(request("GET", HEALTH))
    return await wire.reply()


@situation
async def test_one_stalled_upload(tmp_path):
    """A34: another upload and an update are answered at once, the stalled one with 503."""
    async with serving(tmp_path, **BRISK) as scene, scene.connect() as slow:
        await slow.send(head("PUT", RESULT[E2E], "Content-Length: 100"), b"half")
        await scene.holds(slow)
        async with asyncio.timeout(SOON):
            good, update = await scene.put(NODE1, b"good"), await scene.post(b"{}")
        stalled = await slow.reply()

        assert [200, 200] == [good.status, update.status]
        assert (503, b"result e2e/global: upload stalled\n") == stalled.said
        assert int(stalled.headers["retry-after"]) > 0
        assert (b"", True) == (await slow.rest(), scene.entry(E2E).retrying)


@situation
async def test_fifty_stalled_uploads_and_a_good_one(tmp_path):
    """A34, A37: places are taken per key, so other keys are served as if nobody stalled."""
    async with serving(tmp_path) as scene, contextlib.AsyncExitStack() as stack:
        for _ in range(50):
            wire = await stack.enter_async_context(scene.connect())
            await wire.send(head("PUT", RESULT[E2E], "Content-Length: 100"), b"half")
        async with asyncio.timeout(SOON):
            good, beat = await scene.put(NODE1, b"good"), await scene.ask("GET", HEALTH)

        assert [200, 200] == [good.status, beat.status]


@situation
async def test_a_body_of_a_few_bytes_a_second(tmp_path):
    """A37: never silent, yet too slow on average: 503."""
    async with serving(tmp_path, **BRISK) as scene, scene.connect() as wire:
        await wire.send(head("PUT", RESULT[E2E], "Content-Length: 10000"))
        answer = asyncio.create_task(wire.reply())
        while not answer.done():
            await wire.send(b"x")
            await asyncio.wait([answer], timeout=0.05)

        assert (503, b"result e2e/global: upload stalled\n") == answer.result().said


@pytest.mark.parametrize("before", [b"", request("GET", HEALTH)])
@pytest.mark.parametrize(
    ("start", "drip"),
    [(b"", b""), (b"GE", b""), (b"GET /", b"x"), (b"GET / HTTP/1.1\r\nHost: a\r\n", b"X: y\r\n")],
)
@situation
async def test_a_head_that_never_ends(tmp_path, before, start, drip):
    """A37: silence, a head that stops, and one that drips: closed when its time is over."""
    async with serving(tmp_path, **BRISK) as scene, scene.connect() as wire:
        if before:
            await wire.send(before)
            assert 200 == (await wire.reply()).status
        await wire.send(start)
        closed = asyncio.create_task(wire.rest())
        while not closed.done():
            await wire.send(drip)
            await asyncio.wait([closed], timeout=0.05)

        assert (int(bool(before)), b"") == (len(scene.seen.requests), closed.result())


@situation
async def test_a_hundred_dripping_heads_and_a_good_upload(tmp_path):
    """A37: a good upload meanwhile."""
    async with serving(tmp_path) as scene, contextlib.AsyncExitStack() as stack:
        for _ in range(100):
            wire = await stack.enter_async_context(scene.connect())
            await wire.send(b"PUT /api/v1/resu")
        async with asyncio.timeout(SOON):
            assert 200 == (await scene.put(E2E, b"good")).status


@situation
async def test_an_idle_connection_is_closed(tmp_path):
    """Kept for a while after an answer, then closed."""
    async with serving(tmp_path, **BRISK) as scene, scene.connect() as wire:
        await wire.send(request("GET", HEALTH))
        reply = await wire.reply()

        assert (200, b"") == (reply.status, await wire.rest())


@pytest.mark.parametrize(
    ("case", "flood"),
    [
        ("target", head("GET", "/" + "x" * 9000)),
        ("one header", head("GET", HEALTH, "X: " + "x" * 40_000)),
        ("a little more", head("GET", HEALTH, *(f"X-{n}: {'x' * 900}" for n in range(38)))),
        ("headers together", head("GET", HEALTH, *(f"X-{n}: {'x' * 900}" for n in range(60)))),
        ("number", head("GET", HEALTH, *(f"X-{n}: x" for n in range(101)))),
        ("without an end", b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 90 + b"Z: " + b"z" * 2_000_000),
        ("many without an end", b"GET / HTTP/1.1\r\n" + (b"X: " + b"x" * 900 + b"\r\n") * 90),
        ("small ones without an end", b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 200_000),
    ],
)
@situation
async def test_a_flood_of_headers(tmp_path, case, flood):
    """431 is seen although the client has sent more than anybody wants to read."""
    async with serving(tmp_path) as scene, scene.connect() as wire:
        await wire.send(flood)
        reply = await wire.reply()

        assert (431, "close", b"") == (
            reply.status,
            reply.headers["connection"],
            await wire.rest(),
        )
        assert [("other", 431)] == scene.seen.requests


@situation
async def test_a_head_within_its_limits(tmp_path):
    """A hundred headers of together less than 32 KiB are taken, in one go or in many."""
    async with serving(tmp_path) as scene, scene.connect() as wire:
        made = head("GET", HEALTH, *(f"X-{n}: {'x' * 300}" for n in range(99)))
        await wire.send(made)
        whole = await wire.reply()
        for start in range(0, len(made), 5000):
            await wire.send(made[start : start + 5000])
            await asyncio.sleep(0)

        assert [200, 200] == [whole.status, (await wire.reply()).status]


@situation
async def test_a_small_head_with_a_large_body(tmp_path):
    """What counts is the head, not what comes in the same packet."""
    async with serving(tmp_path) as scene:
        assert 200 == (await scene.put(E2E, b"x" * 300_000)).status


@pytest.mark.parametrize(
    "made",
    [
        b"NONSENSE\r\n\r\n",
        b"\x16\x03\x01\x02\x00\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET  / HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost : a\r\n\r\n",
        b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
        b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nX: \x00\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET http://[ HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET //[::1 HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET https://a:b:c/ HTTP/1.1\r\nHost: a\r\n\r\n",
    ],
)
@situation
async def test_malformed_requests(tmp_path, made):
    """400, or 404 where only the target is odd; never a second request out of the remains."""
    async with serving(tmp_path) as scene, scene.connect() as wire:
        await wire.send(made, request("GET", HEALTH))
        reply = await wire.reply()

        assert reply.status in (400, 404)
        if reply.status == 400:
            assert b"" == await wire.rest()


@situation
async def test_chunk_extensions_without_end(tmp_path):
    """They are no part of the body: whoever sends only those is silent."""
    async with serving(tmp_path, **BRISK) as scene, scene.connect() as wire:
        await wire.send(head("PUT", RESULT[E2E], "Transfer-Encoding: chunked"), b"5;a")
        answer = asyncio.create_task(wire.reply())
        while not answer.done():
            await wire.send(b"a" * 1000)
            await asyncio.wait([answer], timeout=0.05)

        assert 503 == answer.result().status


@situation
async def test_small_chunks_with_extensions(tmp_path):
    """Allowed, and no part of the body."""
    async with serving(tmp_path) as scene, scene.connect() as wire:
        body = b"1;a=b\r\nx\r\n" * 3000 + b"0;c\r\nTrailer: t\r\n\r\n"
        await wire.send(head("PUT", RESULT[E2E], "Transfer-Encoding: chunked"), body)

        assert 200 == (await wire.reply()).status
        assert {"plugins/e2e/results/global/result": b"x" * 3000} == scene.files()


@situation
async def test_pipelined_requests(tmp_path):
    """Answered in order, as many as come; the one that ends the connection is the last."""
    async with serving(tmp_path) as scene, scene.connect() as wire:
        update = request("POST", PROGRESS, b'{"appendcompleted":1}')
        chunked = head("POST", PROGRESS, "Transfer-Encoding: chunked") + chunks([b"{}"])
        await wire.send(update * 100, chunked, request("PUT", RESULT[E2E], b"x"), update)
        codes = [(await wire.reply()).status for _ in range(102)]

        assert ([200] * 102, b"") == (codes, await wire.rest())
        assert 0 == scene.store.snapshot().progress[E2E].progress.completed


@situation
async def test_http_1_0(tmp_path):
    """Served, and closed after the answer."""
    async with serving(tmp_path) as scene, scene.connect() as wire:
        await wire.send(f"GET {HEALTH} HTTP/1.0\r\nConnection: keep-alive\r\n\r\n".encode())
        reply = await wire.reply()

        assert (200, "close", b"") == (
            reply.status,
            reply.headers["connection"],
            await wire.rest(),
        )


@situation
async def test_a_client_that_asks_for_the_end(tmp_path):
    """`Connection: close` is answered in kind."""
    async with serving(tmp_path) as scene, scene.connect() as wire:
        await wire.send(request("GET", HEALTH, None, "Connection: close"))
        reply = await wire.reply()

        assert ("close", b"") == (reply.headers["connection"], await wire.rest())


@situation
async def test_an_upgrade_nobody_offers(tmp_path):
    """Ignored; the connection goes on as it was."""
    async with serving(tmp_path) as scene, scene.connect() as wire:
        asks = ("Connection: Upgrade", "Upgrade: websocket")
        await wire.send(request("GET", HEALTH, None, *asks), request("GET", HEALTH))

        assert [200, 200] == [(await wire.reply()).status, (await wire.reply()).status]


@situation
async def test_a_keep_alive_after_an_early_answer_with_its_body(tmp_path):
    """An early answer to a request that was whole leaves the connection; to another it ends it."""
    async with serving(tmp_path) as scene, scene.connect() as wire:
        await wire.send(request("POST", "/nowhere", b"{}"), request("GET", HEALTH))
        kept = [(await wire.reply()).status, (await wire.reply()).status]
        await wire.send(head("POST", "/nowhere", "Content-Length: 5"), b"ab")
        ends = await wire.reply()
        await wire.send(b"cde", request("GET", HEALTH))

        assert ([404, 200], 404, "close", b"") == (
            kept,
            ends.status,
            ends.headers["connection"],
            await wire.rest(),
        )


@situation
async def test_many_connections_are_not_kept(tmp_path):
    """Above the number that is kept, each answer ends its connection; the others stay."""
    pairs = [certs.authority().pair("e2e", "e2e") for _ in range(3)]
    house = {"connections": 2}
    async with serving(tmp_path, **house) as scene, contextlib.AsyncExitStack() as stack:
        kept = [await stack.enter_async_context(scene.connect(pair)) for pair in pairs[:2]]
        for wire in kept:
            assert "connection" not in (await beat(wire)).headers
        third = await scene.ask("GET", HEALTH, pair=pairs[2])

        assert (200, "close") == (third.status, third.headers["connection"])
        await scene.seen.until(lambda: len(scene.seen.requests) == 3)
        for wire in kept:
            assert 200 == (await beat(wire)).status


@situation
async def test_one_peer_keeps_a_quarter(tmp_path):
    """Above it each of its answers ends a connection; another peer's stays."""
    house = {"connections": 8}
    async with serving(tmp_path, **house) as scene, contextlib.AsyncExitStack() as stack:
        wires = [await stack.enter_async_context(scene.connect()) for _ in range(3)]
        other = await stack.enter_async_context(scene.connect(certs.client("sysd")))
        ends = ["connection" in (await beat(wire)).headers for wire in wires]
        target = HEALTH.replace("global/e2e", "by-node/node1/sysd")
        await other.send(request("GET", target))

        assert [True, False, False] == ends
        assert "connection" not in (await other.reply()).headers


@situation
async def test_idle_connections_of_one_peer_in_a_full_house(tmp_path):
    """They give way to others, whoever has asked nothing first; requests at work stay."""
    house = {"connections": 4, "limits": {"HANDSHAKES": 1}}
    async with serving(tmp_path, **house) as scene, contextlib.AsyncExitStack() as stack:
        busy = await stack.enter_async_context(scene.connect())
        await busy.send(head("PUT", RESULT[E2E], "Content-Length: 4"), b"ha")
        await scene.holds(busy)
        idle = [await stack.enter_async_context(scene.connect()) for _ in range(3)]
        for _ in range(5):
            async with asyncio.timeout(SOON):
                found = await scene.ask("GET", HEALTH, pair=certs.client("e2e"))
            assert 200 == found.status
        await busy.send(b"lf")

        assert 200 == (await busy.reply()).status
        assert b"" == await idle[0].rest()


@situation
async def test_a_house_full_of_requests_at_work(tmp_path):
    """Who comes then waits for a place, which is nobody's silence, and is served after."""
    house = {"connections": 1, "limits": {"HANDSHAKES": 1}}
    async with (
        serving(tmp_path, **house) as scene,
        scene.connect(certs.authority().pair("a", "e2e")) as one,
        scene.connect(certs.authority().pair("b", "e2e")) as two,
    ):
        for wire in (one, two):
            await wire.send(head("PUT", RESULT[E2E], "Content-Length: 4"), b"ha")
            await scene.holds(wire)
        third = asyncio.create_task(scene.ask("GET", HEALTH))
        async with asyncio.timeout(HANG):
            while not scene.listener.full_seconds:
                await asyncio.sleep(0.005)
        assert not third.done()
        await one.send(b"lf")

        assert 200 == (await one.reply()).status
        assert 200 == (await asyncio.wait_for(third, HANG)).status
        full = scene.listener.full_seconds
        await asyncio.sleep(0.05)
        assert 0 < full == scene.listener.full_seconds


@pytest.mark.parametrize("spoken", [b"", STALL], ids=["silent", "stalled"])
@situation
async def test_peers_of_one_address_that_do_not_finish_their_handshake(tmp_path, spoken):
    """More of them than may wait: whoever comes from elsewhere is served at once."""
    limits = {"HANDSHAKES": 8, "HANDSHAKES_PER_ADDRESS": 2}
    house = {"waiting_handshakes": 16, "limits": limits}
    async with serving(tmp_path, **house) as scene, contextlib.AsyncExitStack() as stack:
        for _ in range(60):
            wire = await stack.enter_async_context(
                connected(scene.address, None, source="127.0.0.9")
            )
            await wire.send(spoken)
        for _ in range(10):
            async with asyncio.timeout(1.0):
                assert 200 == (await scene.ask("GET", HEALTH)).status

        assert 8 + 16 >= scene.listener.connections
        assert {("timeout", "127.0.0.9")} >= set(scene.seen.handshakes)


@situation
async def test_stalled_handshakes_make_room_for_a_neighbour(tmp_path):
    """Of their own address too, after a moment: workers behind one address share its fate."""
    limits = {"HANDSHAKE": 2 * HANG, "HANDSHAKES": 4, "HANDSHAKES_PER_ADDRESS": 2}
    async with serving(tmp_path, limits=limits) as scene, contextlib.AsyncExitStack() as stack:
        stalled = [
            await stack.enter_async_context(connected(scene.address, None)) for _ in range(6)
        ]
        for wire in stalled:
            await wire.send(STALL)
        async with asyncio.timeout(HANG):
            assert 200 == (await scene.ask("GET", HEALTH)).status
            assert b"" == await stalled[0].rest()


@situation
async def test_a_crowd_from_one_address(tmp_path):
    """A run's workers behind one address come back all at once: each has its turn."""
    limits = {"HANDSHAKE": HANG, "HANDSHAKES": 4, "HANDSHAKES_PER_ADDRESS": 2}
    async with serving(tmp_path, limits=limits) as scene:
        replies = await asyncio.gather(*(scene.ask("GET", HEALTH) for _ in range(100)))

        assert {200} == {reply.status for reply in replies}
        assert [] == scene.seen.handshakes


@situation
async def test_a_client_that_does_not_take_its_answers(tmp_path):
    """It pipelines and never reads: reading from it stops, others are served."""
    async with serving(tmp_path) as scene, scene.connect() as deaf:
        flood = asyncio.create_task(deaf.send(request("GET", HEALTH) * 200_000))
        async with asyncio.timeout(SOON):
            reply = await scene.put(NODE1, b"good")
        flood.cancel()
        await asyncio.gather(flood, return_exceptions=True)

        assert 200 == reply.status


@situation
async def test_an_upload_on_its_way_may_end_while_the_listener_closes(tmp_path):
    """What has been sent already is not sent in vain; an idle connection is closed at once."""
    async with serving(tmp_path) as scene, scene.connect() as idle, scene.connect() as wire:
        await idle.send(request("POST", PROGRESS, b"{}"))
        assert 200 == (await idle.reply()).status
        await wire.send(request("PUT", RESULT[E2E], b"12345678")[:-4])
        await scene.holds(wire)
        closing = asyncio.ensure_future(scene.listener.close(grace=SOON))
        assert b"" == await idle.rest()
        await wire.send(b"5678")
        reply = await wire.reply()
        await asyncio.wait_for(closing, SOON)

        assert (200, "close") == (reply.status, reply.headers["connection"])


@situation
async def test_the_listener_ends_what_hangs(tmp_path):
    """Stalled uploads and idle connections do not hold up its end."""
    async with serving(tmp_path) as scene, scene.connect() as idle, scene.connect() as slow:
        await slow.send(head("PUT", RESULT[E2E], "Content-Length: 100"), b"half")
        await scene.holds(slow)
        assert scene.listener.listening
        await asyncio.wait_for(scene.listener.close(grace=0.1), SOON)

        assert (False, 0) == (scene.listener.listening, scene.listener.connections)
        assert b"" == await idle.rest()


@situation
async def test_a_listener_whose_socket_was_closed_under_it(tmp_path):
    """It says so when it is asked."""
    async with serving(tmp_path) as scene:
        os.close(scene.listener._socket.detach())

        assert not scene.listener.listening


@situation
async def test_no_more_files(tmp_path):
    """The system has none left for a connection: told, and tried again a little later."""
    async with serving(tmp_path) as scene:
        sock = socket.create_connection(scene.address)
        free = os.dup(sock.fileno())
        os.close(free)
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (free, hard))
        try:
            await scene.seen.until(lambda: scene.seen.surprises)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        context = certs.client_context(certs.client("e2e"))
        reader, writer = await asyncio.wait_for(
            asyncio.open_connection(sock=sock, ssl=context, server_hostname="127.0.0.1"), HANG
        )
        wire = Wire(reader, writer)
        await wire.send(request("GET", HEALTH))
        assert 200 == (await wire.reply()).status
        wire.cut()

        assert [errno.EMFILE] == [error.errno for error in scene.seen.surprises]
        scene.seen.surprises.clear()
