"""`/events`: what a reader of the run is told, and when it is told no more."""

import asyncio
import time
from contextlib import suppress

import pytest

from reporter.aggregator.http import Pace
from reporter.core.run.progress import Progress
from reporter.core.run.snapshot import Phase
from tests.integration.aggregator.event_stream import RESULT, applied, serving, without_time
from tests.integration.aggregator_http import certs
from tests.integration.aggregator_http.scene import E2E, NODE1, situation


@situation
async def test_the_first_event_is_the_whole_run():
    """A stream of events, with the time to wait before a reconnect, and the revision as id."""
    async with serving() as scene:
        reader = await scene.read()
        (event,) = await reader.until("snapshot")
        status = await scene.status()

        assert 200 == reader.status
        assert "text/event-stream; charset=utf-8" == reader.headers["content-type"]
        assert "no-store" == reader.headers["cache-control"]
        assert "3000" == reader.retry
        assert f"{certs.RUN}/{status['revision']}" == event.id
        assert without_time(status) == without_time(event.data)


@situation
async def test_a_change_is_told():
    """The entry as `/status` lists it, then the run without its entries; the id comes last."""
    async with serving() as scene:
        reader = await scene.read()
        (first,) = await reader.until("snapshot")
        await scene.progress(NODE1, "hello\nworld \u2028 ☃")
        entry, run = await reader.until("run")
        status = await scene.status()

        assert ("entry", first.id) == (entry.name, entry.id)
        assert "hello\nworld \u2028 ☃" == entry.data["progress"]["msg"]
        assert status["plugins"][1] == entry.data
        assert f"{certs.RUN}/{status['revision']}" == run.id
        del status["plugins"]
        assert status | {"time": ""} == run.data | {"time": ""}


@situation
async def test_many_changes_of_one_entry_are_told_once():
    """Only the newest state of an entry, not one event per update."""
    async with serving(Pace(flush=0.3)) as scene:
        reader = await scene.read()
        await reader.until("snapshot")
        for number in range(199):
            await scene.store.record_progress(E2E, Progress(msg=f"step {number}"), None, at=1.0)
        await scene.progress(E2E, "step 199")
        events = await reader.until("run")

        assert ["entry", "run"] == [event.name for event in events]
        assert "step 199" == events[0].data["progress"]["msg"]


@situation
async def test_no_more_than_two_flushes_a_second():
    """However often the run changes: here the same with a twentieth of the time."""
    flush = 0.1
    async with serving(Pace(flush=flush)) as scene:
        reader = await scene.read()
        await reader.until("snapshot")
        runs = 0
        began = time.monotonic()
        while runs < 5:
            await scene.progress(E2E, str(time.monotonic()))
            with suppress(TimeoutError):
                async with asyncio.timeout(0.005):
                    await reader.until("run")
                    runs += 1

        assert time.monotonic() - began >= 4 * flush


@situation
async def test_resume():
    """K16: who was away is told what has changed since, and nothing else."""
    async with serving() as scene:
        reader = await scene.read()
        (first,) = await reader.until("snapshot")
        await scene.progress(E2E, "before")
        known = applied(first.data, await reader.until("run"))
        reader.cut()
        await scene.connections(0)
        await scene.progress(NODE1, "while away")
        await scene.progress(NODE1, "while away, too")
        again = await scene.read(reader.id)
        events = await again.until("run")
        status = await scene.status()

        assert ["entry", "run"] == [event.name for event in events]
        assert "sysd/node1" == events[0].data["key"]
        assert f"{certs.RUN}/{status['revision']}" == again.id
        assert without_time(status) == without_time(applied(known, events))


@situation
async def test_resume_when_nothing_has_changed():
    """K16: silence until something does."""
    async with serving() as scene:
        (first,) = await (await scene.read()).until("snapshot")
        again = await scene.read(first.id)
        await scene.progress(E2E, "now")

        assert ["entry", "run"] == [event.name for event in await again.until("run")]


@pytest.mark.parametrize(
    "last_id",
    ["", "1", "other/1", "RUN", "RUN/", "RUN/999999", "RUN/-1", "RUN/1e3", "RUN/٣", "RUN/1/1"],
)
@situation
async def test_an_id_that_is_not_known(last_id):
    """K16: of another process, another run, or nonsense: the whole run again."""
    async with serving() as scene:
        reader = await scene.read(last_id.replace("RUN", certs.RUN))

        assert "snapshot" == (await reader.until("snapshot"))[0].name


