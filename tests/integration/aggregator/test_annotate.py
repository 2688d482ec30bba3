"""The annotations on the aggregator's Pod: when they are written, and when they cannot be."""

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from reporter.aggregator.annotate import LOOK, Annotator, Cadence
from reporter.common import log
from reporter.kube.api import KubeApi
from reporter.run.annotation import RUN_ANNOTATION, STATUS_ANNOTATION, annotations
from reporter.run.entry import Entry
from reporter.run.plan import Key, Plan, Plugin
from reporter.run.progress import Progress, StoredProgress
from reporter.run.record import Rank, Record
from reporter.run.state import Phase, Snapshot, Tar
from tests.aggregators.contexts import context
from tests.fakekube import Answer, FakeKube, Hang, make_job, make_pod

NAMESPACE = "default"
POD = "status-aggregator-0"
E2E = Key("e2e", "global")
PLAN = Plan("a-run", (Plugin("e2e"), Plugin("sysd", nodes=("node1", "node2"))))
RESULT = Record(rank=Rank.RESULT, at=2.0, digest="0" * 64, size=3)


def fresh() -> Snapshot:
    return Snapshot(
        plan=PLAN,
        revision=1,
        phase=Phase.RUNNING,
        started_at=1.0,
        entries={key: Entry(key) for key in PLAN.keys},
        progress={},
        beats={},
    )


class Bench:
    """A run that changes by hand, a Pod on the fake server, and time that passes by hand."""

    def __init__(self, fake: FakeKube, api: KubeApi, **options: Any) -> None:
        self.fake, self.now, self.run = fake, 1000.0, fresh()
        self.failures = 0
        self.writes: list[float] = []
        rng = options.pop("rng", lambda: 0.5)
        settings = {"pod_namespace": NAMESPACE, "pod_name": POD, **options}
        shared = context(PLAN, settings=settings, wall=lambda: self.now)
        shared.store = cast("Any", SimpleNamespace(snapshot=lambda: self.run))
        shared.metrics.count = self.count  # type: ignore[method-assign]
        self.annotator = Annotator(shared, api, rng)

    def count(self, name: str, by: int = 1) -> None:
        assert "annotation_failures" == name
        self.failures += by

    def change(self, **fields: Any) -> None:
        self.run = replace(self.run, revision=self.run.revision + 1, **fields)

    def tell(self, message: str) -> None:
        self.change(progress={E2E: StoredProgress(Progress(msg=message), at=3.0)})

    def finish(self) -> None:
        self.change(entries={key: Entry(key, record=RESULT) for key in PLAN.keys})

    def patches(self) -> list[Any]:
        return self.fake.requests("PATCH", "/pods/")

    def step(self) -> None:
        before = len(self.patches())
        asyncio.run(self.annotator.step())
        self.writes += [self.now] * (len(self.patches()) - before)

    def pass_time(self, seconds: float, each_second: Callable[[int], None] | None = None) -> None:
        """Look every half second for so long; `each_second` may change the run before."""
        for tick in range(round(seconds / LOOK)):
            if each_second is not None and tick % 2 == 0:
                each_second(tick // 2)
            self.step()
            self.now += LOOK

    def pod(self, name: str = POD) -> dict[str, Any]:
        return self.fake.pod(name)["metadata"].get("annotations", {})

    def damage(self, left: dict[str, str]) -> None:
        """Somebody else sets all annotations of the Pod."""
        self.fake.update_pod(POD, lambda it: it["metadata"].update(annotations=left))

    def status(self) -> Any:
        return json.loads(self.pod()[STATUS_ANNOTATION])


def pod(name: str, labels: dict[str, str] | None = None) -> dict[str, Any]:
    made = make_pod(make_job(), name=name)
    made["metadata"]["labels"] = labels or {}
    return made


@pytest.fixture
def fake() -> Iterator[FakeKube]:
    with FakeKube(role="aggregator") as fake:
        fake.create_pod(pod(POD))
        yield fake


@pytest.fixture
def bench(fake: FakeKube, api: KubeApi) -> Bench:
    return Bench(fake, api)


# What is written, and where


def test_both_annotations_are_written_with_one_patch(bench: Bench) -> None:
    """What `run` says, with list and patch as the only rights; others' are kept."""
    bench.damage({"foreign": "x"})
    bench.step()

    values = annotations(bench.run, strict=False)
    expected = {"foreign": "x", STATUS_ANNOTATION: values.status, RUN_ANNOTATION: values.run}
    assert expected == bench.pod()
    assert ["PATCH"] == [entry.method for entry in bench.fake.journal]
    assert "application/merge-patch+json" == bench.fake.journal[0].headers["content-type"]


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        (
            {"b": {"sonobuoy-component": "aggregator"}, "a": {"run": "sonobuoy-master"}},
            "b",
        ),
        ({"b": {"run": "sonobuoy-master"}, "sonobuoy": {}}, "b"),
        (
            {"c": {"sonobuoy-component": "aggregator"}, "b": {"sonobuoy-component": "aggregator"}},
            "b",
        ),
        ({"sonobuoy": {}}, "sonobuoy"),
    ],
    ids=["new label", "old label", "the first of several", "the name"],
)
def test_without_a_name_the_pod_is_found(
    fake: FakeKube, api: KubeApi, others: dict[str, dict[str, str]], expected: str
) -> None:
    """By the new label, by the old one, by Sonobuoy's own name; looked for once."""
    for name, labels in others.items():
        fake.create_pod(pod(name, labels))
    bench = Bench(fake, api, pod_name="")
    bench.step()
    listed = len(fake.requests("GET"))
    bench.finish()
    bench.step()

    assert STATUS_ANNOTATION in bench.pod(expected)
    assert 2 == len(bench.patches())
    assert listed == len(fake.requests("GET"))


