"""Results as files: the tarball, and what one key has sent, for the audience of the status."""

import asyncio
import hashlib
import json
import sqlite3
from contextlib import suppress

import pytest
from aiohttp.web import FileResponse

from reporter.aggregator.api.files import Results
from reporter.aggregator.api.headers import filename_of
from reporter.run.plan import Key, Plan, Plugin
from reporter.run.state import Phase
from tests.aggregators import run_certificates as certs
from tests.archives.tars import file, tgz
from tests.integration.aggregator.api.scene import digest_header, server_context, situation
from tests.integration.aggregator.api.site import GONE, serving
from tests.integration.aggregator.api.wire import HANG, connected, head

E2E, NODE1, NODE2 = Key("e2e", "global"), Key("sysd", "node1"), Key("sysd", "node2")
RUN = Plan("run-1", (Plugin("e2e"), Plugin("sysd", ("node1", "node2"))))


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        ("application/json", "application/json"),
        ("text/plain; charset=utf-8", "text/plain"),
        ("TEXT/PLAIN", "text/plain"),
        ("application/x-gzip", "application/octet-stream"),
        ("text/html", "application/octet-stream"),
        ("image/svg+xml", "application/octet-stream"),
        ("", "application/octet-stream"),
    ],
)
@situation
async def test_an_opaque_file(tmp_path, sent, told):
    """Its bytes, as an attachment of a type that no browser runs, whatever its worker said."""
    body = b"<script>alert(1)</script>"
    async with serving(tmp_path, RUN) as site:
        await site.put(NODE1, body, content_type=sent, filename="a.html", disposition=True)
        reply = await site.get("/results/sysd/node1")
        bare = await site.get("/results/sysd/node1", method="HEAD")

        assert (200, body) == reply.said
        assert (200, b"", str(len(body))) == (*bare.said, bare.headers["content-length"])
        for each in (reply, bare):
            assert (told, "nosniff", 'attachment; filename="a.html"', digest_header(body)) == (
                each.headers["content-type"],
                each.headers["x-content-type-options"],
                each.headers["content-disposition"],
                each.headers["result-digest"],
            )


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        ('a"b.txt', "filename*=UTF-8''a%22b.txt"),
        ("ü b.txt", "filename*=UTF-8''%C3%BC%20b.txt"),
        ("", 'filename="result"'),
    ],
)
@situation
async def test_the_name_of_a_file(tmp_path, sent, told):
    """Also one that a header cannot say as it is; our own reader of such headers gets it back."""
    async with serving(tmp_path, RUN) as site:
        await site.put(NODE1, b"x", filename=sent, disposition=True)
        header = (await site.get("/results/sysd/node1")).headers["content-disposition"]

        assert (f"attachment; {told}", sent or "result") == (header, filename_of(header))


@situation
async def test_an_archive(tmp_path):
    """The archive as it was sent."""
    body = tgz(file(b"a", b"A"))
    async with serving(tmp_path, RUN) as site:
        await site.put(E2E, body, content_type="application/gzip", filename="r.tar.gz")
        reply = await site.get("/results/e2e/global")

        assert (200, body, "application/gzip") == (*reply.said, reply.headers["content-type"])
        assert digest_header(body) == reply.headers["result-digest"]


@pytest.mark.parametrize(
    ("asked", "status", "part"),
    [
        ("bytes=4-", 206, b"456789"),
        ("bytes=0-1", 206, b"01"),
        ("bytes=-3", 206, b"789"),
        ("bytes=10-", 416, b""),
    ],
)
@situation
async def test_a_part_of_it(tmp_path, asked, status, part):
    """A download that broke goes on where it was."""
    async with serving(tmp_path, RUN) as site:
        await site.put(NODE1, b"0123456789")
        reply = await site.get("/results/sysd/node1", f"Range: {asked}")

        assert (status, part) == (reply.status, reply.body if status == 206 else b"")
        assert reply.headers["content-range"].endswith("/10")
        assert [("status", status)] == site.seen.requests


@situation
async def test_a_file_that_its_reader_has(tmp_path):
    """304 with the tag that came with it, and counted as that."""
    async with serving(tmp_path, RUN) as site:
        await site.put(NODE1, b"0123456789")
        first = await site.get("/results/sysd/node1")
        again = await site.get("/results/sysd/node1", f"If-None-Match: {first.headers['etag']}")

        assert (304, b"") == again.said
        assert [("status", 200), ("status", 304)] == site.seen.requests


REPORT = b'{"error": "it broke", "more": [1]}'
LONG = json.dumps({"error": "it broke", "trace": "at line 1\n" * 1000}).encode()
PARTIAL = {"content_type": "application/gzip", "error": True, "filename": "r.tar.gz"}


