"""Uploads: every check before the body is read, and every answer after it."""

import asyncio
import base64
import contextlib
import hashlib
import json
import time

import pytest

from reporter.aggregator import uploads as taking
from reporter.aggregator.http import Limits
from reporter.aggregator.store import MemoryStore, StoreError
from reporter.core.run.entry import Cause, Failure, State
from tests.integration.aggregator_http import certs
from tests.integration.aggregator_http.scene import (
    E2E,
    HEALTH,
    NODE1,
    NODE2,
    PLAN,
    RESULT,
    Scene,
    serving,
    situation,
)
from tests.integration.aggregator_http.wire import HANG, Reply, chunks, head, request


def digest_header(body: bytes) -> str:
    """A digest as headers show it."""
    return f"sha-256=:{base64.b64encode(hashlib.sha256(body).digest()).decode()}:"


@situation
async def test_a_result_is_stored_once(tmp_path):
    """A1, A2: 200 with the digest and an empty body; again: 409, which names what is held."""
    async with serving(tmp_path) as scene:
        first = await scene.put(NODE1, b"foo")
        again = await scene.put(NODE1, b"bar")

        assert (200, b"") == first.said
        assert (409, b"result sysd/node1 already received\n") == again.said
        assert digest_header(b"foo") == first.headers["result-digest"]
        assert digest_header(b"foo") == again.headers["result-digest"]
        assert {"plugins/sysd/results/node1/result": b"foo"} == scene.files()
        assert State.COMPLETE is scene.entry(NODE1).state
        assert [("results", 200), ("results", 409)] == scene.seen.requests
        assert 3 == scene.seen.received[0]


@pytest.mark.parametrize(
    ("target", "pair", "line"),
    [
        ("/api/v1/results/by-node/node9/sysd", ("sysd",), "result sysd/node9 unexpected"),
        ("/api/v1/results/global/nope", ("e2e",), "result nope/global unexpected"),
        ("/api/v1/results/by-node/a%1Bb/x%0A", ("e2e",), r"result x\n/a\x1bb unexpected"),
    ],
)
@situation
async def test_a_key_outside_the_plan(tmp_path, target, pair, line):
    """A3: 403, nothing written; the answer holds no control characters of the request."""
    async with serving(tmp_path) as scene:
        reply = await scene.ask("PUT", target, b"foo", pair=certs.client(*pair))

        assert (403, f"{line}\n".encode()) == reply.said
        assert "text/plain; charset=utf-8" == reply.headers["content-type"]
        assert "nosniff" == reply.headers["x-content-type-options"]
        assert "close" == reply.headers["connection"]
        assert {} == scene.files()


@situation
async def test_both_paths_of_a_global_key(tmp_path):
    """A5: by-node/global/P and global/P are one key; by_node is by-node."""
    async with serving(tmp_path) as scene:
        first = await scene.ask("PUT", "/api/v1/results/by-node/global/e2e", b"x")
        again = await scene.ask("PUT", RESULT[E2E], b"x")
        other = await scene.ask("PUT", "/api/v1/results/by_node/node2/sysd", b"x")

        assert [200, 409, 200] == [first.status, again.status, other.status]


TYPED = ["Content-Disposition: attachment;filename=r.tar.gz"]


@pytest.mark.parametrize(
    ("case", "headers", "name"),
    [
        ("A4", ["Content-Disposition: attachment;filename=a.json"], "a.json"),
        ("A9 another type", ["Content-Type: application/x-gzip", *TYPED], "r.tar.gz"),
        ("A9 parameters", ["Content-Type: application/gzip; x=y", *TYPED], "r.tar.gz"),
        ("A12", ['Content-Disposition: attachment; filename="../../../../x"'], "x"),
        ("A13 spaces", ["Content-Disposition: attachment; filename=a b.txt"], "a b.txt"),
        ("A13 none", [], "result"),
        ("A13 no name", ["Content-Disposition: attachment"], "result"),
    ],
)
@situation
async def test_names_of_files(tmp_path, case, headers, name):
    """A4, A9, A12, A13: the file is named by the header, and is always inside."""
    async with serving(tmp_path) as scene:
        reply = await scene.put(E2E, b"data", *headers)

        assert (200, {f"plugins/e2e/results/global/{name}": b"data"}) == (
            reply.status,
            scene.files(),
        )