@situation
async def test_a_large_run_begins_with_its_summary():
    """Then changes, as of any run; who was away too long gets the summary again."""
    async with serving(Pace(flush=0.02, largest=2, history=1)) as scene:
        reader = await scene.read()
        (first,) = await reader.until("summary")
        status = await scene.status()
        await scene.progress(NODE1, "hello")
        changes = await reader.until("run")
        resumed = await (await scene.read(first.id)).until("run")
        await scene.progress(NODE1, "hello again")
        (again,) = await (await scene.read(first.id)).until("summary")

        del status["plugins"]
        assert (first.data["counts"]["entries"], first.id) == (3, f"{certs.RUN}/1")
        assert status | {"time": ""} == first.data | {"time": ""}
        assert ["entry", "run"] == [event.name for event in changes]
        assert ["entry", "run"] == [event.name for event in resumed]
        assert (3, f"{certs.RUN}/3") == (again.data["revision"], again.id)


@situation
async def test_a_run_that_is_not_large():
    """As many entries as may be: all of them at once."""
    async with serving(Pace(flush=0.02, largest=3)) as scene:
        (first,) = await (await scene.read()).until("snapshot")

        assert 3 == len(first.data["plugins"])


@situation
async def test_an_id_that_is_too_old():
    """K16: beyond 1,000 revisions the whole run again; 1,000 are still resumed."""
    async with serving() as scene:
        await scene.progress(E2E, "begin")
        (first,) = await (await scene.read()).until("snapshot")
        for number in range(1000):
            await scene.progress(E2E, str(number))
        resumed = await scene.read(first.id)
        assert ["entry", "run"] == [event.name for event in await resumed.until("run")]
        await scene.progress(E2E, "one more")
        too_old = await scene.read(first.id)

        assert "snapshot" == (await too_old.until("snapshot"))[0].name


@situation
async def test_a_reader_that_was_cut_off_in_the_middle():
    """The id comes with the last event of what belongs together, so nothing is lost."""
    async with serving() as scene:
        reader = await scene.read()
        (first,) = await reader.until("snapshot")
        await scene.progress(E2E, "one")
        await scene.progress(NODE1, "two")
        cut_after = await reader.until("entry")
        reader.cut()
        again = await scene.read(cut_after[-1].id)
        events = await again.until("run")

        assert first.id == cut_after[-1].id
        assert ["e2e/global", "sysd/node1"] == [event.data["key"] for event in events[:-1]]


@situation
async def test_the_end():
    """K16: everything that was decided, then `end`, then the stream is over."""
    async with serving() as scene:
        reader = await scene.read()
        await reader.until("snapshot")
        await scene.finish()
        events = await reader.rest()
        (run,) = [event for event in events if event.name == "run"][-1:]

        assert "end" == events[-1].name
        assert {"revision": run.data["revision"]} == events[-1].data
        assert (True, "complete") == (run.data["final"], run.data["status"])
        await scene.connections(0)


@situation
async def test_a_reconnect_after_the_end():
    """K16: 204 without a body, which stops EventSource; a run that is packed again goes on."""
    async with serving() as scene:
        reader = await scene.read()
        await scene.finish(error="no space")
        await reader.rest()
        over = await scene.read(reader.id)
        assert await scene.store.package_again()
        again = await scene.read(reader.id)
        (run,) = await again.until("run")

        assert (204, 200) == (over.status, again.status)
        assert not {"content-length", "transfer-encoding"} & set(over.headers)
        assert (None, False) == (run.data["error"], run.data["final"])


@situation
async def test_a_reader_from_before_a_restart():
    """S10: ids mean the same to another process, so it is told what it has missed, no more."""
    async with serving() as scene:
        reader = await scene.read()
        (first,) = await reader.until("snapshot")
        await scene.progress(NODE1, "before")
        known = applied(first.data, await reader.until("run"))
        last_id = reader.id
        await scene.progress(E2E, "while away")
        async with serving(instead_of=scene) as other:
            again = await other.read(last_id)
            events = await again.until("run")
            status = await other.status()

        assert ["e2e/global"] == [event.data["key"] for event in events[:-1]]
        assert f"{certs.RUN}/{status['revision']}" == again.id
        assert without_time(status) == without_time(applied(known, events))


@situation
async def test_who_missed_the_end():
    """A reader that comes late, or was away, is told how it ended; then it is over for it, too."""
    async with serving() as scene:
        (first,) = await (await scene.read()).until("snapshot")
        await scene.finish()
        new, away = await scene.read(), await scene.read(first.id)
        told = await new.rest(), await away.rest()

        assert ["snapshot", "end"] == [event.name for event in told[0]]
        assert ["entry", "entry", "entry", "run", "end"] == [event.name for event in told[1]]
        assert [204, 204] == [(await scene.read(each.id)).status for each in (new, away)]


@situation
async def test_a_run_that_ended_without_a_tarball():
    """What was impossible is the end, too."""
    async with serving() as scene:
        reader = await scene.read()
        for key in scene.store.snapshot().entries:
            await scene.store.record_result(key, RESULT)
        await scene.store.advance_run(Phase.POST_PROCESSING)
        await scene.store.advance_run(Phase.CLOSED, error="disk full")
        events = await reader.rest()

        assert ("run", "disk full") == (events[-2].name, events[-2].data["error"])
        assert "end" == events[-1].name