@pytest.mark.parametrize(
    ("body", "meta", "told"),
    [
        (REPORT, {"error": True}, json.loads(REPORT)),
        (tgz(file(b"log", b"L"), file(b"error.json", REPORT)), PARTIAL, json.loads(REPORT)),
        (tgz(file(b"error.json", LONG)), PARTIAL, json.loads(LONG)),
        (tgz(file(b"log", b"L")), PARTIAL, {"error": "the worker reported an error without"}),
        (None, {}, {"error": "pod gone", "cause": "pod_failed"}),
    ],
    ids=[
        "report",
        "in an archive",
        "longer than its archive",
        "archive without one",
        "of the aggregator",
    ],
)
@situation
async def test_an_error(tmp_path, body, meta, told):
    """200 with the error.json that the tarball will have, and a header that says what it is."""
    async with serving(tmp_path, RUN) as site:
        if body is None:
            await site.store.mark_failed(E2E, GONE)
        else:
            await site.put(E2E, body, **meta)
        reply = await site.get("/results/e2e/global")

        assert (200, "error") == (reply.status, reply.headers["result-outcome"])
        assert 'attachment; filename="error.json"' == reply.headers["content-disposition"]
        found = json.loads(reply.body)
        found["error"] = found["error"][: len(told["error"])]
        assert told == found


@situation
async def test_a_tarball_that_is_not_there(tmp_path):
    """Not yet, or never: packing was given up, and asking again is no use."""
    async with serving(tmp_path, RUN) as site:
        for key in RUN.keys:
            await site.store.mark_failed(key, GONE)
        await site.store.advance_run(Phase.POST_PROCESSING)
        early = await site.get("/results")
        await site.store.advance_run(Phase.CLOSED, error="disk full")
        late = await site.get("/results")

        assert (404, b"there are no results yet: the run is not over\n") == early.said
        assert (404, b"there are no results: packing was given up\n") == late.said


@situation
async def test_what_is_not_there(tmp_path):
    """No result yet, no such key, no such path: 404. No other method, and nobody else."""
    async with serving(tmp_path, RUN) as site:
        assert (404, b"there is no result yet\n") == (await site.get("/results/sysd/node1")).said
        for path in (
            "sysd/node9",
            "sysd",
            "sysd/node1/",
            "sysd/%2e%2e",
            "../run.db",
            "e2e/global/x",
        ):
            assert 404 == (await site.get(f"/results/{path}")).status
        assert 405 == (await site.get("/results/sysd/node1", method="DELETE")).status
        async with connected(site.address, None) as wire:
            await wire.send(head("GET", "/results/sysd/node1", host="evil.example"))
            assert 403 == (await wire.reply()).status


@pytest.mark.parametrize("keep", [False, True])
@situation
async def test_after_the_tarball(tmp_path, keep):
    """410 once its bytes are in the tarball only; an error of ours is in the row."""
    async with serving(tmp_path, RUN, keep_blobs=keep) as site:
        await site.put(NODE1, b"x")
        await site.pack()
        await site.finish.clear(site.store.snapshot())
        reply, error = await site.get("/results/sysd/node1"), await site.get("/results/e2e/global")
        whole = await site.get("/results")
        rest = await site.get("/results", "Range: bytes=10-")

        assert (200 if keep else 410) == reply.status
        assert (200, "error") == (error.status, error.headers["result-outcome"])
        tar = site.store.snapshot().tar
        assert tar is not None
        assert (200, tar.size, digest_header(whole.body)) == (
            whole.status,
            len(whole.body),
            whole.headers["result-digest"],
        )
        assert (206, whole.body[10:]) == rest.said


@situation
async def test_a_download_counts_once_its_digest_is_confirmed(tmp_path):
    """Not when the bytes have left: a proxy may have them, or a full disk. By its audience only."""
    async with serving(tmp_path, RUN) as site:
        early = await site.confirm(b'{"sha256": ""}')
        await site.put(NODE1, b"x")
        await site.pack()
        digest = hashlib.sha256((await site.get("/results")).body).hexdigest()
        refused = [
            await site.confirm(body, host)
            for body, host in (
                (json.dumps({"sha256": "0" * 64}).encode(), "localhost"),
                (b"{}", "localhost"),
                (b'{"sha256": 1}', "localhost"),
                (b" " * 2000, "localhost"),
                (b"", "localhost"),
                (json.dumps({"sha256": digest}).encode(), "elsewhere"),
            )
        ]
        asked = await site.get("/results/retrieved")
        assert [404, 409, 400, 400, 400, 400, 403] == [each.status for each in (early, *refused)]
        assert (405, "POST") == (asked.status, asked.headers["allow"])
        assert site.store.snapshot().retrieved_at is None

        assert (200, b"") == (await site.confirm(json.dumps({"sha256": digest}).encode())).said
        assert site.store.snapshot().retrieved_at is not None