@pytest.mark.parametrize("method", ["POST", "GET", "HEAD", "DELETE", "OPTIONS"])
@situation
async def test_other_methods(tmp_path, method):
    """A14: 405, empty, with the method that is allowed."""
    async with serving(tmp_path) as scene:
        reply = await scene.ask(method, RESULT[E2E])

        assert (405, b"", "PUT") == (*reply.said, reply.headers["allow"])
        assert "close" == reply.headers["connection"]


@pytest.mark.parametrize(
    "target",
    [
        "/not/found",
        f"{RESULT[E2E]}/",
        "/api/v1/results//global/e2e",
        "//api/v1/results/global/e2e",
        "/api/v1/results/global/../global/e2e",
        "/api/v1/results/by-node/a%2fb/e2e",
        "/api/v1/results/by-node/%2e%2e/e2e",
        "/api/v1/results/global/e2e%00",
        "/api/v1/results/global/%zz",
        "/api/v1/results/global/%ff",
        "/api/v1/results/by-node//sysd",
        "/api/v1/%72esults/global/e2e",
        "*",
    ],
)
@situation
async def test_paths_that_do_not_exist(tmp_path, target):
    """A15, A45: 404 and never a redirect."""
    async with serving(tmp_path) as scene:
        method = "OPTIONS" if target == "*" else "PUT"
        reply = await scene.ask(method, target, b"x", pair=certs.client("e2e"))

        assert (404, b"404 page not found\n") == reply.said
        assert "location" not in reply.headers


@situation
async def test_a_target_with_a_query_and_one_with_scheme_and_host(tmp_path):
    """A query is ignored; the absolute form is the same path, as every server has to take it."""
    async with serving(tmp_path) as scene:
        query = await scene.ask("PUT", f"{RESULT[E2E]}?a=/../b", b"x")
        absolute = await scene.ask("PUT", f"HTTPS://aggregator:8080{RESULT[NODE1]}", b"x")

        assert [200, 200] == [query.status, absolute.status]


@pytest.mark.parametrize("pieces", [[b"one", b"two", b"three"], []])
@situation
async def test_chunked_bodies(tmp_path, pieces):
    """A16: exact bytes, also none."""
    async with serving(tmp_path) as scene, scene.connect() as wire:
        await wire.send(head("PUT", RESULT[E2E], "Transfer-Encoding: chunked"), chunks(pieces))
        reply = await wire.reply()

        assert (200, {"plugins/e2e/results/global/result": b"".join(pieces)}) == (
            reply.status,
            scene.files(),
        )


@situation
async def test_a_retry_does_not_wait_for_its_predecessor(tmp_path):
    """A17: the old socket hangs in the middle of its body, the retry is stored at once."""
    async with serving(tmp_path) as scene, scene.connect() as old:
        await old.send(head("PUT", RESULT[E2E], "Content-Length: 100"), b"x" * 50)
        await scene.holds(old)
        reply = await scene.put(E2E, b"whole")

        assert (200, False) == (reply.status, scene.entry(E2E).retrying)
        assert {"plugins/e2e/results/global/result": b"whole"} == scene.files()


@situation
async def test_a_cut_upload_is_retried(tmp_path):
    """A17: the connection is cut in the middle; the entry waits for the next try, which counts."""
    async with serving(tmp_path) as scene:
        async with scene.connect() as wire:
            await wire.send(head("PUT", RESULT[E2E], "Transfer-Encoding: chunked"), b"5\r\nhal")
            await scene.holds(wire)
        await scene.seen.until(lambda: scene.seen.requests)
        retrying = scene.entry(E2E).retrying
        reply = await scene.put(E2E, b"whole")

        assert (True, 200) == (retrying, reply.status)
        assert {"plugins/e2e/results/global/result": b"whole"} == scene.files()


