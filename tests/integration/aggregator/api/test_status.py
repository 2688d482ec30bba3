"""The status listener: probes for anyone, run data for its audience."""

import asyncio
import contextlib
import gzip
import itertools
import json
import socket
import ssl
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

import pytest

from reporter.aggregator.api.status_app import StatusApp
from reporter.aggregator.certificates import tls
from reporter.aggregator.server.listener import Listener
from reporter.common.metrics import Page
from reporter.run.plan import Key, parse_plan
from reporter.run.progress import Progress
from tests.aggregators import run_certificates as certs
from tests.aggregators.contexts import context
from tests.aggregators.listening import constants, listening
from tests.aggregators.stores import QuickStore
from tests.integration.aggregator.api.scene import E2E, PLAN, Seen, situation
from tests.integration.aggregator.api.wire import HANG, Reply, Wire, connected, head

LOCAL = "localhost:8081"


class Health:
    """Whatever a test says."""

    alive = True

    def __init__(self) -> None:
        self.problems: dict[str, str | None] = {"worker-listener": None, "store": None}

    def checks(self) -> dict[str, str | None]:
        """Name what must work."""
        return self.problems

    def scrape(self, accept: str) -> Page:
        """Render the metrics."""
        return Page(f"# for {accept}\n".encode(), "text/plain; version=0.0.4", False)


class Status:
    """A status listener at work."""

    def __init__(
        self,
        store: QuickStore,
        health: Health,
        listener: Listener,
        app: StatusApp,
        context: ssl.SSLContext | None,
    ) -> None:
        self.store, self.health, self.app, self.context = store, health, app, context
        self.address = ("", 0)
        self._listener = listener

    @property
    def connections(self) -> int:
        """How many are open."""
        return self._listener.connections

    async def ask(
        self,
        target: str,
        *headers: str,
        method: str = "GET",
        host: str = LOCAL,
        peer: str | None = None,
    ) -> Reply:
        """Make one request, maybe from another address of this host."""
        local = (peer, 0) if peer else None
        name = "127.0.0.1" if self.context else None
        reader, writer = await asyncio.open_connection(
            *self.address, local_addr=local, ssl=self.context, server_hostname=name
        )
        wire = Wire(reader, writer)
        try:
            await wire.send(head(method, target, *headers, host=host))
            return await wire.reply(method=method)
        finally:
            wire.cut()
            with contextlib.suppress(ConnectionError, ssl.SSLError):
                await writer.wait_closed()


@asynccontextmanager
async def serving(
    *,
    settings: dict[str, Any] | None = None,
    server: ssl.SSLContext | None = None,
    client: ssl.SSLContext | None = None,
    host: str = "127.0.0.1",
    plan: dict[str, Any] | None = None,
    store: QuickStore | None = None,
    **listener_options: Any,
) -> AsyncIterator[Status]:
    """Serve the status of a run."""
    store = store or QuickStore()
    parsed, health, seen = parse_plan(plan or PLAN), Health(), Seen()
    await store.open_run(parsed, now=time.time())
    app = StatusApp(context(parsed, store=store, metrics=seen, settings=settings), health)
    listener = listening(app, seen, ssl_context=server, host=host, **listener_options)
    status = Status(store, health, listener, app, client)
    status.address = await listener.start()
    try:
        yield status
    finally:
        app.close()
        await listener.close(grace=1.0)
        await store.close()
    assert [] == seen.surprises


@situation
async def test_the_status_of_a_run():
    """The document of the run, for a peer on this host."""
    async with serving() as status:
        reply = await status.ask("/status")
        document = json.loads(reply.body)

        assert 200 == reply.status
        assert "application/json" == reply.headers["content-type"]
        assert ("running", certs.RUN) == (document["status"], document["run"])
        assert [("e2e", ""), ("sysd", "node1"), ("sysd", "node2")] == [
            (plugin["name"], plugin["node"]) for plugin in document["plugins"]
        ]


@situation
async def test_nothing_new():
    """Run and revision are the tag, weak as ages differ: 304 without a body until a change.

    An update that is not written yet is no 304, although it has no revision of its own.
    """
    async with serving() as status:
        tag = (await status.ask("/status")).headers["etag"]
        same = await status.ask("/status", f'If-None-Match: "x", {tag}')
        await status.store.record_progress(E2E, Progress(msg="m"), None, at=1.0)
        changed = await status.ask("/status", f"If-None-Match: {tag}")
        assert await status.store.probe()
        written = await status.ask("/status", f"If-None-Match: {tag}")

        assert tag == f'W/"{certs.RUN}/1"'
        assert (304, b"", tag) == (*same.said, same.headers["etag"])
        assert (200, 200) == (changed.status, written.status)
        assert f'W/"{certs.RUN}/2"' == written.headers["etag"]
        assert "m" == json.loads(changed.body)["plugins"][0]["progress"]["msg"]


