"""Progress updates and heartbeats over the wire."""

import asyncio
import contextlib
import json
from types import SimpleNamespace

import pytest

from reporter.aggregator.api.progress import PROGRESS_BODY, ProgressUpdates
from reporter.ledger import ProgressTaken, StoreFull
from reporter.run.entry import State
from reporter.run.plan import parse_plan
from reporter.run.progress import Progress, UpdateId
from reporter.run.progress_pieces import AT_ONCE
from tests.aggregators import run_certificates as certs
from tests.aggregators.contexts import context
from tests.aggregators.stores import QuickStore
from tests.integration.aggregator.api.scene import (
    E2E,
    HEALTH,
    NODE1,
    PLAN,
    PROGRESS,
    serving,
    situation,
)
from tests.integration.aggregator.api.wire import HANG, chunks, head, request

BY_NODE = "/api/v1/progress/by-node/node1/sysd"
CONTINUE = "Expect: 100-continue"


@pytest.mark.parametrize(("target", "key"), [(PROGRESS, E2E), (BY_NODE, NODE1)])
@situation
async def test_an_update_is_visible_at_once(tmp_path, target, key):
    """A20, A21: global and by node, with the time of its arrival."""
    async with serving(tmp_path) as scene:
        reply = await scene.ask("POST", target, b'{"msg":"m","total":5,"completed":1}')
        sent = scene.store.snapshot().progress[key]

        assert (200, b"") == reply.said
        assert "connection" not in reply.headers
        assert Progress(msg="m", total=5, completed=1) == sent.progress


@pytest.mark.parametrize(
    ("target", "pair", "line"),
    [
        ("/api/v1/progress/global/nope", "e2e", "nope/global unexpected"),
        (PROGRESS, "sysd", "e2e/global not permitted for this client certificate"),
    ],
)
@situation
async def test_an_update_that_is_not_ones_own(tmp_path, target, pair, line):
    """A22, A35: 403 before the body is read."""
    async with serving(tmp_path) as scene, scene.connect(certs.client(pair)) as wire:
        await wire.send(head("POST", target, "Content-Length: 1000"))
        reply = await wire.reply()

        assert (403, f"progress update for {line}\n".encode()) == reply.said
        assert "close" == reply.headers["connection"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b'{"total":"9"}',
        b'{"total":9.5}',
        b'{"timestamp":"yesterday"}',
        b"[" * 5000,
        b'{"appendcompleted":-1}',
    ],
)
@situation
async def test_bodies_that_are_no_update(tmp_path, body):
    """A23, A50: 400 with the reason; the stored value is what it was."""
    async with serving(tmp_path) as scene:
        await scene.post(b'{"msg":"before"}')
        reply = await scene.post(body)

        assert 400 == reply.status
        assert reply.body.startswith(b"invalid progress update: ")
        assert "before" == scene.store.snapshot().progress[E2E].progress.msg


@situation
async def test_names_in_the_body_do_not_count(tmp_path):
    """A24: the path says whose update it is."""
    async with serving(tmp_path) as scene:
        await scene.post(b'{"name":"zzz","node":"n9","msg":"m"}')

        assert [E2E] == list(scene.store.snapshot().progress)


@situation
async def test_progress_after_the_result(tmp_path):
    """A27: accepted, and the entry stays complete."""
    async with serving(tmp_path) as scene:
        await scene.put(E2E, b"result")
        reply = await scene.post(b'{"msg":"more"}')

        assert (200, State.COMPLETE) == (reply.status, scene.entry(E2E).state)


@situation
async def test_ids_of_updates(tmp_path):
    """A49: an append sent twice counts once."""
    async with serving(tmp_path) as scene:
        append = b'{"appendcompleted":2,"appendtotals":true}'
        for _ in range(2):
            assert 200 == (await scene.post(append, "Progress-Id: a/1")).status
        sent = scene.store.snapshot().progress[E2E]

        assert (2, UpdateId("a", 1)) == (sent.progress.completed, sent.id)


@pytest.mark.parametrize("header", ["Progress-Id: ", "Progress-Id: a", "Progress-Id: a/1/2"])
@situation
async def test_an_id_that_is_none(tmp_path, header):
    """400: without it a repeated append would count twice."""
    async with serving(tmp_path) as scene:
        reply = await scene.post(b'{"appendcompleted":2}', header)

        assert (400, b"invalid progress update: Progress-Id: not EPOCH/SEQ\n") == reply.said
        assert {} == scene.store.snapshot().progress