@situation
async def test_fifty_identical_uploads_at_once(tmp_path):
    """A18, A47: one 200, the others 409, and one copy. Whoever is told to wait comes again."""
    async with serving(tmp_path) as scene:
        body = b"result" * 1000

        async def put() -> Reply:
            while "result-busy" in (reply := await scene.put(E2E, body)).headers:
                assert (503, "true") == (reply.status, reply.headers["result-busy"])
            return reply

        replies = await asyncio.gather(*(put() for _ in range(50)))

        assert [200] + 49 * [409] == sorted(reply.status for reply in replies)
        assert {digest_header(body)} == {reply.headers["result-digest"] for reply in replies}
        assert {"plugins/e2e/results/global/result": body} == scene.files()


@pytest.mark.parametrize("size", [3_000_000, 30_000_000])
@situation
async def test_the_answer_to_a_large_body_nobody_wants_is_seen(tmp_path, size):
    """A33: a client that sends all of it first still gets its 403, and no reset."""
    async with serving(tmp_path) as scene:
        reply = await scene.ask(
            "PUT", "/api/v1/results/global/nope", b"\0" * size, pair=certs.client("e2e")
        )

        assert (403, "close") == (reply.status, reply.headers["connection"])


@pytest.mark.parametrize(
    ("key", "pair"),
    [(E2E, ("sysd",)), (NODE2, ("sysd", "node1")), (E2E, ("e2e", "node1"))],
)
@situation
async def test_a_certificate_for_something_else(tmp_path, key, pair):
    """A35: of another plugin, or of another node: 403, and nothing is read."""
    async with serving(tmp_path) as scene:
        reply = await scene.ask("PUT", RESULT[key], b"x", pair=certs.client(*pair))

        line = f"result {key} not permitted for this client certificate\n".encode()
        assert (403, line) == reply.said
        assert {} == scene.files()
        whose = "/".join(pair) if len(pair) > 1 else f"{pair[0]}/*"
        ((what, _, peer, certificate),) = scene.seen.refusals
        assert (f"result {key}", "127.0.0.1", whose) == (what, peer, certificate)


@situation
async def test_a_certificate_for_one_node(tmp_path):
    """A35: it is good for that node."""
    async with serving(tmp_path) as scene:
        reply = await scene.ask("PUT", RESULT[NODE1], b"x", pair=certs.client("sysd", "node1"))

        assert 200 == reply.status


@pytest.mark.parametrize("encoding", ["gzip", "br", "identity, gzip"])
@situation
async def test_an_encoded_body(tmp_path, encoding):
    """A36: 415; nothing is ever inflated for a sender, and the retry window opens."""
    async with serving(tmp_path) as scene:
        reply = await scene.put(E2E, b"x", f"Content-Encoding: {encoding}")

        assert (415, b"result e2e/global: Content-Encoding is not accepted\n") == reply.said
        assert scene.entry(E2E).retrying


@situation
async def test_a_declared_length_over_the_cap(tmp_path):
    """A36: 10 GiB: 413 before a byte is read."""
    async with serving(tmp_path) as scene, scene.connect() as wire:
        await wire.send(head("PUT", RESULT[E2E], f"Content-Length: {10 * 2**30}"))
        reply = await wire.reply()

        assert (413, b"result e2e/global exceeds 536870912 bytes\n") == reply.said
        assert scene.entry(E2E).retrying


@situation
async def test_endless_chunks(tmp_path):
    """A36: 413 at the cap."""
    limits, caps = Limits(result_bytes=100_000), taking.Limits(max_result_bytes=100_000)
    async with serving(tmp_path, limits, caps=caps) as scene, scene.connect() as wire:
        piece = b"8000\r\n" + b"\0" * 0x8000 + b"\r\n"
        await wire.send(head("PUT", RESULT[E2E], "Transfer-Encoding: chunked"), 10 * piece)
        reply = await wire.reply()

        assert (413, b"result e2e/global exceeds 100000 bytes\n") == reply.said
        assert scene.entry(E2E).retrying