@situation
async def test_the_summary():
    """The run without its entries; what it says of them is in its counts."""
    async with serving() as status:
        whole = json.loads((await status.ask("/status?summary=false")).body)
        summary = json.loads((await status.ask("/status?summary=true")).body)

        assert 3 == len(whole.pop("plugins"))
        assert whole | {"time": ""} == summary | {"time": ""}
        assert 3 == summary["counts"]["entries"]


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5000])
@situation
async def test_pages(limit):
    """All entries once, in the order of the plan; each page names the next, the last none."""
    async with serving() as status:
        whole = json.loads((await status.ask("/status")).body)
        pages = [json.loads((await status.ask(f"/status?limit={limit}")).body)]
        while after := pages[-1]["next"]:
            reply = await status.ask(f"/status?after={quote(after, safe='')}&limit={limit}")
            pages.append(json.loads(reply.body))

        assert whole["plugins"] == [entry for page in pages for entry in page["plugins"]]
        assert [limit] * (len(pages) - 1) == [len(page["plugins"]) for page in pages[:-1]]
        assert {frozenset(whole) | {"next"}} == {frozenset(page) for page in pages}


@situation
async def test_a_page_of_a_run_without_entries():
    """Empty, and the last one."""
    async with serving(plan={"run": certs.RUN, "plugins": []}) as status:
        page = json.loads((await status.ask("/status?limit=10")).body)

        assert ([], None) == (page["plugins"], page["next"])


@pytest.mark.parametrize(
    ("query", "line"),
    [
        ("summary=yes", "summary must be true or false"),
        ("summary", "summary must be true or false"),
        ("limit=0", "limit must be an integer from 1 to 5000"),
        ("limit=5001", "limit must be an integer from 1 to 5000"),
        ("limit=-1", "limit must be an integer from 1 to 5000"),
        ("limit=", "limit must be an integer from 1 to 5000"),
        ("limit=%D9%A3", "limit must be an integer from 1 to 5000"),
        ("limit=1" + "0" * 5000, "limit must be an integer from 1 to 5000"),
        ("limit=0000000050000000000", "limit must be an integer from 1 to 5000"),
        ("limit=000000005" + "9" * 30, "limit must be an integer from 1 to 5000"),
        ("after=e2e/global", "after requires limit"),
        ("limit=1&after=sysd/node9", "after must be the key of an entry, as PLUGIN/NODE or "),
        ("limit=1&after=", "after must be the key of an entry, as PLUGIN/NODE or "),
        ("limit=1&after=%ff", "after must be the key of an entry, as PLUGIN/NODE or "),
        ("limit=1&limit=2", "summary, limit, after, since and wait may be given once each"),
        ("summary=true&limit=1", "summary=true, limit and since cannot be combined"),
        ("since=1&limit=1", "summary=true, limit and since cannot be combined"),
        ("since=-1", "since must be an integer from 0 to 9223372036854775807"),
        ("since=9223372036854775808", "since must be an integer from 0 to 9223372036854775807"),
        ("since=1&wait=21", "wait must be an integer from 0 to 20"),
        ("since=1&wait=1.5", "wait must be an integer from 0 to 20"),
        ("wait=1", "wait requires since"),
    ],
)
@situation
async def test_a_query_that_asks_for_nothing(query, line):
    """400 with what is wrong, in a line."""
    async with serving() as status:
        reply = await status.ask(f"/status?{query}")

        assert 400 == reply.status
        assert reply.body.decode().startswith(line)
        assert "text/plain; charset=utf-8" == reply.headers["content-type"]


@pytest.mark.parametrize(
    ("accepted", "zipped"),
    [
        ("gzip", True),
        ("br, GZIP", True),
        ("gzip;q=0.5", True),
        ("deflate, gzip; q=1.0", True),
        ("gzip;q=0", False),
        ("gzip; q=0.000", False),
        ("identity", False),
        ("x-gzip", False),
        ("", False),
    ],
)
@situation
async def test_compressed_for_who_accepts_it(accepted, zipped):
    """The same text either way, and a cache is told what it depends on."""
    async with serving() as status:
        plain = await status.ask("/status")
        reply = await status.ask("/status", f"Accept-Encoding: {accepted}")

        assert ("gzip" if zipped else None) == reply.headers.get("content-encoding")
        text = gzip.decompress(reply.body) if zipped else reply.body
        times = [json.loads(each).pop("time") for each in (plain.body, text)]
        assert plain.body.replace(times[0].encode(), times[1].encode()) == text
        assert plain.headers["etag"] == reply.headers["etag"]
        assert "Accept-Encoding" == reply.headers["vary"]