def test_a_pod_that_was_replaced_is_found_again(fake: FakeKube, api: KubeApi) -> None:
    """A Deployment gives the next one another name."""
    fake.create_pod(pod("first", {"sonobuoy-component": "aggregator"}))
    bench = Bench(fake, api, pod_name="")
    bench.step()
    fake.delete_pod("first")
    fake.create_pod(pod("second", {"sonobuoy-component": "aggregator"}))
    bench.finish()
    bench.pass_time(12)

    assert bench.pod("second")[STATUS_ANNOTATION] == annotations(bench.run, strict=False).status
    assert 1 == bench.failures


# K1, K2, K3: the words of the run as it goes on


@pytest.mark.parametrize(("strict", "end"), [(False, "complete"), (True, "failed")])
def test_the_status_of_a_run_with_a_failed_plugin(
    fake: FakeKube, api: KubeApi, strict: bool, end: str
) -> None:
    """K2: running, post-processing, and the end as the settings want it; each at once."""
    bench = Bench(fake, api, status_values="strict" if strict else "sonobuoy")
    seen = []

    def look() -> None:
        bench.step()
        run = json.loads(bench.pod()[RUN_ANNOTATION])
        seen.append((bench.status()["status"], run["status"], run["final"]))
        bench.now += LOOK

    look()
    failed = Record(rank=Rank.WORKER, at=2.0, text="x")
    bench.change(entries=bench.run.entries | {E2E: Entry(E2E, record=failed)})
    look()
    bench.finish()
    bench.change(entries=bench.run.entries | {E2E: Entry(E2E, record=failed)})
    bench.change(phase=Phase.POST_PROCESSING)
    look()
    bench.change(phase=Phase.CLOSED, tar=Tar("t.tar.gz", "2030-01-01T00:00:00Z", "ab", 9))
    look()

    assert [
        ("running", "running", False),
        ("running", "failed", False),
        ("post-processing", "failed", False),
        (end, "failed", True),
    ] == seen
    assert {
        "name": "t.tar.gz",
        "created": "2030-01-01T00:00:00Z",
        "sha256": "ab",
        "size": 9,
    } == bench.status()["tar-info"]


# K6: how often


@pytest.mark.parametrize("roll", [0.0, 0.5, 0.999])
def test_changes_each_second_are_written_every_five_to_six(
    fake: FakeKube, api: KubeApi, roll: float
) -> None:
    """K6: 60 s of changes; each write has the newest."""
    bench = Bench(fake, api, rng=lambda: roll)
    bench.pass_time(60, lambda second: bench.tell(f"step {second}"))

    gaps = [later - earlier for earlier, later in zip(bench.writes, bench.writes[1:], strict=False)]
    assert all(5 <= gap <= 6 for gap in gaps), gaps
    assert 10 <= len(bench.writes) <= 12
    told = [
        json.loads(entry.json["metadata"]["annotations"][STATUS_ANNOTATION])
        for entry in bench.patches()
    ]
    assert f"step {int(bench.writes[-1] - 1000)}" == told[-1]["plugins"][0]["progress"]["msg"]