@pytest.mark.parametrize("content_type", ["application/gzip", "application/json"])
@situation
async def test_an_error_object_of_a_sonobuoy_worker(tmp_path, content_type):
    """A41: told by its shape and the missing disposition: 200, and the entry failed."""
    async with serving(tmp_path) as scene:
        reply = await scene.put(E2E, b'{"error":"x"}', f"Content-Type: {content_type}")
        entry = scene.entry(E2E)

        assert (200, State.FAILED, Cause.WORKER_ERROR) == (
            reply.status,
            entry.state,
            entry.record.cause,
        )
        assert {"error": "x"}.items() <= json.loads(
            scene.files()["plugins/e2e/errors/global/error.json"]
        ).items()


@situation
async def test_the_format_is_announced_by_a_header(tmp_path):
    """Only the format we know is read; an unknown one is stored as before."""
    body = b'{"status":"failure","reason":"DiskSlow","message":"80 ms"}'
    ours = "Result-Format: status-reporter.io/adapter-result.v1"
    async with serving(tmp_path) as scene:
        replies = [
            await scene.put(E2E, body, ours),
            await scene.put(NODE1, body, "Result-Format: status-reporter.io/adapter-result.v9"),
            await scene.put(
                NODE2,
                b'{"error":"gone","cause":"AdapterInterrupted","status":"unknown"}',
                *("Result-Outcome: error", ours),
            ),
        ]

        assert [200, 200, 200] == [reply.status for reply in replies]
        assert ["failed", "", "unknown"] == [
            scene.entry(key).record.verdict for key in (E2E, NODE1, NODE2)
        ]


@situation
async def test_error_reports_and_results(tmp_path):
    """A42: an error once, a real result after it, and no error after that."""
    async with serving(tmp_path) as scene:
        outcome = "Result-Outcome: error"
        replies = [
            await scene.put(E2E, b'{"error":"x"}', outcome),
            await scene.put(E2E, b'{"error":"x"}', outcome),
            await scene.put(E2E, b"result"),
            await scene.put(E2E, b'{"error":"y"}', outcome),
        ]

        assert [200, 409, 200, 409] == [reply.status for reply in replies]
        assert State.COMPLETE is scene.entry(E2E).state


@situation
async def test_after_closing(tmp_path):
    """A43: 409 where a result is held, 410 where none is, and for all else."""
    async with serving(tmp_path) as scene:
        await scene.put(E2E, b"result")
        gone = Failure("final", 1.0, "pod gone", Cause.POD_FAILED)
        await scene.store.mark_all_failed(dict.fromkeys((NODE1, NODE2), gone))
        await scene.close_run()

        held, none = await scene.put(E2E, b"result"), await scene.put(NODE1, b"result")
        progress = await scene.ask("POST", "/api/v1/progress/by-node/node1/sysd", b"{}")
        beat = await scene.ask("GET", "/api/v1/health/by-node/node1/sysd")

        assert (409, b"result e2e/global already received\n") == held.said
        closed = b"run is closed; %b sysd/node1 not accepted\n"
        assert (410, closed % b"result") == none.said
        assert (410, closed % b"progress update for") == progress.said
        assert (410, closed % b"heartbeat for") == beat.said


@situation
async def test_declared_digests(tmp_path):
    """A44: a wrong one is 500 and may be tried again, a right one 200."""
    async with serving(tmp_path) as scene:
        wrong = await scene.put(E2E, b"body", f"Content-Digest: {digest_header(b'other')}")
        retrying = scene.entry(E2E).retrying
        right = await scene.put(
            E2E, b"body", f"Content-Digest: sha-512=:AAAA:, {digest_header(b'body')}"
        )

        assert (500, True, 200) == (wrong.status, retrying, right.status)
        assert wrong.body.startswith(b"error handling result e2e/global: ")


@pytest.mark.parametrize("value", ["sha-256=:not base64:", "sha-256=", "sha-256=:Zm9v:"])
@situation
async def test_a_digest_that_is_none(tmp_path, value):
    """A44: a sender that wants its bytes checked is not told that they were."""
    async with serving(tmp_path) as scene:
        assert 500 == (await scene.put(E2E, b"body", f"Content-Digest: {value}")).status