@pytest.mark.skipif(sys.gettrace() is not None, reason="a tracer decides how long pauses are")
@situation
async def test_workers_are_served_while_a_large_status_is_made():
    """The loop goes on meanwhile: its longest pause is a small part of the time that takes."""
    nodes = [f"node-{number}" for number in range(20_000)]
    async with serving(plan={"run": certs.RUN, "plugins": [{"name": "p", "nodes": nodes}]}) as it:
        shares = [1.0]
        # Another process may pause this one; not five times.
        while min(shares) >= 0.1 and len(shares) <= 5:
            await it.store.record_progress(Key("p", "node-7"), Progress(msg="m"), None, at=1.0)
            asked = asyncio.create_task(it.ask("/status", "Accept-Encoding: gzip"))
            turns = [time.perf_counter()]
            while not asked.done():
                await asyncio.sleep(0)
                turns.append(time.perf_counter())
            pauses = [later - earlier for earlier, later in itertools.pairwise(turns)]
            shares.append(max(pauses) / sum(pauses))
            assert 20_000 == len(json.loads(gzip.decompress(asked.result().body))["plugins"])

        assert min(shares) < 0.1


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/status/e2e/global", 200),
        ("/status/sysd/node%31?x", 200),
        ("/status/sysd/node9", 404),
        ("/status/e2e", 404),
        ("/status/", 404),
        ("/status/e2e/global/", 404),
        ("/status/e2e/..", 404),
        ("/status//e2e/global", 404),
    ],
)
@situation
async def test_one_entry(path, code):
    """By plugin and node; other paths below do not exist, and nothing is redirected."""
    async with serving() as status:
        reply = await status.ask(path)

        assert code == reply.status
        if code == 200:
            assert {"e2e/global", "sysd/node1"} & {json.loads(reply.body)["key"]}


@situation
async def test_head_has_no_body():
    """HEAD answers as GET does, with the length and without the body."""
    async with serving() as status:
        reply = await status.ask("/status", method="HEAD")

        assert (200, b"") == reply.said
        assert int(reply.headers["content-length"]) > 0


@pytest.mark.parametrize("path", ["/status", "/livez", "/readyz", "/metrics"])
@situation
async def test_other_methods(path):
    """405 with what is allowed."""
    async with serving() as status:
        reply = await status.ask(path, method="POST")

        assert (405, b"", "GET, HEAD") == (*reply.said, reply.headers["allow"])


@pytest.mark.parametrize("path", ["/events", "/statusx", "/livez/", "/debug", "//status"])
@situation
async def test_paths_that_do_not_exist(path):
    """404."""
    async with serving() as status:
        assert (404, b"404 page not found\n") == (await status.ask(path)).said


@pytest.mark.parametrize(
    ("peer", "host", "code"),
    [
        (None, "localhost", 200),
        (None, "LOCALHOST:8081", 200),
        (None, "127.0.0.1:9000", 200),
        (None, "[::1]:8081", 200),
        (None, "[::1]", 200),
        (None, "localhost:", 200),
        (None, "evil.example", 403),
        (None, "evil.example:8081", 403),
        (None, "localhost.evil.example:8081", 403),
        (None, "localhost:8081@evil", 403),
        (None, "127.0.0.6:8081", 403),
        (None, "127.0.0.1:x", 403),
        (None, "", 403),
        ("127.0.0.6", "localhost", 403),
        ("127.0.0.2", "localhost", 403),
    ],
)
@situation
async def test_who_may_see_run_data(peer, host, code):
    """K15: exactly 127.0.0.1, asking for a loopback host; a mesh's 127.0.0.6 and DNS tricks not."""
    async with serving() as status:
        whole = await status.ask("/status", peer=peer, host=host)
        entry = await status.ask("/status/e2e/global", peer=peer, host=host)
        unknown = await status.ask("/status/nope/global", peer=peer, host=host)

        assert [code, code] == [whole.status, entry.status]
        assert (404 if code == 200 else 403) == unknown.status


