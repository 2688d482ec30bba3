"""What the page asks about results: tests that did not pass, facts that differ, a snapshot."""

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pytest

from reporter.aggregator.finish.finish import Finish
from reporter.aggregator.http import Audience, Shown, StatusApp
from reporter.aggregator.judging.process import Judge, JudgingStopped
from reporter.aggregator.store.blobs import BlobStore
from reporter.aggregator.store.layout import Layout
from reporter.aggregator.uploads import Intake
from reporter.aggregator.uploads.contents import Contents
from reporter.aggregator.uploads.judging import Judging
from reporter.core.run.plan import Key, Plan, Plugin
from reporter.core.run.record import Cause, Failure, ResultVerdict
from reporter.core.run.snapshot import Phase
from reporter.core.run.upload_head import Meta
from reporter.metrics.page import Page
from tests.aggregators.listening import limited, listening
from tests.aggregators.stores import QuickStore
from tests.archives import tars
from tests.integration.aggregator_http.scene import Seen, situation
from tests.integration.aggregator_http.test_files import Sender
from tests.integration.aggregator_http.test_status import Health
from tests.integration.aggregator_http.wire import HANG, Reply, connected, head

NODES = ("n1", "n2", "n3", "n4")
RUN = Plan(
    "run-1",
    (
        Plugin("junit", result_format="junit"),
        Plugin("go", result_format="gojson"),
        Plugin("adapter"),
        Plugin("host-facts", NODES),
        Plugin("cluster-snapshot"),
    ),
)
JUNIT, GO, ADAPTER, SNAPSHOT = (
    Key(name, "global") for name in ("junit", "go", "adapter", "cluster-snapshot")
)
PLAIN = Meta()
ARCHIVE = Meta(content_type="application/gzip", filename="r.tar.gz", disposition=True)
BAD_CASE = '<testcase name="c{}"><failure message="{}"/></testcase>'


@dataclass
class Site:
    """A run whose results are judged and shown."""

    store: QuickStore
    intake: Intake
    finish: Finish
    layout: Layout
    address: tuple[str, int]

    async def put(self, key: Key, body: bytes, meta: Meta = PLAIN) -> None:
        """Take a result in."""
        await self.intake.take(key, meta, Sender(body))

    async def judged(self, key: Key) -> None:
        """Wait for its verdict."""
        changed = asyncio.Event()
        unsubscribe = self.store.subscribe(changed.set)
        async with asyncio.timeout(HANG):
            while not self.store.entry(key).record.verdict:
                changed.clear()
                await changed.wait()
        unsubscribe()

    async def get(self, path: str, *headers: str, host: str = "localhost") -> Reply:
        """Ask for something."""
        async with connected(self.address, None) as wire:
            await wire.send(head("GET", path, *headers, host=host))
            return await wire.reply(method="GET")

    async def read(self, path: str) -> Any:
        """Ask for a document that is there."""
        reply = await self.get(path)
        assert 200 == reply.status, reply.said
        assert ("application/json", "nosniff") == (
            reply.headers["content-type"],
            reply.headers["x-content-type-options"],
        )
        return json.loads(reply.body)

    async def end(self) -> None:
        """Bring the run to its end, when the bytes of the results are gone."""
        for key in RUN.keys:
            if not self.store.entry(key).terminal:
                failure = Failure("final", 1.0, "pod gone", Cause.POD_FAILED)
                await self.store.mark_failed(key, failure)
        await self.store.advance_run(Phase.POST_PROCESSING)
        tar = await self.finish.package(self.store.snapshot())
        await self.store.advance_run(Phase.CLOSED, tar=tar)
        await self.finish.clear(self.store.snapshot())
        assert [] == [*self.layout.blobs.iterdir()]