@situation
async def test_continue_only_for_what_is_wanted(tmp_path):
    """A56: a refused key gets its 403 and no 100; a wanted one 100, then 200."""
    async with serving(tmp_path) as scene:
        expect = ("Content-Length: 4", "Expect: 100-continue")
        async with scene.connect() as wire:
            await wire.send(head("PUT", "/api/v1/results/global/nope", *expect))
            refused = await wire.reply()
        async with scene.connect() as wire:
            await wire.send(head("PUT", RESULT[E2E], *expect))
            interim = await wire.reply()
            await wire.send(b"data")
            wanted = await wire.reply()

        assert [403, 100, 200] == [refused.status, interim.status, wanted.status]


@situation
async def test_uploads_that_wait_for_a_slot(tmp_path):
    """Two of a key are read; a third waits unread and is answered when one of them is stored."""
    async with serving(tmp_path) as scene, scene.connect() as one, scene.connect() as two:
        for wire in (one, two):
            await wire.send(head("PUT", RESULT[E2E], "Content-Length: 4"), b"ha")
        third = asyncio.create_task(scene.put(E2E, b"third" * 100_000))
        await until_waiting(scene, 3)
        assert 2 == scene.app.uploads

        await one.send(b"lf")
        stored, waited = await one.reply(), await third
        await two.send(b"lf")
        late = await two.reply()

        assert [200, 409, 409] == [stored.status, waited.status, late.status]
        assert [] == list(scene.app.reading)


@situation
async def test_a_slot_that_never_comes(tmp_path):
    """After its wait: 503, and nobody's failure. Its retry window does not end meanwhile."""
    limits = Limits(uploads=1, slot_wait=0.2)
    async with serving(tmp_path, limits) as scene, scene.connect() as busy:
        await busy.send(head("PUT", RESULT[E2E], "Content-Length: 4"), b"ha")
        await scene.holds(busy)
        reply = await scene.put(NODE1, b"result")

        assert (503, "true") == (reply.status, reply.headers["result-busy"])
        assert 0 < int(reply.headers["retry-after"]) <= 15
        assert (False, 0) == (scene.entry(NODE1).retrying, scene.entry(NODE1).attempts)
        assert {E2E, NODE1} == set(scene.app.excused)
        assert {E2E} == set(scene.app.holding)


@situation
async def test_more_than_four_that_wait_for_one_key(tmp_path):
    """The fifth is told at once, and others' keys are not held up."""
    async with serving(tmp_path) as scene, contextlib.AsyncExitStack() as stack:
        for count in range(1, 7):
            wire = await stack.enter_async_context(scene.connect())
            await wire.send(head("PUT", RESULT[E2E], "Content-Length: 4"), b"ha")
            await until_waiting(scene, count)
        fifth, other = await scene.put(E2E, b"more"), await scene.put(NODE1, b"other")

        assert (503, "true") == (fifth.status, fifth.headers["result-busy"])
        assert (200, 2) == (other.status, scene.app.uploads)


@pytest.mark.parametrize(
    ("look", "size"),
    [(0.05, 2_000), (600.0, 2_000), (600.0, 200_000)],
    ids=["seen while it waits", "seen at its turn", "its end is behind its bytes"],
)
@situation
async def test_a_sender_that_leaves_while_it_waits(tmp_path, look, size):
    """What has come of its body is not read: no try has failed, and its place is free."""
    limits = Limits(uploads=1, sender_look=look)
    async with serving(tmp_path, limits) as scene, scene.connect() as busy:
        await busy.send(head("PUT", RESULT[E2E], "Content-Length: 4"), b"ha")
        await scene.holds(busy)
        async with scene.connect(certs.client("sysd")) as leaver:
            await leaver.send(request("PUT", RESULT[NODE1], b"x" * 300_000)[:size])
            async with asyncio.timeout(HANG):
                while NODE1 not in scene.app.reading:
                    await asyncio.sleep(0.005)
        if look < HANG:
            async with asyncio.timeout(HANG):
                while NODE1 in scene.app.reading:
                    await asyncio.sleep(0.005)
        await busy.send(b"lf")
        assert 200 == (await busy.reply()).status
        await scene.seen.until(lambda: len(scene.seen.requests) == 2)

        assert {("results", 200), ("results", 400)} == set(scene.seen.requests)
        assert (False, 0) == (scene.entry(NODE1).retrying, scene.entry(NODE1).attempts)
        assert {} == scene.app.reading