def test_without_changes_there_is_one_write(bench: Bench) -> None:
    """K6: not one patch every few seconds, for each aggregator of a fleet."""
    bench.pass_time(60)

    assert [1000.0] == bench.writes


def test_what_is_unchanged_is_repaired_every_five_minutes(bench: Bench) -> None:
    """K13: somebody has deleted one and damaged the other."""
    bench.pass_time(250)
    whole = bench.pod()
    bench.damage({STATUS_ANNOTATION: '{"plugins":nul'})
    bench.pass_time(60)

    assert [1000.0, 1300.0] == bench.writes
    assert whole == bench.pod()


def test_a_repair_also_comes_after_the_run_is_over(bench: Bench) -> None:
    """K13: damaged during post-processing and later; the state is never read back from it."""
    bench.step()
    bench.finish()
    bench.change(phase=Phase.POST_PROCESSING)
    bench.damage({STATUS_ANNOTATION: "?"})
    bench.step()
    assert ["complete"] * 3 == [entry["status"] for entry in bench.status()["plugins"]]
    bench.change(phase=Phase.CLOSED)
    bench.step()
    bench.damage({})
    bench.now += 300
    bench.step()

    assert "complete" == bench.status()["status"]
    assert ["complete"] * 3 == [entry["status"] for entry in bench.status()["plugins"]]


def test_a_new_status_of_the_run_does_not_wait(bench: Bench) -> None:
    """Everything else keeps the distance."""
    bench.step()
    bench.tell("news")
    bench.pass_time(2)
    assert [1000.0] == bench.writes
    bench.finish()
    bench.step()
    assert [1000.0, 1002.0] == bench.writes
    bench.change(phase=Phase.CLOSED)
    bench.now += LOOK
    bench.step()
    assert [1000.0, 1002.0, 1002.5] == bench.writes