@situation
async def test_a_confirmation_that_cannot_be_noted(tmp_path):
    """A full disk costs no one the results; whoever confirms hears of it."""
    full: list[Exception] = []

    def commit() -> None:
        for error in full:
            raise error

    async with serving(tmp_path, RUN, before_commit=commit) as site:
        await site.pack()
        full.append(sqlite3.OperationalError("database or disk is full"))
        whole = await site.get("/results")

        assert (200, True) == (whole.status, bool(whole.body))
        digest = hashlib.sha256(whole.body).hexdigest()
        assert 503 == (await site.confirm(json.dumps({"sha256": digest}).encode())).status
        assert site.store.snapshot().retrieved_at is None


@pytest.mark.parametrize("packed", [True, False])
@situation
async def test_a_blob_that_goes_before_it_is_opened(tmp_path, packed):
    """410 if it went because it is in the tarball, else 503; never 404, and never half a file."""

    class Late(Results):
        async def one(self, key):
            answer = await super().one(key)
            if isinstance(answer, FileResponse):
                if packed:
                    await site.pack()
                    await site.finish.clear(site.store.snapshot())
                else:
                    site.blob(NODE1).unlink()
            return answer

    async with serving(tmp_path, RUN, results=Late) as site:
        await site.put(NODE1, b"x")
        reply = await site.get("/results/sysd/node1")

        assert (410 if packed else 503) == reply.status
        assert [("status", reply.status)] == site.seen.requests


@pytest.mark.parametrize("encrypted", [False, True])
@situation
async def test_a_reader_that_takes_a_few_bytes_now_and_then(tmp_path, encrypted):
    """It is cut off when an upload of that size would be too slow; it may ask for the rest."""
    size = 20_000_000
    bound = {"UPLOAD_RATE": 10 * size, "UPLOAD_RATE_AFTER": 0.3}
    tls = server_context() if encrypted else None
    client = certs.client_context(certs.client("e2e")) if encrypted else None
    async with serving(tmp_path, RUN, tls=tls, **bound) as site, asyncio.timeout(HANG):
        await site.put(NODE1, bytes(size))
        async with connected(site.address, client) as wire:
            await wire.send(head("GET", "/results/sysd/node1", host="localhost"))
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                while site.listener.connections:
                    await wire.some(10)
                    await asyncio.sleep(0.01)
        await site.seen.until(lambda: site.seen.requests)
        async with connected(site.address, client) as wire:
            await wire.send(
                head("GET", "/results/sysd/node1", f"Range: bytes={size - 5}-", host="localhost")
            )
            assert (206, bytes(5)) == (await wire.reply()).said
        assert [("status", 200), ("status", 206)] == site.seen.requests


@situation
async def test_bytes_that_are_damaged(tmp_path):
    """503 for a blob or a tarball that is not what it was: nobody is to take it for the result."""
    async with serving(tmp_path, RUN, keep_blobs=True) as site:
        await site.put(NODE1, b"whole")
        blob = site.blob(NODE1)
        blob.write_bytes(b"half")
        assert 503 == (await site.get("/results/sysd/node1")).status
        blob.write_bytes(b"whole")
        await site.pack()
        (path,) = site.layout.output.glob("*.tar.gz")
        path.write_bytes(path.read_bytes()[:-1])
        assert (503, b"the results cannot be read\n") == (await site.get("/results")).said


@situation
async def test_a_reader_that_leaves(tmp_path):
    """The file is closed, and the next reader is served."""
    async with serving(tmp_path, RUN) as site, asyncio.timeout(HANG):
        await site.put(NODE1, bytes(20_000_000))
        async with connected(site.address, None) as wire:
            await wire.send(head("GET", "/results/sysd/node1", host="localhost"))
            await wire.some(1000)
        assert 20_000_000 == len((await site.get("/results/sysd/node1")).body)


@situation
async def test_readers_that_leave_over_tls(tmp_path, caplog):
    """The same: nothing goes on reading and writing for who is not there, and nothing fails."""
    context, client = server_context(), certs.client_context(certs.client("e2e"))
    async with serving(tmp_path, RUN, tls=context) as site, asyncio.timeout(HANG):
        await site.put(NODE1, bytes(20_000_000))
        for _ in range(10):
            async with connected(site.address, client) as wire:
                await wire.send(head("GET", "/results/sysd/node1", host="localhost"))
                await wire.some(1000)
                wire.cut()
        async with connected(site.address, client) as wire:
            await wire.send(head("GET", "/results/sysd/node1", host="localhost"))
            assert 20_000_000 == len((await wire.reply()).body)
    assert [] == [each.message for each in caplog.records if each.name == "asyncio"][:3]