@pytest.mark.parametrize("rate", [2**20, 1], ids=["short", "as long as its length allows"])
@situation
async def test_an_upload_at_its_deadline(tmp_path, rate):
    """Row 12: it may finish within a time that follows from its length; then it is cut."""
    limits = Limits(finish=0.3, finish_rate=rate, body_silence=HANG)
    plan = {**PLAN, "timeout_seconds": 1}
    async with serving(tmp_path, limits, plan=plan) as scene, scene.connect() as wire:
        await scene.store.launch("e2e", at=time.time() - 0.8)
        await wire.send(head("PUT", RESULT[E2E], "Content-Length: 4"), b"ha")
        await scene.holds(wire)
        assert {E2E} == set(scene.app.holding)
        if rate == 1:  # four seconds
            await asyncio.sleep(1.0)
            assert {E2E} == set(scene.app.holding)
            await wire.send(b"lf")

        reply = await wire.reply()
        assert (200 if rate == 1 else 503) == reply.status
        assert set() == set(scene.app.holding)


@situation
async def test_an_upload_after_its_deadline(tmp_path):
    """It is taken while there is time, and does not keep the run open by waiting."""
    limits = Limits(uploads=1)
    plan = {**PLAN, "timeout_seconds": 1}
    async with serving(tmp_path, limits, plan=plan) as scene, scene.connect() as busy:
        await scene.store.launch("sysd", at=time.time() - 10.0)
        await busy.send(head("PUT", RESULT[E2E], "Content-Length: 4"), b"ha")
        await scene.holds(busy)
        late = asyncio.create_task(scene.put(NODE1, b"late"))
        async with asyncio.timeout(HANG):
            while NODE1 not in scene.app.reading:
                await asyncio.sleep(0.005)
        assert {E2E} == set(scene.app.holding)
        await busy.send(b"lf")

        assert 200 == (await late).status


@situation
async def test_a_retry_after_the_deadline_within_its_window(tmp_path):
    """The window decides: the run stays open for it, though it has to wait."""
    limits = Limits(uploads=1)
    plan = {**PLAN, "timeout_seconds": 1}
    async with serving(tmp_path, limits, plan=plan) as scene, scene.connect() as busy:
        await scene.store.launch("sysd", at=time.time() - 500.0)
        await scene.store.mark_failed(NODE1, Failure("attempt", time.time(), "cut off"))
        await busy.send(head("PUT", RESULT[E2E], "Content-Length: 4"), b"ha")
        await scene.holds(busy)
        retry = asyncio.create_task(scene.put(NODE1, b"again"))
        async with asyncio.timeout(HANG):
            while NODE1 not in scene.app.reading:
                await asyncio.sleep(0.005)
        assert {E2E, NODE1} == set(scene.app.holding)
        await busy.send(b"lf")

        assert 200 == (await retry).status


@situation
async def test_keys_with_an_upload_are_named(tmp_path):
    """A57: the run may not close over a body that is being read."""
    async with serving(tmp_path) as scene, scene.connect() as wire:
        await wire.send(head("PUT", RESULT[E2E], "Content-Length: 4"), b"ha")
        await scene.holds(wire)
        assert [E2E] == list(scene.app.reading)

        await wire.send(b"lf")
        assert 200 == (await wire.reply()).status
        assert [] == list(scene.app.reading)


@situation
async def test_a_full_disk(tmp_path):
    """Free space below reserve and length: 507 before the body is read."""
    caps = taking.Limits(disk_reserve=2**62)
    async with serving(tmp_path, caps=caps) as scene:
        reply = await scene.put(E2E, b"result")

        assert (507, b"result e2e/global: not enough disk space\n") == reply.said
        assert scene.entry(E2E).retrying


