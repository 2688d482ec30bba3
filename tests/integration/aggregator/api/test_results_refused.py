"""Uploads that are refused before their body is read, or cut off while it is."""

import pytest

from reporter.run.record import Cause, Failure
from tests.aggregators import run_certificates as certs
from tests.integration.aggregator.api.scene import (
    E2E,
    NODE1,
    NODE2,
    RESULT,
    digest_header,
    serving,
    situation,
)
from tests.integration.aggregator.api.wire import head


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
    async with (
        serving(tmp_path, limits={"max_result_bytes": 100_000}) as scene,
        scene.connect() as wire,
    ):
        piece = b"8000\r\n" + b"\0" * 0x8000 + b"\r\n"
        await wire.send(head("PUT", RESULT[E2E], "Transfer-Encoding: chunked"), 10 * piece)
        reply = await wire.reply()

        assert (413, b"result e2e/global exceeds 100000 bytes\n") == reply.said
        assert scene.entry(E2E).retrying


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
