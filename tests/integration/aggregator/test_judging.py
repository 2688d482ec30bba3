"""L17: results that are judged once they are in: by a process of its own, whatever they hold."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import os
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any

import pytest
import yaml

from reporter.aggregator import judging as uploads
from reporter.aggregator.judging import Judging
from reporter.common import log
from reporter.ledger import StoreFull
from reporter.results import child, process
from reporter.results.child import Judgement, Task
from reporter.results.process import Budget, Judge
from reporter.run.error_report import INVALID
from reporter.run.plan import Key, Plan, Plugin
from reporter.run.record import Record, ResultVerdict
from reporter.run.state import Phase
from reporter.run.upload import Meta
from reporter.runctl.objects import objects
from tests.archives import tars
from tests.integration.aggregator.intake import scene
from tests.integration.aggregator.intake.scene import (
    ARCHIVE,
    PLAIN,
    REPORT,
    Scene,
    play,
    sha,
    stored,
)
from tests.plugin_launches import definition, options_of

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
async def judging(here: Scene, judge: Judge | None = None) -> AsyncIterator[None]:
    """Judge what is in until the end of the block."""
    here.context.judge = judge or Judge()
    task = asyncio.create_task(Judging(here.context).run())
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
        await here.put(
            GO, b'{"Action":"pass","Test":"A","Package":"p"}\n{"Action":"pass","Package":"p"}\n'
        )
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
            ("InvalidResultFormat", "no file of the format gojson found"),
            ("NoResults", "no files found"),
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
        assert not await here.store.judge(JUNIT, record.digest, ResultVerdict("failed"))
        assert not await here.store.judge(RAW, record.digest, ResultVerdict("failed"))
        await here.put(GO, b"{}")
        assert not await here.store.judge(GO, "other", ResultVerdict("failed"))

    play(tmp_path, story, plan=PLAN)


def read(
    judge: Judge,
    data: bytes,
    *,
    archive: bool = False,
    result_format: str = "junit",
    listing: IO[bytes] | None = None,
    budget: Budget | None = None,
) -> Judgement:
    """Judge one body, whose digest is `digest`."""
    budget = budget or Budget()
    task = Task(result_format, (), archive, len(data), "r", "results/global")
    with tempfile.TemporaryFile() as body:
        body.write(data)
        body.seek(0)
        return judge.judge(task, body, listing, budget=budget, digest="digest")


def test_an_archive_of_very_many_reports() -> None:
    """As of a build that writes one for each class: none of them costs memory once it is read."""
    found = read(Judge(), packed(*((f"{n}.xml", PASSING) for n in range(4_000))), archive=True)
    assert Judgement({"passed": 4_000}) == found


def test_what_is_read_fits_into_the_container() -> None:
    """Beside an aggregator with a large fleet, and the kernel ends the reader first."""
    program = (
        "import json, resource; from pathlib import Path; from reporter.results import "
        "child; child.limit(120); print(json.dumps([Path('/proc/self/oom_score_adj').read_text(), "
        "resource.getrlimit(resource.RLIMIT_AS)[0]]))"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    score, most = json.loads(said.stdout)
    aggregators = objects(options_of(definition("restricted adapter")))[-1]
    pod = aggregators["spec"]["template"]["spec"]["containers"][0]
    limit = int(pod["resources"]["limits"]["memory"].removesuffix("Mi")) * 2**20
    interpreter, aggregator = 32 * 2**20, 210 * 10**6  # 179 in docs/benchmarks.md
    assert aggregator + interpreter + child.MEMORY <= limit * 0.9
    assert (1000, True) == (int(score), most < limit)


def test_one_result_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks: two could take more memory than there is."""
    alive: list[subprocess.Popen[bytes]] = []
    others: list[int] = []

    class Counted(subprocess.Popen):
        def __init__(self, *words: object, **options: object) -> None:
            others.append(sum(each.poll() is None for each in alive))
            super().__init__(*words, **options)
            alive.append(self)

    monkeypatch.setattr(process.subprocess, "Popen", Counted)
    judge = Judge()
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: read(judge, PASSING), range(4)))
    assert ([Judgement({"passed": 1})] * 4, [0] * 4) == (found, others)