@situation
async def test_a_run_that_closes_over_an_upload(tmp_path):
    """The result comes too late, though it began in time: 410."""
    async with serving(tmp_path) as scene, scene.connect() as wire:
        await wire.send(head("PUT", RESULT[E2E], "Content-Length: 4"), b"ha")
        await scene.holds(wire)
        gone = Failure("final", 1.0, "pod gone", Cause.POD_FAILED)
        await scene.store.mark_all_failed(dict.fromkeys((E2E, NODE1, NODE2), gone))
        await scene.close_run()
        await wire.send(b"lf")

        assert (410, b"run is closed; result e2e/global not accepted\n") == (
            await wire.reply()
        ).said


class Unwritable(MemoryStore):
    """A store whose disk is broken."""

    writable = False

    async def mark_failed(self, key, failure):
        """Fail."""
        raise StoreError("disk broken")

    async def record_progress(self, key, update, id, *, at):  # noqa: A002
        """Fail."""
        raise StoreError("disk broken")


@situation
async def test_a_store_that_cannot_be_written(tmp_path):
    """503 with Retry-After for uploads and updates; heartbeats go on."""
    async with serving(tmp_path, store=Unwritable()) as scene:
        upload, update = await scene.put(E2E, b"result"), await scene.post(b"{}")
        beat = await scene.ask("GET", HEALTH)

        assert (503, 503, 200) == (upload.status, update.status, beat.status)
        assert all(int(reply.headers["retry-after"]) > 0 for reply in (upload, update))
        assert upload.body.startswith(b"result e2e/global: ")


class Says:
    """Takes uploads unread and says what a test wants."""

    def __init__(self, verdict: taking.Verdict | Exception) -> None:
        self.verdict = verdict

    async def take(self, key, meta, chunks, *, at):
        """Say it."""
        if isinstance(self.verdict, Exception):
            raise self.verdict
        return self.verdict

    def free_for(self, length):
        """There is room."""
        return True


VERDICTS = [
    (taking.Stored("ab" * 32), 200, b""),
    (taking.Held(""), 409, b"result e2e/global already received\n"),
    (taking.TooLarge(7), 413, b"result e2e/global exceeds 7 bytes\n"),
    (taking.Refused("not gzip"), 500, b"error handling result e2e/global: not gzip\n"),
    (taking.Unwritable("EIO"), 500, b"error handling result e2e/global: EIO\n"),
    (taking.DiskFull("no space"), 507, b"error handling result e2e/global: no space\n"),
]


@pytest.mark.parametrize(("verdict", "code", "body"), VERDICTS)
@situation
async def test_verdicts_as_answers(tmp_path, verdict, code, body):
    """What became of a body that nobody read to its end is told, and seen by its sender."""
    async with serving(tmp_path, taker=Says(verdict)) as scene:
        reply = await scene.put(E2E, b"x" * 1_000_000)

        assert (code, body, "close") == (*reply.said, reply.headers["connection"])
        assert (code == 200) == ("result-digest" in reply.headers)


@situation
async def test_a_failure_nobody_thought_of(tmp_path):
    """500 without a word about it, one observation, and the place is free again."""
    async with serving(tmp_path, taker=Says(ZeroDivisionError("oops"))) as scene:
        reply = await scene.put(E2E, b"result")

        assert (500, b"", "close") == (*reply.said, reply.headers["connection"])
        assert ["oops"] == [str(error) for error in scene.seen.surprises]
        assert ({}, 0) == (scene.app.reading, scene.app.uploads)
        scene.seen.surprises.clear()


@situation
async def test_an_answer_ends_the_connection(tmp_path):
    """Answers to uploads carry `Connection: close`, and the server keeps its word."""
    async with serving(tmp_path) as scene, scene.connect() as wire:
        await wire.send(request("PUT", RESULT[E2E], b"x"), request("PUT", RESULT[E2E], b"x"))
        reply = await wire.reply()

        assert (200, "close", b"") == (reply.status, reply.headers["connection"], await wire.rest())


async def until_waiting(scene: Scene, count: int) -> None:
    """Wait until so many uploads of e2e have come, be they read or not."""
    while scene.app.reading.get(E2E, 0) < count:
        await asyncio.sleep(0.005)