def test_it_runs_until_it_is_cancelled(fake: FakeKube, api: KubeApi) -> None:
    """On the real clock: what changes is seen by itself."""
    bench = Bench(fake, api)

    async def until_complete() -> None:
        task = asyncio.create_task(bench.annotator.run())
        await asyncio.to_thread(fake.wait_for, bench.pod)
        bench.finish()
        bench.change(phase=Phase.CLOSED)
        await asyncio.to_thread(fake.wait_for, lambda: bench.status()["status"] == "complete", 60.0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(until_complete())


# K13: what cannot be written


@pytest.mark.parametrize(
    "status",
    [403, 404, 409, 429, 500],
)
def test_a_refusal_is_counted_and_tried_again(bench: Bench, status: int) -> None:
    """K13: nothing is raised; the next try comes 5 to 60 s later and has the newest."""
    bench.fake.fail(Answer(status), method="PATCH", times=3)
    bench.pass_time(200, lambda second: bench.tell(str(second)))

    gaps = [
        later - earlier for earlier, later in zip(bench.writes, bench.writes[1:4], strict=False)
    ]
    assert 3 == bench.failures
    assert [5.0, 10.0, 20.0] == gaps
    newest = int(bench.writes[-1] - 1000)
    assert str(newest) == bench.status()["plugins"][0]["progress"]["msg"]


def test_the_back_off_has_an_end(fake: FakeKube, api: KubeApi) -> None:
    """A minute at the longest, five seconds at the least, also with a server that wishes."""
    longest = Bench(fake, api, rng=lambda: 0.999)
    fake.fail(Answer(500), method="PATCH", times=None)
    longest.pass_time(600)
    shortest = Bench(fake, api, rng=lambda: 0.0)
    shortest.pass_time(60)
    fake.clear_faults()
    fake.fail(Answer(503, {"Retry-After": "17"}), method="PATCH", times=None)
    wished = Bench(fake, api, rng=lambda: 0.0)
    wished.pass_time(60)

    assert 60.0 == longest.writes[-1] - longest.writes[-2]
    assert 5.0 == shortest.writes[-1] - shortest.writes[-2]
    assert 17.0 == wished.writes[-1] - wished.writes[-2]


def test_an_outage_is_logged_once_in_five_minutes(bench: Bench) -> None:
    """And once more when it is over."""
    bench.fake.fail(Answer(500), method="PATCH", times=None)
    with log.capture() as events:
        bench.pass_time(700)
        tries = bench.failures
        bench.fake.clear_faults()
        bench.pass_time(61)

    told = [(event["level"], event["message"], event["failures"]) for event in events]
    failing = "The status annotation could not be written"
    assert [("warning", failing)] * 3 == [it[:2] for it in told[:3]]
    assert [("info", "The status annotation can be written again", tries)] == told[3:]
    assert tries > 12
    assert [1, POD] == [events[0]["failures"], events[0]["pod"]]


def test_a_new_status_of_the_run_is_tried_once_in_an_outage(bench: Bench) -> None:
    """It does not wait for the back-off, and does not end it."""
    bench.fake.fail(Answer(500), method="PATCH", times=None)
    bench.pass_time(100)
    before = len(bench.writes)
    bench.finish()
    bench.pass_time(4)

    assert before + 1 == len(bench.writes)


def test_a_server_that_hangs_holds_up_nobody(fake: FakeKube) -> None:
    """The event loop goes on meanwhile."""

    class Slow(KubeApi):
        def patch(self, *what: Any, **more: Any) -> dict[str, Any]:
            return super().patch(*what, **more, timeout=1.0)

    api = Slow.connect(fake.server, ca_file=fake.ca_file, token_file=fake.token_file)
    bench = Bench(fake, api)
    fake.fail(Hang(), method="PATCH")
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        writing = asyncio.create_task(bench.annotator.step())
        while not writing.done():
            await asyncio.sleep(0.01)
            turns += 1

    asyncio.run(count_turns())
    api.close()

    assert 1 == bench.failures
    assert turns > 10


def test_trouble_of_our_own_is_no_end_either(fake: FakeKube, api: KubeApi) -> None:
    """An error that nobody has thought of is counted like the others."""

    class Broken(KubeApi):
        def patch(self, *_: Any, **__: Any) -> dict[str, Any]:
            raise ZeroDivisionError

    broken = Broken.connect(fake.server, ca_file=fake.ca_file, token_file=fake.token_file)
    bench = Bench(fake, broken)
    bench.pass_time(6)
    broken.close()

    assert 2 == bench.failures


# K12, K13: values that are too long


def many(count: int) -> Snapshot:
    plan = Plan("a-run", (Plugin("sysd", nodes=tuple(f"node-{at:05}" for at in range(count))),))
    entries = {key: Entry(key) for key in plan.keys}
    return replace(fresh(), plan=plan, entries=entries)


def test_a_pod_with_other_annotations_gets_a_smaller_value(bench: Bench) -> None:
    """K13: 422 for 192 KiB, 96 KiB fit; the smaller one is kept for a while, then tried anew."""
    bench.damage({"foreign": "x" * 120_000})
    bench.run = many(1600)
    bench.step()
    assert [422, 200] == [entry.status for entry in bench.patches()]
    assert 1 == bench.failures
    assert len(bench.pod()[STATUS_ANNOTATION]) <= 96 * 1024
    assert json.loads(bench.pod()[RUN_ANNOTATION])["truncated"]

    bench.tell("news")
    bench.now += 6
    bench.step()
    assert [422, 200, 200] == [entry.status for entry in bench.patches()]

    bench.damage({})
    bench.now += 300
    bench.step()
    assert [422, 200, 200, 200] == [entry.status for entry in bench.patches()]
    assert len(bench.pod()[STATUS_ANNOTATION]) > 96 * 1024


def test_a_small_value_that_is_refused_is_not_sent_four_times(bench: Bench) -> None:
    """The Pod is full: smaller budgets change nothing about it."""
    bench.damage({"foreign": "x" * 262_000})
    bench.pass_time(5)

    assert [422] == [entry.status for entry in bench.patches()]
    assert 1 == bench.failures


# The rule alone


def test_the_first_write_is_due_at_once() -> None:
    """K6: whatever the clock says."""
    cadence = Cadence(lambda: 0.5)

    assert 7.0 == cadence.due(1, "running", 7.0)


def test_a_success_ends_the_back_off() -> None:
    """The next failure starts with the shortest again."""
    cadence = Cadence(lambda: 0.999)
    for _ in range(5):
        cadence.failed("running", 100.0)
    assert 160.0 == pytest.approx(cadence.due(1, "running", 100.0), abs=0.1)
    cadence.written(1, "running", 160.0)
    cadence.failed("running", 500.0)

    assert 510.0 == pytest.approx(cadence.due(1, "running", 500.0), abs=0.1)