def test_a_result_that_takes_the_aggregator_with_it_each_time(tmp_path: Path) -> None:
    """The third restart does not read it any more, nor does a later one; others are read."""
    begun = tmp_path / "begun"
    begun.mkdir()

    program = """if True:
        import os
        from pathlib import Path
        from reporter.results import process
        from reporter.results.child import Task
        process.subprocess.Popen = lambda *_, **__: os.kill(os.getpid(), 9)
        judge = process.Judge(Path(os.environ["BEGUN"]))
        task = Task("junit", (), False, 1, "r", "results/global")
        judge.judge(task, None, budget=process.Budget(), digest="digest")
    """
    environment = {
        **os.environ,
        "BEGUN": str(begun),
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }

    def die() -> None:
        """Be killed, as the whole container is, when the reading has begun."""
        ended = subprocess.run([sys.executable, "-c", program], env=environment, check=False)
        assert -9 == ended.returncode

    die()
    assert Judgement({"passed": 1}) == read(Judge(begun), PASSING)
    assert [] == list(begun.iterdir())
    for _ in range(3):
        die()
    deadly = Judgement(note="the aggregator was killed 3 times while it was read", complete=False)
    assert [deadly] * 2 == [read(Judge(begun), PASSING) for _ in range(2)]
    event = b'{"Action":"pass","Test":"A"}\n{"Action":"pass"}'
    assert Judgement({"passed": 1}) == read(Judge(begun), event, result_format="gojson")


def test_nothing_can_be_noted(tmp_path: Path) -> None:
    """The disk is full, or the directory gone: that costs no verdict."""
    assert Judgement({"passed": 1}) == read(Judge(tmp_path / "missing"), PASSING)


FIRST = """
import os, sys
print(end=".", file=open(os.environ["COUNT"], "a"), flush=True)
tries = os.path.getsize(os.environ["COUNT"])
"""


@pytest.fixture
def tries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Callable[[], int]]:
    """Have the reader do something first, and return how often it was started by then."""

    def begin(first: str) -> Callable[[], int]:
        count = tmp_path / "count"
        monkeypatch.setenv("COUNT", str(count))
        monkeypatch.setattr(process, "_PAUSE", 0)
        monkeypatch.setattr(process, "_PROGRAM", f"{FIRST}{first}\n{process._PROGRAM}")
        return lambda: count.stat().st_size

    return begin


KILL = "    sys.stdin.buffer.read(); os.write(int(sys.argv[2]), b'half'); os.kill(os.getpid(), %d)"
KILLED = Judgement(note="the process that read it was killed 3 times", complete=False)
TOO_MUCH = Judgement(note="it takes too much memory to read", complete=False)
SPENT = Judgement(note="judging budget used up", complete=False)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize(("kills", "found"), [(2, Judgement({"passed": 1})), (9, KILLED)])
def test_a_reader_that_somebody_kills(tries, number: int, kills: int, found: Judgement) -> None:
    """That says nothing about the result: it is read again from its beginning, a few times."""
    tried = tries(f"if tries <= {kills}:\n{KILL % number}")
    with tempfile.TemporaryFile("w+b", buffering=0) as listing:
        listing.write(b"before\n")
        assert found == read(Judge(), PASSING, listing=listing)
        listing.seek(0)
        said = listing.read()
    assert (3, b"before\n", found is not KILLED) == (tried(), said[:7], b"half" not in said)


SPIN = """
import xml.parsers.expat, time
made = xml.parsers.expat.ParserCreate
def slow(*words, **options):
    end = time.process_time() + {}
    while time.process_time() < end: pass
    time.sleep({})
    return made(*words, **options)
xml.parsers.expat.ParserCreate = slow
"""


def test_a_reader_that_takes_too_long(tries) -> None:
    """The kernel ends it where the budget ends; once is enough, and the next one is not read."""
    tried = tries(SPIN.format(100, 0))
    budget = Budget(seconds=1)
    found = [read(Judge(), PASSING, budget=budget) for _ in range(2)]
    assert ([SPENT, SPENT], 1) == (found, tried())


def test_time_that_a_reader_has_only_waited(tries) -> None:
    """The machine is busy: that costs no verdict. What it has worked is taken off, no start."""
    tries(SPIN.format(0.5, 2))
    budget = Budget(seconds=1)
    assert Judgement({"passed": 1}) == read(Judge(), PASSING, budget=budget)
    assert 0.3 < budget.seconds <= 0.5


