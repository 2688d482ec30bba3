"""Results that are judged once they are in: by a process of its own, whatever they hold."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from reporter.aggregator.judging.process import Judge
from reporter.aggregator.uploads.judging import Judging
from reporter.core.run.plan import Key, Plan, Plugin
from reporter.core.run.record import Record, Verdict
from tests.archives import tars
from tests.integration.uploads.scene import ARCHIVE, PLAIN, REPORT, Scene, play, sha, stored

JUNIT, GO, MANUAL, RAW, NAMED = (
    Key(name, "global") for name in ("junit", "go", "manual", "raw", "named")
)
PLAN = Plan(
    "run-1",
    (
        Plugin("junit", result_format="junit"),
        Plugin("go", result_format="gojson"),
        Plugin("manual", result_format="manual"),
        Plugin("raw"),
        Plugin("named", result_format="junit", result_files=("wanted.txt",)),
    ),
)
BOUND = 60.0
FAILING = (
    b'<testsuite name="s"><testcase name="opens"/><testcase name="closes">'
    b'<failure message="is\x20open">line 7</failure></testcase></testsuite>'
)
PASSING = b'<testsuite name="s"><testcase name="opens"/></testsuite>'


def packed(*files: tuple[str, bytes]) -> bytes:
    """An archive of these files."""
    return tars.tgz(*(tars.file(name.encode(), data) for name, data in files))


@contextlib.asynccontextmanager
async def judging(here: Scene, plan: Plan = PLAN) -> AsyncIterator[None]:
    """Judge what is in until the end of the block."""
    task = asyncio.create_task(Judging(here.layout, here.store, plan, Judge()).run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait((task,))


async def judged(here: Scene, *keys: Key) -> list[Record]:
    """Wait until these have a verdict."""
    changed = asyncio.Event()
    unsubscribe = here.store.subscribe(changed.set)
    async with asyncio.timeout(BOUND):
        while not all(here.store.entry(key).record.verdict for key in keys):
            changed.clear()
            await changed.wait()
    unsubscribe()
    return [here.store.entry(key).record for key in keys]


def said(record: Record) -> tuple[str, str, str, dict[str, int]]:
    """What a verdict says."""
    return record.verdict, record.reason, record.message, dict(record.counts)


def test_reports_of_every_format(tmp_path: Path) -> None:
    """The sender has its answer before; archives and single files alike."""

    async def story(here: Scene) -> None:
        archive = packed(("out/deep/junit.xml", FAILING), ("out/log.txt", b"<"))
        assert stored(sha(archive)) == await here.put(JUNIT, archive, ARCHIVE)
        assert "" == here.store.entry(JUNIT).record.verdict
        await here.put(GO, b'{"Action":"pass","Test":"A","Package":"p"}\n')
        await here.put(MANUAL, b"items: [{name: a, status: degraded}]")
        await here.put(RAW, packed(("a", b"1"), ("b/c", b"2")), ARCHIVE)
        await here.put(NAMED, packed(("a.xml", FAILING), ("b/wanted.txt", PASSING)), ARCHIVE)
        async with judging(here):
            found = await judged(here, JUNIT, GO, MANUAL, RAW, NAMED)
        assert [
            (
                "failed",
                "TestsFailed",
                "1 of 2 tests failed: closes: is open line 7",
                {"passed": 1, "failed": 1},
            ),
            ("passed", "", "", {"passed": 1}),
            ("unknown", "NoResults", "some tests neither passed nor failed", {"degraded": 1}),
            ("passed", "", "", {"passed": 2}),
            ("passed", "", "", {"passed": 1}),
        ] == [said(record) for record in found]

    play(tmp_path, story, plan=PLAN)


def test_results_that_say_nothing_are_unknown(tmp_path: Path) -> None:
    """Not XML; no file that fits; an archive without files; an entity bomb."""

    async def story(here: Scene) -> None:
        bomb = b'<!DOCTYPE a [<!ENTITY b "c">]><testsuite/>'
        await here.put(JUNIT, b"no")
        await here.put(GO, packed(("a.txt", b"")), ARCHIVE)
        await here.put(RAW, packed(), ARCHIVE)
        await here.put(NAMED, packed(("wanted.txt", bomb)), ARCHIVE)
        async with judging(here):
            found = await judged(here, JUNIT, GO, RAW, NAMED)
        assert [
            ("InvalidResultFormat", "result: not valid XML: syntax error: line 1, column 0"),
            ("InvalidResultFormat", "no file of the format gojson in it"),
            ("NoResults", "no file in it"),
            (
                "InvalidResultFormat",
                "wanted.txt: a document type with declarations is not allowed",
            ),
        ] == [(record.reason, record.message) for record in found]
        assert {"unknown"} == {record.verdict for record in found}

    play(tmp_path, story, plan=PLAN)


def test_a_process_that_was_killed_before_the_verdict_judges_after_its_restart(
    tmp_path: Path,
) -> None:
    """The result was accepted; a verdict once given stays."""

    async def story(here: Scene) -> None:
        async with here.open(plan=PLAN):
            await here.put(JUNIT, FAILING)
        async with here.open(plan=PLAN), judging(here):
            (found,) = await judged(here, JUNIT)
        assert "failed" == found.verdict
        async with here.open(plan=PLAN):
            assert said(found) == said(here.store.entry(JUNIT).record)

    asyncio.run(story(Scene(tmp_path)))


def test_an_error_that_gives_way_to_a_result_and_a_verdict_that_comes_too_late(
    tmp_path: Path,
) -> None:
    """What was judged may have been replaced by then; only the bytes it is about get it."""

    async def story(here: Scene) -> None:
        await here.put(JUNIT, b'{"error":"gone"}', REPORT)
        async with judging(here):
            await here.put(JUNIT, PASSING, PLAIN)
            (record,) = await judged(here, JUNIT)
        assert "passed" == record.verdict
        assert not await here.store.judge(JUNIT, record.digest, Verdict("failed"))
        assert not await here.store.judge(RAW, record.digest, Verdict("failed"))
        await here.put(GO, b"{}")
        assert not await here.store.judge(GO, "other", Verdict("failed"))

    play(tmp_path, story, plan=PLAN)