@situation
async def test_a_large_update(tmp_path):
    """A50: a mebibyte is taken; with one more byte: 413, unread where a length says so."""
    async with serving(tmp_path) as scene, scene.connect() as wire, scene.connect() as other:
        whole = await scene.post(b"{}" + b" " * (2**20 - 2))
        await wire.send(head("POST", PROGRESS, f"Content-Length: {2**20 + 1}"))
        declared = await wire.reply()
        await other.send(head("POST", PROGRESS, "Transfer-Encoding: chunked"))
        await other.send(chunks([b" " * 2**19, b" " * 2**19, b" "]))
        counted = await other.reply()

        assert 200 == whole.status
        line = b"progress update for e2e/global exceeds 1048576 bytes\n"
        assert (413, line) == declared.said
        assert (413, line) == counted.said


@pytest.mark.parametrize(
    "unit", [b"[" * 28 + b"]" * 28 + b",", b'{"a":{"b":[]}},'], ids=["nested", "members"]
)
@situation
async def test_a_large_update_of_too_many_parts(tmp_path, unit):
    """Seconds of work, in which no other large one would have its turn: 413."""
    async with serving(tmp_path) as scene:
        body = b'{"x":[' + unit * ((2**20 - 10) // len(unit)) + b"1]}"
        reply = await scene.post(body)

        assert (413, b"progress update for e2e/global has too many parts\n") == reply.said
        assert {} == scene.store.snapshot().progress


@situation
async def test_a_large_update_of_long_texts(tmp_path):
    """Full of escapes, as a log in another script than Latin is."""
    async with serving(tmp_path) as scene:
        texts = ["\u6d4b\n" * 24] * 5_300
        body = json.dumps({"failures": texts}).encode()
        assert 900_000 < len(body) <= 2**20
        reply = await scene.post(body)

        assert 200 == reply.status
        assert 5_300 == scene.store.snapshot().progress[E2E].progress.failures_total


@pytest.mark.parametrize("size", [AT_ONCE, AT_ONCE + 1, 2 * AT_ONCE, 2**16])
@pytest.mark.parametrize("way", ["with its head", "behind its head", "in chunks"])
@situation
async def test_only_a_short_update_is_parsed_at_once(tmp_path, monkeypatch, way, size):
    """However it comes: of a longer one the parser never gets as much in one piece."""
    handed = []
    parse = json.JSONDecoder.raw_decode

    def counting(decoder, text, idx=0):
        handed.append(len(text))
        return parse(decoder, text, idx)

    start, end = b'{"errors":["a"', b'],"msg":"m"}'
    names, rest = divmod(size - len(start) - len(end), len(b',"b"'))
    body = start + b',"b"' * names + b" " * rest + end
    assert size == len(body)
    monkeypatch.setattr(json.JSONDecoder, "raw_decode", counting)
    async with serving(tmp_path) as scene, scene.connect() as wire:
        if way == "with its head":
            await wire.send(request("POST", PROGRESS, body))
        elif way == "behind its head":
            await wire.send(head("POST", PROGRESS, f"Content-Length: {size}", CONTINUE))
            assert 100 == (await wire.reply()).status
            await wire.send(body)
        else:
            await wire.send(head("POST", PROGRESS, "Transfer-Encoding: chunked", CONTINUE))
            assert 100 == (await wire.reply()).status
            await wire.send(chunks([body]))
        reply = await wire.reply()
        sent = scene.store.snapshot().progress[E2E].progress

    assert (200, 1 + names) == (reply.status, sent.errors_total)
    assert (size == AT_ONCE) == (size in handed), handed
    assert AT_ONCE >= max(handed)


@situation
async def test_large_updates_wait_for_their_turn(tmp_path):
    """Eight are in memory at a time, whoever sends them; the next has its turn when one ends."""
    silent = {"BODY_SILENCE": 1.0}
    async with serving(tmp_path, limits=silent) as scene, contextlib.AsyncExitStack() as wires:
        before = [await wires.enter_async_context(scene.connect()) for _ in range(8)]
        for wire in before:
            await wire.send(head("POST", PROGRESS, "Content-Length: 100000"), b'{"msg":')
        small = await scene.post(b'{"msg":"small"}')
        large = await scene.post(b'{"msg":"large"}' + b" " * 50_000)
        stalled = [(await wire.reply()).status for wire in before]

        assert (200, 200, [503] * 8) == (small.status, large.status, stalled)


@situation
async def test_progress_heeds_the_disk_reserve(tmp_path):
    """507, and nothing is shown of it; with room again it is taken."""
    full = [True]
    async with serving(tmp_path, taker=Shelf(full)) as scene:
        refused = await scene.post(b'{"msg":"m"}')
        assert {} == scene.store.snapshot().progress
        full.clear()
        async with asyncio.timeout(HANG):
            while (taken := await scene.post(b'{"msg":"m"}')).status == 507:
                await asyncio.sleep(0.05)

        line = b"progress update for e2e/global: not enough disk space\n"
        assert ((507, line), 200) == (refused.said, taken.status)


class Shelf:
    """Stands for the disk."""

    def __init__(self, full: list[bool]) -> None:
        self.full = full

    def free_for(self, length: int) -> bool:
        return not self.full


@situation
async def test_free_space_is_asked_once_a_second(tmp_path):
    """Of a file system in the network that takes a while, in which nobody is served."""
    asked, now = list[int](), [1_000.0]
    content = SimpleNamespace(is_eof=lambda: True, read_nowait=lambda: b"{}")
    update = SimpleNamespace(content=content, headers={})
    shared = context(parse_plan(PLAN), wall=lambda: now[0])
    await shared.store.open_run(shared.plan, now=now[0])
    updates = ProgressUpdates(shared, lambda length: asked.append(length) is None)
    for step in (0.0, 0.5, 0.4, 0.2):
        now[0] += step
        assert 200 == (await updates.post(update, E2E, "progress", lambda: None)).status
    await shared.store.close()

    assert [PROGRESS_BODY] * 2 == asked


@situation
async def test_ten_thousand_failures(tmp_path):
    """A50: the first thousand are kept, all are counted."""
    async with serving(tmp_path) as scene:
        body = json.dumps({"failures": [f"test {n}" for n in range(10_000)]}).encode()
        reply = await scene.post(body)
        progress = scene.store.snapshot().progress[E2E].progress

        assert (200, 1000, 10_000) == (
            reply.status,
            len(progress.failures),
            progress.failures_total,
        )


@situation
async def test_continue_for_an_update(tmp_path):
    """A56: 100 before the body, for whoever asks."""
    async with serving(tmp_path) as scene, scene.connect() as wire:
        await wire.send(head("POST", PROGRESS, "Content-Length: 2", "Expect: 100-Continue"))
        interim = await wire.reply()
        await wire.send(b"{}")

        assert [100, 200] == [interim.status, (await wire.reply()).status]


class SlowStore(QuickStore):
    """Takes updates when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()
        self.order: list[str] = []
        self.arrived = 0

    def record_heartbeat(self, key, mono, *, beat):
        """Count who has got so far."""
        self.arrived += 1

    async def record_progress(self, key, update, id, *, at):  # noqa: A002
        """Wait for the gate."""
        await self.gate.wait()
        self.order.append(update.msg)
        return ProgressTaken.APPLIED


@situation
async def test_updates_of_one_key_wait_for_each_other(tmp_path):
    """One at work and sixteen waiting, in the order of their arrival; the next is 503."""
    store = SlowStore()
    async with serving(tmp_path, store=store) as scene:
        asked: list[asyncio.Task] = []
        for number in range(17):
            asked.append(asyncio.create_task(scene.post(b'{"msg":"%d"}' % number)))
            await until(lambda: store.arrived == len(asked))
        over = await scene.post(b"{}")
        other = asyncio.create_task(scene.ask("GET", HEALTH))
        assert 200 == (await other).status
        store.gate.set()
        replies = await asyncio.gather(*asked)

        assert 503 == over.status
        assert int(over.headers["retry-after"]) > 0
        assert {200} == {reply.status for reply in replies}
        assert [str(number) for number in range(17)] == store.order


class FullStore(QuickStore):
    """Has no room for updates."""

    async def record_progress(self, key, update, id, *, at):  # noqa: A002
        """Fail."""
        raise StoreFull("no space left")


@situation
async def test_an_update_that_cannot_be_kept(tmp_path):
    """503: the same update may be sent again."""
    async with serving(tmp_path, store=FullStore()) as scene:
        reply = await scene.post(b'{"appendcompleted":1}')

        assert (503, b"progress update for e2e/global: no space left\n") == reply.said


@situation
async def test_an_update_that_is_cut(tmp_path):
    """Not taken, and the next one is."""
    async with serving(tmp_path) as scene:
        async with scene.connect() as wire:
            await wire.send(head("POST", PROGRESS, "Content-Length: 10"), b"{}")
            await until(lambda: scene.store.snapshot().beats)
        await scene.seen.until(lambda: scene.seen.requests)

        assert {} == scene.store.snapshot().progress
        assert 200 == (await scene.post(b"{}")).status


@situation
async def test_an_update_that_stalls(tmp_path):
    """Silence in its body: 503, and the connection ends; others are not held up."""
    async with (
        serving(tmp_path, limits={"BODY_SILENCE": 0.3}) as scene,
        scene.connect() as wire,
    ):
        await wire.send(head("POST", PROGRESS, "Content-Length: 10"), b"{")
        reply = await wire.reply()

        assert (503, b"") == (reply.status, await wire.rest())


@situation
async def test_a_body_that_breaks_the_rules_of_chunks(tmp_path):
    """Not a chunk where one should be: 400 at once, and the connection ends."""
    async with serving(tmp_path) as scene, scene.connect() as wire:
        await wire.send(head("POST", PROGRESS, "Transfer-Encoding: chunked"), b"2\r\n{}\r\n")
        await wire.send(b"zzz\r\n")
        reply = await wire.reply()

        assert (400, b"") == (reply.status, await wire.rest())


@situation
async def test_a_heartbeat(tmp_path):
    """A51: interval, features, never cached; the worker counts as one that beats."""
    async with serving(tmp_path) as scene:
        reply = await scene.ask("GET", HEALTH)
        beat = scene.store.snapshot().beats[E2E]

        assert (200, b'{"interval_seconds":15,"status":"running"}') == reply.said
        assert "application/json" == reply.headers["content-type"]
        assert "no-store" == reply.headers["cache-control"]
        assert "heartbeat, outcome, digest, progress-id" == reply.headers["aggregator-features"]
        assert (True, True) == (beat.armed, beat.heard_at is not None)


@situation
async def test_other_requests_are_signs_of_life_only(tmp_path):
    """Sonobuoy's workers are silent between updates: an update does not arm the judgement."""
    async with serving(tmp_path) as scene:
        await scene.post(b"{}")
        beat = scene.store.snapshot().beats[E2E]

        assert (False, True) == (beat.armed, beat.heard_at is not None)


@pytest.mark.parametrize(
    ("method", "target", "pair", "code", "body"),
    [
        (
            "GET",
            "/api/v1/health/global/nope",
            "e2e",
            403,
            b"heartbeat for nope/global unexpected\n",
        ),
        ("PUT", HEALTH, "e2e", 405, b""),
        ("GET", PROGRESS, "e2e", 405, b""),
        (
            "GET",
            HEALTH,
            "sysd",
            403,
            b"heartbeat for e2e/global not permitted for this client certificate\n",
        ),
    ],
)
@situation
async def test_heartbeats_that_are_none(tmp_path, method, target, pair, code, body):
    """A35, A51: the same checks as everywhere; nobody is heard."""
    async with serving(tmp_path) as scene:
        reply = await scene.ask(method, target, pair=certs.client(pair))

        assert (code, body) == reply.said
        assert {} == scene.store.snapshot().beats


@situation
async def test_a_connection_is_kept(tmp_path):
    """Updates, heartbeats and early answers without a body leave it open for the next."""
    async with serving(tmp_path) as scene, scene.connect() as wire:
        codes = []
        for made in (
            request("POST", PROGRESS, b"{}"),
            request("GET", HEALTH),
            request("GET", "/nowhere"),
            request("DELETE", PROGRESS),
            request("POST", "/api/v1/progress/global/nope", b"{}"),
            request("POST", PROGRESS, b"broken"),
            request("POST", PROGRESS, b'{"msg":"last"}'),
        ):
            await wire.send(made)
            codes.append((await wire.reply()).status)

        assert [200, 200, 404, 405, 403, 400, 200] == codes
        assert "last" == scene.store.snapshot().progress[E2E].progress.msg


async def until(done) -> None:
    """Wait for something that no event announces."""
    async with asyncio.timeout(HANG):
        while not done():
            await asyncio.sleep(0.005)