def test_a_reader_without_memory(tries, capfd) -> None:
    """That says nothing of the others: what it took is taken off, and not all there is.

    Nor do its own words reach our log.
    """
    tries(f"{SPIN.format(0.5, 0)}\nimport sys\nsys.argv[1] = ''\nslow()\n")
    budget = Budget()
    assert TOO_MUCH == read(Judge(), PASSING, budget=budget)
    assert (True, "") == (100 < budget.seconds < 120, capfd.readouterr().err)


def test_a_report_that_needs_more_memory_than_there_is() -> None:
    """What it has said before counts."""
    failed = b'{"Action":"fail","Test":"A"}\n'
    begun = b"".join(b'{"Action":"run","Test":"%d%s"}\n' % (n, b"x" * 60_000) for n in range(1_800))
    with tempfile.TemporaryFile("w+b", buffering=0) as listing:
        found = read(Judge(), failed + begun, result_format="gojson", listing=listing)
        listing.seek(0)
        (item,) = yaml.safe_load(listing)
    note = "it takes too much memory to read"
    assert Judgement({"failed": 1, "unknown": 1}, "A", "", f"r: {note}") == found
    assert (note, ["A"]) == (item["meta"]["error"], [each["name"] for each in item["items"]])


MANY = Plan(
    "run-1",
    (
        Plugin("many", tuple(f"n{n}" for n in range(8)), result_format="junit"),
        Plugin("one", result_format="junit"),
    ),
)


def test_a_plugin_with_little_does_not_wait_for_those_with_much(tmp_path: Path) -> None:
    """Judging goes round between plugins, however many there are."""
    order: list[str] = []
    nodes = MANY.plugins[0].nodes
    plan = Plan("run-1", (Plugin("more", nodes, result_format="junit"), *MANY.plugins))

    class Ordered(Judge):
        def judge(self, task: Task, *words: Any, budget: Budget, **options: Any) -> Judgement:
            order.append(task.name)
            budget.seconds -= 1  # more than a busy machine's clock may miss
            return super().judge(task, *words, budget=budget, **options)

    async def story(here: Scene) -> None:
        for key in plan.keys:
            await here.put(key, PASSING, Meta(filename=key.plugin))
        async with judging(here, Ordered()):
            await judged(here, *plan.keys)

    play(tmp_path, story, plan=plan)
    assert (17, {"more", "many"}) == (len(order), set(order[:2]))
    assert "one" in order[:5]


class Slow(Judge):
    """Five results are all that it reads of a plugin, whichever of two comes first."""

    paying = threading.Lock()

    def judge(self, *words: Any, budget: Budget, **options: Any) -> Judgement:
        with self.paying:
            found = super().judge(*words, budget=budget, **options)
            budget.seconds -= 24
        return found


def test_what_a_budget_has_no_room_for_is_unknown(tmp_path: Path) -> None:
    """With its reason, in the tarball too; the other plugin's budget is its own."""

    async def story(here: Scene) -> None:
        for key in MANY.keys:
            await here.put(key, PASSING)
        async with judging(here, Slow()):
            found = await judged(here, *MANY.keys)
        unread = ("unknown", "JudgingBudgetUsedUp", "judging budget used up", {"unknown": 1})
        assert [("passed", "", "", {"passed": 1})] * 5 + [unread] * 3 == sorted(
            map(said, found[:8]), key=lambda words: words[0]
        )
        assert "passed" == found[8].verdict
        await here.store.advance_run(Phase.POST_PROCESSING)
        await here.finish.package(here.store.snapshot())

    done = play(tmp_path, story, plan=MANY)
    errors = [node["items"][0]["meta"].get("error") for node in listed(done, "many")["items"]]
    assert [None] * 5 + ["judging budget used up"] * 3 == sorted(errors, key=bool)


def test_what_the_budget_of_packing_has_no_room_for(tmp_path: Path, monkeypatch) -> None:
    """The verdicts stand; the list of tests says what it lacks. Each plugin has its own budget."""
    monkeypatch.setattr(scene, "Judge", Slow)

    async def story(here: Scene) -> None:
        for key in MANY.keys:
            await here.put(key, PASSING)
        async with judging(here):
            assert {"passed"} == {record.verdict for record in await judged(here, *MANY.keys)}
        await here.store.advance_run(Phase.POST_PROCESSING)
        await here.finish.package(here.store.snapshot())

    done = play(tmp_path, story, plan=MANY)
    errors = [node["items"][0]["meta"].get("error") for node in listed(done, "many")["items"]]
    assert [None] * 5 + ["judging budget used up"] * 3 == errors
    assert "error" not in listed(done, "one")["items"][0]["meta"]


