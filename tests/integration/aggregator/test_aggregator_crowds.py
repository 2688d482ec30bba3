"""Many at once, slow ones, broken ones and strangers, against a whole aggregator."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.aggregators import run_certificates as certs
from tests.aggregators.run_certificates import Pair
from tests.aggregators.served import plan
from tests.aggregators.worker import BOUND, Reply, Worker, digest_of, head, reply
from tests.blackbox.aggregator.starting import Start, unfinished

PUT = "/api/v1/results"


class Attacker:
    """A connection that sends a beginning, then one byte now and then, until it is cut off."""

    def __init__(
        self, worker: Worker, begin: bytes, drip: bytes, *, tls: bool = True, tries: int = 1
    ) -> None:
        self._worker, self._begin, self._drip, self._tls = worker, begin, drip, tls
        self._tries = tries
        self.cut_off = 0
        self.connected = asyncio.Event()
        self.heard = b""

    async def attack(self) -> None:
        """Go on until the end; again where a busy machine was too slow for the beginning."""
        for _ in range(self._tries):
            await self._attack()
            if self.heard:
                break

    async def _attack(self) -> None:
        options: dict[str, Any] = {}
        if self._tls:
            options = {"ssl": self._worker.context, "server_hostname": "127.0.0.1"}
        reader, writer = await self._connect(options)
        writer.write(self._begin)
        self.connected.set()
        drips = asyncio.create_task(self._go_on(writer))
        try:
            with suppress(OSError):
                self.heard = await asyncio.wait_for(reader.read(), BOUND)
        finally:
            drips.cancel()
            writer.transport.abort()
            await asyncio.gather(drips, writer.wait_closed(), return_exceptions=True)

    async def _connect(
        self, options: dict[str, Any]
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect, again where a busy machine was too slow for the time a handshake may take."""
        while True:
            with suppress(OSError):
                return await asyncio.open_connection(*self._worker.address, **options)
            self.cut_off += 1

    async def _go_on(self, writer: asyncio.StreamWriter) -> None:
        while self._drip:
            await asyncio.sleep(0.5)
            writer.write(self._drip)