@asynccontextmanager
async def serving(
    folder: Path,
    *,
    judged: bool = True,
    judge: Judge | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> AsyncIterator[Site]:
    """Serve a run until the end of the block."""
    store, seen, judge = QuickStore(), Seen(), judge or Judge()
    await store.open_run(RUN, now=time.time())
    layout = Layout(folder / "state", folder / "output")
    layout.prepare()
    blobs = BlobStore(layout)
    intake = Intake(layout, blobs, store, limited(disk_reserve_bytes=0), RUN)
    await intake.recover(store.snapshot())
    contents = Contents(layout, blobs, judge, clock=clock)
    app = StatusApp(
        store,
        Health(),
        lambda _: Page(b"", "text/plain", False),
        Audience.LOCAL,
        seen,
        shown=Shown(layout, contents),
    )
    listener = listening(app, seen)
    finish = Finish(layout, blobs, intake, judge, contents=contents)
    judging = (
        asyncio.create_task(Judging(layout, blobs, store, RUN, judge).run()) if judged else None
    )
    try:
        yield Site(store, intake, finish, layout, await listener.start())
    finally:
        if judging is not None:
            judging.cancel()
            await asyncio.wait((judging,))
        await listener.close(grace=1.0)
        await intake.close()
        await store.close()
    assert [] == seen.surprises


def packed(*files: tuple[str, bytes]) -> bytes:
    """An archive of these files."""
    return tars.tgz(*(tars.file(name.encode(), data) for name, data in files))


def facts(node: str, **more: Any) -> bytes:
    """What the gatherer writes on a node."""
    told = {"api_version": "v1", "collected_at": "now", "node": node, "kernel": "6.1", **more}
    return packed(("host/facts.json", json.dumps(told).encode()))


INDEX = {
    "serverVersion": "v1.34.4",
    "complete": False,
    "resources": [{"version": "v1", "resource": "pods", "count": 3, "truncated": "too large"}],
}


@situation
async def test_tests_that_did_not_pass(tmp_path):
    """Of two formats, what failed first, before and after the bytes of the result are gone."""
    report = f"<testsuite name='s'>{BAD_CASE.format(1, 'why')}<testcase/></testsuite>".encode()
    events = b'{"Action":"run","Package":"p","Test":"Open"}\n{"Action":"fail","Package":"q"}\n'
    async with serving(tmp_path) as site:
        assert 404 == (await site.get("/results/junit/global/report")).status
        await site.put(JUNIT, packed(("out/a.xml", report)), ARCHIVE)
        await site.put(GO, events)
        for key in (JUNIT, GO):
            await site.judged(key)
        junit = await site.read("/results/junit/global/report")
        go = await site.read("/results/go/global/report")
        assert {
            "run": "run-1",
            "key": "junit/global",
            "result_status": "failed",
            "result_counts": {"failed": 1, "passed": 1},
            "reason": "TestsFailed",
            "message": "1 of 2 tests failed: c1: why",
            "unlisted": {},
            "tests": [{"path": ["a.xml", "s"], "name": "c1", "status": "failed", "text": "why"}],
        } == junit
        assert [("failed", "q"), ("unknown", "Open"), ("unknown", "p")] == [
            (each["status"], each["name"]) for each in go["tests"]
        ]
        await site.end()
        assert junit == await site.read("/results/junit/global/report")
        assert "pod gone" == (await site.read("/results/host-facts/n1/report"))["tests"][0]["text"]


@situation
async def test_a_report_that_is_as_large_as_it_can_be(tmp_path):
    """Bounded in tests and in bytes; what is left out is counted; a reader that has it gets 304."""
    cases = "".join(BAD_CASE.format(number, "x" * 9000) for number in range(2_000))
    async with serving(tmp_path) as site:
        await site.put(JUNIT, f"<testsuite>{cases}</testsuite>".encode())
        await site.judged(JUNIT)
        reply = await site.get("/results/junit/global/report")
        document = json.loads(reply.body)
        listed = len(document["tests"])
        assert ["c0", "c1"] == [each["name"] for each in document["tests"][:2]]
        assert 20 < listed <= 200
        assert {"failed": 2_000 - listed} == document["unlisted"]
        assert len(reply.body) < 300_000
        again = await site.get(
            "/results/junit/global/report", f"If-None-Match: {reply.headers['etag']}"
        )
        assert (304, b"") == again.said


@situation
async def test_a_result_that_is_still_being_read(tmp_path):
    """409, and when to ask again."""
    async with serving(tmp_path, judged=False) as site:
        await site.put(JUNIT, b"<testsuite/>")
        reply = await site.get("/results/junit/global/report")
        assert (409, b"the result is still being read\n", "2") == (
            *reply.said,
            reply.headers["retry-after"],
        )


@situation
async def test_hostile_reports_cost_only_their_own_answer(tmp_path):
    """One that cannot be read says why; a kept file that was damaged is not used."""
    async with serving(tmp_path) as site:
        await site.put(JUNIT, BAD_CASE.format("&lt;b&gt;", "\u202ex").encode())
        await site.put(GO, b'{"Action":"fail","Package":"p","Test":"\\ud800\\u0000"}\nno\n')
        for key in (JUNIT, GO):
            await site.judged(key)
        junit = await site.read("/results/junit/global/report")
        assert "not a JUnit report" in junit["tests"][0]["text"]
        go = await site.read("/results/go/global/report")
        assert [("failed", "?\0"), ("unknown", "p"), ("unknown", "result")] == [
            (each["status"], each["name"]) for each in go["tests"]
        ]
        for each in site.layout.kept.iterdir():
            each.write_bytes(b"half")
        assert {"failed": 1, "unknown": 1} == (await site.read("/results/go/global/report"))[
            "unlisted"
        ]


@situation
async def test_facts_that_differ_between_nodes(tmp_path):
    """Of the nodes that are there so far; a damaged or foreign archive costs its own node."""
    async with serving(tmp_path) as site:
        path = "/facts/host-facts/differences"
        assert 404 == (await site.get(path)).status
        await site.put(Key("host-facts", "n1"), facts("n1"), ARCHIVE)
        alone = await site.read(path)
        assert (1, []) == (alone["nodes"], alone["differences"])
        await site.put(Key("host-facts", "n2"), facts("n2", kernel="5.4"), ARCHIVE)
        bomb = packed(("facts.json", b"[" * 10_000), ("x/facts.json", b'{"api_version":"v1"}'))
        await site.put(Key("host-facts", "n3"), bomb, ARCHIVE)
        await site.put(Key("host-facts", "n4"), facts("n4"), ARCHIVE)
        document = await site.read(path)
        expected = {
            "fact": "kernel",
            "majority": "6.1",
            "values": [
                {"value": "6.1", "count": 2, "nodes": ["n1", "n4"]},
                {"value": "5.4", "count": 1, "nodes": ["n2"]},
            ],
            "more_values": 0,
        }
        assert (3, [expected], ["n3"]) == (
            *(document[name] for name in ("nodes", "differences", "without")),
        )
        await site.end()
        assert document == await site.read(path)


@situation
async def test_what_a_snapshot_holds(tmp_path):
    """Its index, also after the run; without one 404."""
    path = "/results/cluster-snapshot/global/snapshot"
    async with serving(tmp_path) as site:
        assert 404 == (await site.get(path)).status
        index = json.dumps(INDEX).encode()
        await site.put(
            SNAPSHOT, packed(("x/index.json", b"{}"), ("resources/index.json", index)), ARCHIVE
        )
        document = await site.read(path)
        assert ("v1.34.4", 3, "too large") == (
            document["server_version"],
            document["totals"]["count"],
            document["resources"][0]["truncated"],
        )
        await site.end()
        assert document == await site.read(path)


class Meanwhile(Judge):
    """Does something while archives are read, or fails."""

    def __init__(self, act: Callable[[], None]) -> None:
        super().__init__()
        self._act = act

    def look(self, what: str, archives: IO[bytes]) -> bytes | None:
        """Read, and act before the answer is told."""
        found = super().look(what, archives)
        self._act()
        return found


@situation
async def test_bytes_that_go_while_they_are_read(tmp_path):
    """410: what was read of them may be wrong, and is not remembered."""

    def gone() -> None:
        for blob in (tmp_path / "state" / "blobs").iterdir():
            blob.unlink()

    async with serving(tmp_path, judge=Meanwhile(gone)) as site:
        await site.put(Key("host-facts", "n1"), facts("n1"), ARCHIVE)
        for _ in range(2):
            assert 410 == (await site.get("/facts/host-facts/differences")).status


@situation
async def test_results_that_cannot_be_read_now(tmp_path):
    """503, and the next one who asks may be luckier."""
    fails = [OSError(12, "no memory"), JudgingStopped("stopping")]

    def fail() -> None:
        if fails:
            raise fails.pop()

    async with serving(tmp_path, judge=Meanwhile(fail)) as site:
        await site.put(Key("host-facts", "n1"), facts("n1"), ARCHIVE)
        path = "/facts/host-facts/differences"
        assert [503, 503, 200] == [(await site.get(path)).status for _ in range(3)]


class Failing(Judge):
    """Can read nothing; counts how often it was asked to."""

    asked = 0

    def look(self, what: str, archives: IO[bytes]) -> bytes | None:
        """Fail."""
        self.asked += 1
        return None


@situation
async def test_results_that_cannot_be_read_are_left_alone_for_a_minute(tmp_path):
    """503 and when to ask again; nothing is read for it, until there is another result."""
    judge, now = Failing(), [0.0]
    async with serving(tmp_path, judge=judge, clock=lambda: now[0]) as site:
        path = "/facts/host-facts/differences"
        await site.put(Key("host-facts", "n1"), facts("n1"), ARCHIVE)
        for at, asked in ((0.0, 1), (59.0, 1), (60.0, 2), (61.0, 2)):
            now[0] = at
            reply = await site.get(path)
            assert (503, "15") == (reply.status, reply.headers["retry-after"])
            assert asked == judge.asked
        await site.put(Key("host-facts", "n2"), facts("n2"), ARCHIVE)
        assert 503 == (await site.get(path)).status
        assert 3 == judge.asked


@situation
async def test_facts_wait_for_verdicts(tmp_path):
    """While a result waits to be judged nothing else is read; what was read before is told."""
    async with serving(tmp_path, judged=False) as site:
        path = "/facts/host-facts/differences"
        await site.put(Key("host-facts", "n1"), facts("n1"), ARCHIVE)
        assert 200 == (await site.get(path)).status
        await site.put(JUNIT, b"<testsuite/>")
        assert 200 == (await site.get(path)).status
        await site.put(Key("host-facts", "n2"), facts("n2"), ARCHIVE)
        reply = await site.get(path)
        assert (409, b"results are still being judged\n", "5") == (
            *reply.said,
            reply.headers["retry-after"],
        )
        record = site.store.entry(JUNIT).record
        await site.store.judge(JUNIT, record.digest, ResultVerdict("passed", "", "", {"passed": 1}))
        assert 200 == (await site.get(path)).status


@situation
async def test_somebody_leaves_while_facts_are_compared(tmp_path):
    """The next one waits for what is at work, and gets its answer."""
    begun, go = threading.Event(), threading.Event()

    def wait() -> None:
        begun.set()
        assert go.wait(HANG)

    async with serving(tmp_path, judge=Meanwhile(wait)) as site:
        await site.put(Key("host-facts", "n1"), facts("n1"), ARCHIVE)
        path = "/facts/host-facts/differences"
        leaving = asyncio.create_task(site.get(path))
        await asyncio.to_thread(begun.wait, HANG)
        leaving.cancel()
        await asyncio.wait((leaving,))
        staying = asyncio.create_task(site.get(path))
        go.set()
        assert 200 == (await staying).status


@pytest.mark.parametrize("index", [b"[]", b"{", b"[" * 200_000, b""])
@situation
async def test_an_index_that_is_none(tmp_path, index):
    """404 with words, whatever it holds."""
    async with serving(tmp_path) as site:
        await site.put(SNAPSHOT, packed(("resources/index.json", index)), ARCHIVE)
        reply = await site.get("/results/cluster-snapshot/global/snapshot")
        assert (404, b"the results do not contain it\n") == reply.said


@pytest.mark.parametrize(
    "path",
    [
        "/results/junit/n1/report",
        "/results/no/global/report",
        "/results/junit/global/more",
        "/results/junit/global/report/",
        "/results/junit/../report",
        "/results/host-facts/n1/snapshot",
        "/results/junit/%/report",
        "/facts/no/differences",
        "/facts/host-facts",
        "/facts/host-facts/differences/more",
        "/facts/%2e%2e/differences",
    ],
)
@situation
async def test_paths_that_are_none(tmp_path, path):
    """404; and none of it is for strangers."""
    async with serving(tmp_path, judged=False) as site:
        assert 404 == (await site.get(path)).status
        assert 403 == (await site.get(path, host="evil.example")).status