@situation
async def test_probes_and_metrics_are_for_anyone():
    """K15: also for peers and hosts that may not see run data."""
    async with serving() as status:
        for path in ("/livez", "/healthz", "/readyz", "/readyz?verbose", "/metrics"):
            reply = await status.ask(path, peer="127.0.0.6", host="10.0.0.9:8081")
            assert 200 == reply.status


@situation
async def test_everybody_where_the_scope_is_any():
    """K15: STATUS_SCOPE=any."""
    async with serving(settings={"status_scope": "any"}) as status:
        assert 200 == (await status.ask("/status", peer="127.0.0.6", host="evil")).status


def _status_context() -> ssl.SSLContext:
    """A listener that asks for a certificate and takes clients without one."""
    context = tls.worker_context(certs.authority().certificate, certs.server())
    context.verify_mode = ssl.CERT_OPTIONAL
    return context


@pytest.mark.parametrize(
    ("certified", "peer", "host", "code"),
    [
        (True, "127.0.0.6", "aggregator", 200),
        (False, "127.0.0.6", "aggregator", 403),
        (False, "127.0.0.6", "localhost", 403),
        (False, None, "aggregator", 403),
        (False, None, "localhost:8081", 200),
    ],
)
@situation
async def test_certified_clients(certified, peer, host, code):
    """K15: with a certificate 200 from anywhere, without one only locally; probes always."""
    pair = certs.authority().pair("reader", "reader") if certified else None
    client = certs.client_context(pair)
    async with serving(
        settings={"status_tls_client_ca": "ca.pem"}, server=_status_context(), client=client
    ) as status:
        data = await status.ask("/status", peer=peer, host=host)
        probe = await status.ask("/livez", peer="127.0.0.6", host="aggregator")

        assert [code, 200] == [data.status, probe.status]


@situation
async def test_a_peer_on_ipv6():
    """K15: ::1 is this host, too, on a socket for both families."""
    if not socket.has_dualstack_ipv6():
        pytest.skip("no IPv6 here")
    async with serving(host="::") as status:
        for address in ("::1", "127.0.0.1"):
            status.address = (address, status.address[1])
            assert 200 == (await status.ask("/status")).status


@situation
async def test_liveness():
    """Asks for nothing but the process's own progress."""
    async with serving() as status:
        status.health.problems["store"] = "not writable"
        good = [(await status.ask(path)).said for path in ("/livez", "/healthz")]
        status.health.alive = False

        assert [(200, b"ok\n")] * 2 == good
        assert 503 == (await status.ask("/livez")).status


@situation
async def test_readiness():
    """Lists every check where something is wrong, or where it is asked for."""
    async with serving() as status:
        plain, verbose = await status.ask("/readyz"), await status.ask("/readyz?verbose")
        status.health.problems["store"] = "not writable"
        bad = await status.ask("/readyz")

        assert (200, b"ok\n") == plain.said
        assert (200, b"[+]worker-listener ok\n[+]store ok\nready\n") == verbose.said
        lines = b"[+]worker-listener ok\n[-]store: not writable\nnot ready\n"
        assert (503, lines) == bad.said


@situation
async def test_metrics():
    """In the format that the scraper prefers."""
    async with serving() as status:
        reply = await status.ask("/metrics", "Accept: application/openmetrics-text")

        assert (200, b"# for application/openmetrics-text\n") == reply.said
        assert "text/plain; version=0.0.4" == reply.headers["content-type"]


@pytest.mark.parametrize(
    "limit",
    [
        {"BODY_SILENCE": 0.3, "UPLOAD_RATE": 1},
        {"UPLOAD_RATE_AFTER": 0.3, "UPLOAD_RATE": 2**40},
    ],
)
@situation
async def test_a_reader_that_does_not_read(limit):
    """Who takes nothing of a large answer, or all of it too slowly, is cut off.

    It holds up nobody until then.
    """
    nodes = [f"node-{number}" for number in range(5000)]
    plan = {"run": certs.RUN, "plugins": [{"name": "p", "nodes": nodes}]}
    with constants(**{"BODY_SILENCE": 600.0, "HEADER": 600.0, **limit}):
        async with (
            serving(plan=plan, keep_alive=600.0) as status,
            connected(status.address, None) as deaf,
            asyncio.timeout(HANG),
        ):
            await deaf.send(head("GET", "/status", host=LOCAL) * 10)
            while not status.connections:
                await asyncio.sleep(0.005)
            assert 200 == (await status.ask("/livez")).status
            while status.connections:
                await asyncio.sleep(0.005)