@pytest.mark.parametrize(
    "share",
    [
        pytest.param(10, id="37 connections"),
        # A busy machine needs minutes for so many handshakes.
        pytest.param(1, id="370", marks=[pytest.mark.long, pytest.mark.timeout(900)]),
    ],
)
def test_slow_loris(start: Start, share: int) -> None:
    """A37: 200 dripping heads, 100 dripping bodies, 20 stalled bodies, 50 stalled handshakes.

    The quick one has a tenth of them. A good upload and an update are answered meanwhile; all the
    others are cut off.
    """
    nodes = [f"n{number}" for number in range(30)]
    limits = dict.fromkeys(("HANDSHAKE", "HEADER", "BODY_SILENCE", "UPLOAD_RATE_AFTER"), 4)
    document = plan("load", nodes)
    document["plugins"].append({"name": "good"})
    aggregator = start(document=document, limits=limits)
    load, good = aggregator.worker("load"), aggregator.worker("good")

    def body(number: int, drip: bytes) -> Attacker:
        # Two of a key are read at one time, so some slots are left: who has few keys cannot have
        # them all.
        path = f"{PUT}/by-node/n{number % 30}/load"
        begin = head("PUT", path, "Content-Length: 1000000") + b"b"
        return Attacker(load, begin, drip, tries=5)

    heads = [Attacker(load, b"PUT /api", b"x") for _ in range(200 // share)]
    bodies = [body(number, b"b") for number in range(100 // share)]
    stalled = [body(number, b"") for number in range(20 // share)]
    handshakes = [Attacker(load, b"\x16\x03\x01\x02", b"", tls=False) for _ in range(50 // share)]

    async def story() -> None:
        everybody = [*heads, *bodies, *stalled, *handshakes]
        attacks = [asyncio.create_task(each.attack()) for each in everybody]
        await asyncio.gather(*(each.connected.wait() for each in everybody))
        assert 200 == (await asyncio.to_thread(good.post, "global/good", msg="m")).status
        assert 200 == (await asyncio.to_thread(good.put, "global/good", b"good")).status
        assert any(not attack.done() for attack in attacks)
        for attack in attacks:
            await attack

    asyncio.run(asyncio.wait_for(story(), 10 * BOUND))

    assert {b""} == {each.heard for each in (*heads, *handshakes)}
    codes = {each.heard.partition(b"\r\n")[0] for each in (*bodies, *stalled)}
    assert {b"HTTP/1.1 503 Service Unavailable"} == codes
    assert {True} == {b"upload stalled" in each.heard for each in (*bodies, *stalled)}
    failures = 'status_aggregator_tls_failures_total{reason="timeout"}'
    aggregator.wait_status(lambda _: aggregator.metrics()[failures] >= len(handshakes))
    if share > 1:
        # Of hundreds at once some do not get through their handshake in time, and with TLS 1.3 a
        # client may not notice that.
        cut_off = sum(each.cut_off for each in (*heads, *bodies, *stalled))
        assert aggregator.metrics()[failures] <= len(handshakes) + cut_off
    aggregator.wait_metrics({"status_aggregator_uploads": 0})
    aggregator.wait_status(lambda _: not unfinished(aggregator))
    assert 200 == load.put("by-node/n0/load").status


def test_eighty_slow_uploads_of_one_certificate(start: Start) -> None:
    """Twelve bytes of another plugin are taken meanwhile; it waits for none of the eighty."""
    nodes = [f"n{number}" for number in range(80)]
    document = plan("load", nodes)
    document["plugins"].append({"name": "good"})
    aggregator = start(document=document, limits={"BODY_SILENCE": 600, "UPLOAD_RATE_AFTER": 600})
    load, good = aggregator.worker("load"), aggregator.worker("good")
    with ExitStack() as stack:
        for node in nodes:
            wire = stack.enter_context(load.connect())
            path = f"{PUT}/by-node/{node}/load"
            wire.sendall(head("PUT", path, "Content-Length: 1000000") + b"slow")
        aggregator.wait_metrics({"status_aggregator_uploads": 63})
        assert 200 == good.put("global/good", b"twelve bytes").status
        # Nobody else has anything open now: the last slot is theirs, too.
        aggregator.wait_metrics({"status_aggregator_uploads": 64})


def test_certificates_are_counted(start: Start, tmp_path: Path) -> None:
    """A19, A35, A55: strangers fail the handshake, others' keys are forbidden; nothing is kept."""
    (tmp_path / "workers.pem").write_bytes(certs.authority().certificate)
    document = {"run": certs.RUN, "plugins": [{"name": "e2e"}, {"name": "sysd"}]}
    aggregator = start("--worker-ca", str(tmp_path / "workers.pem"), document=document)
    issue, names = certs.authority().pair, ("e2e", certs.uri("e2e", "*"))
    hours = timedelta(hours=2)
    strangers = {
        "none": None,
        "another run's": certs.stranger().pair("e2e", *names),
        "expired": issue("e2e", *names, start=-hours, end=-hours / 2),
        "not yet valid": issue("e2e", *names, start=hours / 2, end=hours),
        "a server's": issue("e2e", *names, server=True),
    }
    ca = (aggregator.certificates / "ca.pem").read_bytes()

    def shows(pair: Pair | None) -> Worker:
        return Worker(aggregator.port, certs.client_context(pair, ca))

    for pair in strangers.values():
        with pytest.raises((ssl.SSLError, ConnectionError)):
            shows(pair).put("global/e2e")
    forbidden = {
        "other plugin's": issue("sysd", "sysd", certs.uri("sysd", "*")),
        "same plugin, another run's name": issue("e2e", "e2e", certs.uri("e2e", "*", "other")),
    }
    for pair in forbidden.values():
        worker = shows(pair)
        refused = worker.put("global/e2e")
        assert b"result e2e/global not permitted for this client certificate\n" == refused.body
        assert 403 == worker.post("global/e2e", msg="m").status
        assert 403 == worker.beat("global/e2e").status

    failures = 'status_aggregator_tls_failures_total{reason="certificate"}'
    counted = {failures: len(strangers)}
    for route in ("results", "progress", "heartbeat"):
        label = f'{{code="403",route="{route}"}}'
        counted[f"status_aggregator_requests_total{label}"] = len(forbidden)
    aggregator.wait_metrics(counted)
    entry = aggregator.entry("e2e/global")
    assert ("running", None, None) == (entry["status"], entry["progress"], entry["last-heartbeat"])
    assert 200 == shows(issue("e2e", *names)).put("global/e2e").status


def test_50_identical_uploads_at_once(start: Start) -> None:
    """A47: one 200, the others 409 with the same digest, one copy; the busy answer is no other."""
    aggregator = start()
    worker, body = aggregator.worker("e2e"), os.urandom(200_000)

    def put() -> Reply:
        while (found := worker.put("global/e2e", body)).headers.get("Result-Busy"):
            assert 503 == found.status
        return found

    with ThreadPoolExecutor(50) as pool:
        found = [pool.submit(put) for _ in range(50)]
        replies = [each.result(BOUND) for each in found]

    assert {200: 1, 409: 49} == Counter(each.status for each in replies)
    assert {digest_of(body)} == {each.digest for each in replies}
    assert 1 == len(list((aggregator.state / "blobs").iterdir()))
    aggregator.wait_status(lambda _: not unfinished(aggregator))


def test_uploads_cut_at_50_bytes(start: Start) -> None:
    """A17, F10: wherever the connection ends, the same upload again is taken at once."""
    cuts, size = 50, 300_000
    aggregator = start(document=plan("load", [f"n{number}" for number in range(cuts + 1)]))
    worker, body = aggregator.worker("load"), os.urandom(size)

    def one(number: int) -> None:
        key = f"by-node/n{number}/load"
        length = f"Content-Length: {size}"
        whole = head("PUT", f"/api/v1/results/{key}", length) + body
        with worker.connect() as wire:
            # From the first byte of the head to the last but one of the body.
            wire.sendall(whole[: 1 + number * (len(whole) - 2) // (cuts - 1)])
        again = worker.put(key, body)
        assert (200, digest_of(body)) == (again.status, again.digest), number

    with ThreadPoolExecutor(8) as pool:
        for each in [pool.submit(one, number) for number in range(cuts)]:
            each.result(BOUND)
    states = Counter(entry["status"] for entry in aggregator.status()["plugins"])
    assert {"complete": cuts, "running": 1} == states
    aggregator.wait_status(lambda _: not unfinished(aggregator))
    assert cuts == len(list((aggregator.state / "blobs").iterdir()))


def test_a_connection_that_is_kept_after_others_were_cut(start: Start) -> None:
    """Who behaves keeps its connection."""
    aggregator = start()
    worker = aggregator.worker("e2e")
    kept = worker.connection()
    try:
        for _ in range(3):
            with worker.connect() as wire:
                wire.sendall(head("PUT", f"{PUT}/global/e2e", "Content-Length: 9") + b"cut")
            kept.request("GET", "/api/v1/health/global/e2e")
            assert 200 == reply(kept).status
            assert kept.sock is not None
    finally:
        kept.close()
