"""Uploads: paths, names, bodies and retries, and the answers to them."""

import asyncio
import json

import pytest

from reporter.run.entry import State
from reporter.run.record import Cause
from tests.aggregators import run_certificates as certs
from tests.integration.aggregator.api.scene import (
    E2E,
    HEALTH,
    NODE1,
    NODE2,
    RESULT,
    digest_header,
    serving,
    situation,
)
from tests.integration.aggregator.api.wire import Reply, chunks, head, request


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


@pytest.mark.parametrize("before", [b"", request("GET", HEALTH)], ids=["at first", "later"])
@situation
async def test_a_cut_upload_is_retried(tmp_path, before):
    """A17: the connection is cut in the middle; the entry waits for the next try, which counts.

    What was answered on that connection before makes no difference.
    """
    async with serving(tmp_path) as scene:
        async with scene.connect() as wire:
            if before:
                await wire.send(before)
                assert 200 == (await wire.reply()).status
            await wire.send(head("PUT", RESULT[E2E], "Transfer-Encoding: chunked"), b"5\r\nhal")
            await scene.holds(wire)
        await scene.seen.until(lambda: ("results", 400) in scene.seen.requests)
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
    """Only the format we know is read; in any other it is a file that came."""
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
        assert ["failed", "passed", "unknown"] == [
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
