"""`/status?since=REVISION&wait=SECONDS`: what readers of the run get, and when."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from urllib.parse import quote

import pytest

from reporter.aggregator.api import readers
from reporter.aggregator.server.answers import Answer
from reporter.run.plan import Key
from reporter.run.progress import Progress
from reporter.run.record import Rank, Record
from reporter.run.state import LauncherState, Phase, Step
from tests.aggregators import run_certificates as certs
from tests.aggregators.stores import QuickStore
from tests.integration.aggregator.api.scene import E2E, NODE1, situation
from tests.integration.aggregator.api.test_status import LOCAL, Status, serving
from tests.integration.aggregator.api.wire import HANG, connected, head

RESULT = Record(Rank.RESULT, 1.0, digest="ab" * 32, size=3)


async def poll(status: Status, since: int, wait: int = 20) -> Any:
    """Return the document of an answer."""
    reply = await status.ask(f"/status?since={since}&wait={wait}")
    assert 200 == reply.status
    return json.loads(reply.body)


async def progress(status: Status, key: Key, msg: str) -> int:
    """Let a plugin say something, have it written, and return the revision of that."""
    await status.store.record_progress(key, Progress(msg=msg), None, at=1.0)
    assert await status.store.probe()
    return status.store.snapshot().revision


async def finish(status: Status) -> int:
    """Bring the run to its end."""
    for key in status.store.snapshot().entries:
        await status.store.record_result(key, RESULT)
    await status.store.advance_run(Phase.POST_PROCESSING)
    await status.store.advance_run(Phase.CLOSED)
    return status.store.snapshot().revision


async def waits(status: Status, since: int) -> "asyncio.Task[Any]":
    """Ask for what is new, and return when the request waits."""
    waiting = len(status.store._view._subscribers)
    asked = asyncio.create_task(poll(status, since))
    async with asyncio.timeout(HANG):
        while len(status.store._view._subscribers) == waiting:
            await asyncio.sleep(0.005)
    return asked


async def idle(status: Status) -> None:
    """Return when nobody waits."""
    async with asyncio.timeout(HANG):
        while status.store._view._subscribers:
            await asyncio.sleep(0.005)


async def alone(status: Status) -> None:
    """Return when nobody is connected."""
    async with asyncio.timeout(HANG):
        while status.connections:
            await asyncio.sleep(0.005)


@asynccontextmanager
async def beginning(**options: Any) -> AsyncIterator[tuple[Status, int]]:
    """A run that has just begun, and its revision."""
    async with serving(**options) as status:
        yield status, status.store.snapshot().revision


@situation
async def test_a_reader_that_knows_an_older_revision_is_answered_at_once():
    """With the summary, and the entries that have changed, as in the whole status."""
    async with beginning() as (status, first):
        await progress(status, E2E, "before")
        known = await progress(status, NODE1, "one")
        newest = await progress(status, NODE1, "hello\nworld \u2028 ☃")
        found, newer = await poll(status, first), await poll(status, known)
        whole = json.loads((await status.ask("/status")).body)

    entries = {entry["key"]: entry for entry in whole.pop("plugins")}
    assert [entries["e2e/global"], entries["sysd/node1"]] == found.pop("plugins")
    assert ["sysd/node1"] == [entry["key"] for entry in newer["plugins"]]
    news = {"reset": False, "heard": {}, "next": None}
    assert whole | news | {"time": ""} == found | {"time": ""}
    assert newest == found["revision"]


@situation
async def test_a_reader_that_knows_everything_waits_for_the_next_change():
    """Then it is answered, long before its time is over."""
    async with beginning() as (status, first):
        asked = await waits(status, first)
        newest = await progress(status, NODE1, "news")
        found = await asked
        await idle(status)

    assert (newest, ["news"]) == (
        found["revision"],
        [entry["progress"]["msg"] for entry in found["plugins"]],
    )


@situation
async def test_a_wait_without_a_change_ends_with_nothing_new():
    """The run as it is, and none of its entries."""
    async with beginning() as (status, first):
        began = time.monotonic()
        found = await poll(status, first, wait=1)

        assert 1 <= time.monotonic() - began < HANG
        assert (first, [], False) == (found["revision"], found["plugins"], found["reset"])


@pytest.mark.parametrize("since", ["0", "2", "999999"])
@situation
async def test_a_reader_whose_revision_means_nothing_begins_anew(since):
    """At its start, or with the revision of another run: all entries."""
    async with beginning() as (status, _):
        found = await poll(status, int(since))

    assert (True, 3, None) == (found["reset"], len(found["plugins"]), found["next"])


@situation
async def test_a_revision_from_the_whole_status_is_known():
    """Although it is newer than what those who wait were last shown."""
    async with beginning() as (status, _):
        await poll(status, 0)
        newest = await progress(status, E2E, "m")
        found = await poll(status, newest, wait=0)

    assert (False, newest, []) == (found["reset"], found["revision"], found["plugins"])


@situation
async def test_more_than_one_answer_takes():
    """Changes and pages alike: less than a megabyte at a time, and in the end everything."""
    nodes = [f"node-{number}" for number in range(100)]
    plan = {"run": certs.RUN, "plugins": [{"name": "p", "nodes": nodes}]}
    async with beginning(plan=plan) as (status, first):
        keys = list(status.store.snapshot().entries)
        texts = tuple(f"{number} {'x' * 900}" for number in range(15))
        for key in keys:
            update = Progress(msg="m", failures=texts)
            await status.store.record_progress(key, update, None, at=1.0)
        assert await status.store.probe()
        newest, changed, known = status.store.snapshot().revision, list[str](), first
        while known < newest:
            reply = await status.ask(f"/status?since={known}")
            document = json.loads(reply.body)
            assert known < document["revision"]
            assert len(reply.body) < 10**6
            known = document["revision"]
            changed += [entry["key"] for entry in document["plugins"]]
        page = await poll(status, 0)
        listed = page["plugins"]
        while page["next"]:
            after = quote(page["next"], safe="")
            page = json.loads((await status.ask(f"/status?limit=5000&after={after}")).body)
            listed += page["plugins"]

    assert sorted(map(str, keys)) == sorted(changed)
    assert list(map(str, keys)) == [entry["key"] for entry in listed]


@situation
async def test_a_revision_means_the_same_after_a_restart():
    """Who was away meanwhile gets what has changed, no more."""
    async with beginning() as (status, first):
        await progress(status, NODE1, "while away")
        await status.store.close()
        path = status.store.path
        async with serving(store=QuickStore(path)) as other:
            found = await poll(other, first)
        await status.store.open_run(status.store.snapshot().plan, now=time.time())

    assert (False, ["sysd/node1"]) == (
        found["reset"],
        [entry["key"] for entry in found["plugins"]],
    )


@situation
async def test_the_end_is_told_once():
    """Who waits gets it; after that 204 without a body, at once; a run packed again goes on."""
    async with beginning() as (status, first):
        asked = await waits(status, first)
        last = await finish(status)
        while not (found := await asked)["final"]:
            asked = asyncio.create_task(poll(status, found["revision"]))
        over = await status.ask(f"/status?since={last}&wait=20")
        late = await poll(status, first)

    assert (last, True) == (found["revision"], late["final"])
    assert (204, b"") == over.said
    assert not {"content-length", "transfer-encoding"} & set(over.headers)


@situation
async def test_a_run_that_is_over_and_still_removes_its_plugins():
    """A reader waits for what becomes of them."""
    async with beginning() as (status, _):
        status.store.show_launch({}, LauncherState(Step.REMOVING))
        last = await finish(status)
        asked = await waits(status, max(last, status.store.snapshot().revision))
        stays = {"Job r1": "it is being deleted"}
        status.store.show_launch({}, LauncherState(Step.DONE, stays=stays))
        found = await asked
        over = await status.ask(f"/status?since={found['revision']}&wait=20")

    assert (True, "done") == (found["final"], found["launcher"]["step"])
    assert (204, b"") == over.said


@situation
async def test_heartbeats_are_no_change_but_their_ages_are_told():
    """Of those that were heard since the reader can have known its revision."""
    async with beginning() as (status, first):
        status.store.record_heartbeat(E2E, time.monotonic() - 60, beat=True)
        old = await poll(status, 0)
        status.store.record_heartbeat(NODE1, time.monotonic(), beat=True)
        new = await poll(status, first, wait=1)

    assert [60, None, None] == [entry["last-heartbeat"] for entry in old["plugins"]]
    assert ({}, ["sysd/node1"]) == (old["heard"], list(new["heard"]))
    assert (first, []) == (new["revision"], new["plugins"])


@situation
async def test_no_more_than_two_answers_a_second():
    """However often the run changes, and however fast its reader is."""
    async with beginning() as (status, first):
        ended, since = False, first

        async def change() -> None:
            while not ended:
                await progress(status, E2E, str(time.monotonic()))

        changing = asyncio.create_task(change())
        began, number = time.monotonic(), 0
        while number < 5:
            since = (await poll(status, since))["revision"]
            number += 1
        ended = True
        await changing

        assert time.monotonic() - began >= 3 * 0.5


@situation
async def test_many_readers_of_a_revision_get_one_answer(monkeypatch):
    """Made once: all of them share its bytes."""
    made, make = [], readers._made

    def count(*given: Any) -> Answer:
        made.append(make(*given))
        return made[-1]

    monkeypatch.setattr(readers, "_made", count)
    async with beginning() as (status, first):
        asked = [await waits(status, first) for _ in range(5)]
        await progress(status, NODE1, "news")
        found = await asyncio.gather(*asked)

    assert [json.loads(made[0].content)] * 5 == found
    assert 1 == len(made)


@situation
async def test_the_33rd_reader_does_not_wait():
    """It is answered at once; a place is free again as soon as a reader is gone."""
    async with beginning() as (status, first):
        async with connected(status.address, None) as gone:
            await gone.send(head("GET", f"/status?since={first}&wait=20", host=LOCAL))
            rest = [await waits(status, first) for _ in range(readers.WAITING - 1)]
            began = time.monotonic()
            found = await poll(status, first)
            took = time.monotonic() - began
        async with asyncio.timeout(10):  # not its 20 seconds
            while len(status.store._view._subscribers) >= readers.WAITING:
                await asyncio.sleep(0.005)
        rest.append(await waits(status, first))
        await progress(status, E2E, "m")
        await asyncio.gather(*rest)
        await idle(status)

    assert (first, []) == (found["revision"], found["plugins"])
    assert took < 10  # not its 20 seconds


@situation
async def test_the_service_stops():
    """Who waits is answered."""
    async with beginning() as (status, first):
        asked = await waits(status, first)
        status.app.close()

        assert first == (await asked)["revision"]


@situation
async def test_whole_documents_that_are_read_slowly():
    """While those on their way take much memory, others share the newest, if it is not old."""
    nodes = [f"node-{number}" for number in range(300)]
    plan = {"run": certs.RUN, "plugins": [{"name": "p", "nodes": nodes}]}
    async with AsyncExitStack() as slow, beginning(plan=plan) as (status, _):
        sent = set[int]()
        while len(sent) < 12:
            texts = tuple(f"{len(sent)} {each} {'x' * 900}" for each in range(15))
            for key in status.store.snapshot().entries:
                update = Progress(msg="m", failures=texts)
                await status.store.record_progress(key, update, None, at=1.0)
            assert await status.store.probe()
            sent.add(status.store.snapshot().revision)
            reader = await slow.enter_async_context(connected(status.address, None))
            await reader.send(head("GET", "/status", host=LOCAL))
            assert b"HTTP/1.1 200" == await reader.some(12)
        documents = [len(answer.content) for answer in status.app._readers._wholes]
        newest = status.store.snapshot().revision
        summary = json.loads((await status.ask("/status?summary=true")).body)

        assert 2 < len(documents) < 12
        assert sum(documents) < 24 * 2**20
        assert newest == summary["revision"]


@situation
async def test_whole_documents_when_the_newest_is_old(monkeypatch):
    """Refused until those on their way have been read; parts of the run are served."""
    monkeypatch.setattr(readers, "_ROOM", -1)
    async with beginning() as (status, _):
        refused = await status.ask("/status")
        summary = await status.ask("/status?summary=true")

    assert (503, "5", 200) == (refused.status, refused.headers["retry-after"], summary.status)


@situation
async def test_a_whole_document_that_nobody_reads_any_more(monkeypatch):
    """It makes room for the next one, in whatever encoding that is."""
    monkeypatch.setattr(readers, "_ROOM", 0)
    monkeypatch.setattr(readers, "_FULL_AGE", 0.0)
    async with beginning() as (status, _):
        found = []
        for number, accepted in enumerate(("identity", "gzip", "identity", "identity")):
            await progress(status, NODE1, f"step {number}")
            found.append(await status.ask("/status", f"Accept-Encoding: {accepted}"))
            await alone(status)
        found.append(await status.ask("/status", "Accept-Encoding: gzip"))

        assert [200] * 5 == [reply.status for reply in found]
        assert b"step 3" in found[-2].body