def listed(done: Scene, plugin: str) -> Any:
    """Return what the tarball lists of a plugin's tests."""
    (tarball,) = done.layout.output.glob("*.tar.gz")
    with tarfile.open(tarball) as tar:
        return yaml.safe_load(tar.extractfile(f"plugins/{plugin}/sonobuoy_results.yaml"))


def test_a_signal_to_our_group_does_not_reach_the_reader(tries) -> None:
    """As from a terminal: we end, and the next process judges it."""
    tried = tries("assert os.getpgid(0) != os.getpgid(os.getppid())")
    assert (Judgement({"passed": 1}), 1) == (read(Judge(), PASSING), tried())


@pytest.mark.parametrize(
    ("errors", "expected"),
    [
        ([errno.EAGAIN] * 20, ("passed", "", "")),
        ([errno.ENOMEM] * 999, ("unknown", INVALID, "it cannot be read: Cannot allocate memory")),
        ([RuntimeError("can't start new thread")] * 20, ("passed", "", "")),
        ([ValueError("unforeseen")] * 5, ("unknown", INVALID, "it cannot be read: unforeseen")),
        ([errno.EIO] * 4, ("passed", "", "")),
        ([errno.EIO] * 5, ("unknown", INVALID, "it cannot be read: Input/output error")),
    ],
)
def test_no_process_can_be_started(tmp_path: Path, monkeypatch, errors, expected) -> None:
    """That is our trouble and may pass: we wait for long, but not for ever."""
    left = iter(errors)
    judge = Judge()
    started = subprocess.Popen

    def start(*words: Any, **options: Any) -> object:
        with contextlib.suppress(StopIteration):
            error = next(left)
            raise OSError(error, os.strerror(error)) if isinstance(error, int) else error
        return started(*words, **options)

    monkeypatch.setattr(process.subprocess, "Popen", start)
    monkeypatch.setattr(uploads, "_PAUSE", 0)

    async def story(here: Scene) -> None:
        await here.put(JUNIT, PASSING)
        async with judging(here, judge=judge):
            (found,) = await judged(here, JUNIT)
        assert expected == (found.verdict, found.reason, found.message)

    play(tmp_path, story, plan=PLAN)


@pytest.mark.parametrize(
    "error", [OSError(errno.EIO, "broken"), ValueError("nobody thought of it")]
)
def test_results_that_cannot_be_read_hold_nobody(tmp_path: Path, error: Exception) -> None:
    """They are put off, each by itself; the log says which, and why."""
    *broken, last = MANY.keys[:8]

    class Broken(Judge):
        def judge(self, task: Task, *words: Any, **options: Any) -> Judgement:
            if task.name == "broken":
                raise error
            return super().judge(task, *words, **options)

    async def story(here: Scene) -> None:  # its clock stands still: no second try is ever due
        for key in MANY.keys:
            await here.put(key, PASSING, Meta(filename="broken" if key in broken else "well"))
        async with judging(here, Broken()):
            found = await judged(here, last, MANY.keys[8])
        assert ["passed"] * 2 == [record.verdict for record in found]
        assert {""} == {here.store.entry(key).record.verdict for key in broken}

    with log.capture() as events:
        play(tmp_path, story, plan=MANY)
    told = [event for event in events if event["message"].startswith("Result could not be")]
    assert sorted(map(str, broken)) == sorted(event["key"] for event in told)
    assert all(str(error.args[-1]) in event["error"] for event in told)
    assert all(("exception" in event) == isinstance(error, ValueError) for event in told)


def test_a_verdict_that_cannot_be_noted(tmp_path: Path, monkeypatch) -> None:
    """It is kept, not judged again: that would take of the budget."""
    monkeypatch.setattr(uploads, "_PAUSE", 0)
    read, full = [], [StoreFull("full")] * uploads._TRIES * 2

    class Counted(Judge):
        def judge(self, task: Task, *words: Any, **options: Any) -> Judgement:
            read.append(task.name)
            return super().judge(task, *words, **options)

    async def story(here: Scene) -> None:
        await here.put(JUNIT, PASSING)
        note = here.store.judge

        async def judge(*words: Any) -> bool:
            if full:
                raise full.pop()
            return await note(*words)

        here.store.judge = judge
        async with judging(here, Counted()):
            (found,) = await judged(here, JUNIT)
        assert ("passed", 1) == (found.verdict, len(read))

    play(tmp_path, story, plan=PLAN)
