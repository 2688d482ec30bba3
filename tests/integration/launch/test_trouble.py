"""What goes wrong in the launcher itself, or beside it: nothing foreign goes, nothing hangs."""

from __future__ import annotations

import asyncio
import base64
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pytest

from reporter.errors import Forbidden, KubeError, Unavailable
from reporter.kube.api import SILENCE, KubeApi, Page
from reporter.launch import launcher as launching
from reporter.launch.logs import Logs
from reporter.launch.mirror import Kind, Mirror
from reporter.launch.obstacles import AGAIN, Obstacles
from reporter.launch.requests import AT_ONCE, CREATIONS, Kube, Requests, Secrets
from reporter.launch.seen import SeenPod, read_job
from reporter.launch.world import LaunchedRun
from reporter.pki.issuing import Pair
from reporter.run.clock import RunClock
from reporter.run.entry import State
from reporter.run.launch_file import RunLocation
from reporter.run.names import entry_name
from reporter.run.plan import GLOBAL, Key, Plan, Plugin
from reporter.run.record import Cause
from reporter.run.state import Step
from tests.fakekube import Answer, FakeKube
from tests.integration.launch.cluster import runs, waits
from tests.integration.launch.world import (
    CHECK,
    DISKS,
    HANG,
    RUN,
    World,
    launch_of,
    on_loop,
    plan_of,
)


class Unwatchable:
    """The API, which gives lists but no watch; `lists` are the times of the lists."""

    def __init__(self) -> None:
        self.lists: list[float] = []
        self.enough = threading.Event()

    def list_page(self, *_: Any, **__: Any) -> Page:
        self.lists.append(time.monotonic())
        if len(self.lists) == 5:
            self.enough.set()
        return Page([], "1", "")

    def watch(self, *_: Any, **__: Any) -> Any:
        raise Forbidden("no watch")


CHECK_JOB = entry_name(RUN, CHECK)
ONE = plan_of(Plugin("check"))
MANY = plan_of(Plugin("disk", tuple(f"node{number}" for number in range(40))))


@pytest.fixture
def two(tmp_path: Path) -> Iterator[World]:
    """A run of two entries, of the same group."""
    with FakeKube() as fake:
        made = World(fake, tmp_path, plan_of(Plugin("check"), Plugin("other")))
        with made.prepared():
            yield made


@on_loop
async def test_a_strangers_secret_survives_a_restart(one: World) -> None:
    """L6: the entry has failed and says so; the next process does not know that it was refused."""
    one.fake.store.create("Secret", {"metadata": {"name": CHECK_JOB}, "data": {"a": "Yg=="}})
    async with one.begun():
        record = await one.until(lambda: one.entry(CHECK).record)
        assert Cause.START_FAILED is record.cause
        assert f"Secret {CHECK_JOB} exists already" in record.text
    async with one.begun():
        await one.until(lambda: one.launcher.through)
    assert {"a": "Yg=="} == one.fake.store.get("Secret", "default", CHECK_JOB)["data"]
    assert [] == one.made("Job")


@on_loop
async def test_a_strangers_secret_in_the_place_of_ours(one: World) -> None:
    """Somebody has deleted ours and made another one: it is not ours to delete."""
    one.passes = lambda key: False
    async with one.begun():
        await one.until(lambda: one.names("Pod"))
        one.fake.store.delete("Secret", "default", CHECK_JOB)
        one.fake.store.create("Secret", {"metadata": {"name": CHECK_JOB}, "data": {"a": "Yg=="}})
        await one.upload(CHECK)
        await one.until(lambda: one.launcher.through)
    assert [CHECK_JOB] == one.names("Secret")


@on_loop
async def test_a_secret_that_is_not_deleted_at_the_first_try(one: World) -> None:
    """It holds a key: the run is not through before it is gone."""
    one.fake.fail(Answer(500), method="DELETE", path="/secrets")
    async with one.begun():
        await one.until(lambda: one.launcher.through)
    assert [] == one.names("Secret")


@on_loop
async def test_what_no_mirror_can_read(one: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault of ours ends the process: a thread that is dead would show the past for ever."""

    def broken(*_: Any) -> None:
        raise RuntimeError("no such Pod was ever seen")

    monkeypatch.setattr("reporter.launch.mirror.read_pod", broken)
    async with one.begun():
        with pytest.raises(RuntimeError, match="no such Pod was ever seen"):
            await asyncio.shield(one.task)


@on_loop
async def test_a_request_that_cannot_be_made(one: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault of ours ends the process, and is not tried again and again in silence."""

    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("no such Job can be made")

    monkeypatch.setattr("reporter.launch.requests.job", broken)
    async with one.begun():
        with pytest.raises(RuntimeError, match="no such Job can be made"):
            await asyncio.shield(one.task)


@on_loop
async def test_the_key_of_the_authority_is_lost(one: World) -> None:
    """Nobody can be given a certificate any more: the entry has failed, and says why."""
    one.fake.fail(Answer(503), method="POST", path="/secrets", times=None)
    async with one.begun():
        await one.until(lambda: one.fake.requests("POST", "/secrets"))
    (one.folder / "tls" / "ca.key").unlink()
    one.fake.clear_faults()
    async with one.begun():
        await one.until(lambda: one.launcher.through)
        record = one.entry(CHECK).record
        assert Cause.START_FAILED is record.cause
        assert "certificate authority is not kept" in record.text


@on_loop
async def test_a_list_that_takes_long_is_not_old_when_it_is_read() -> None:
    """Else it would be read anew for ever, and nobody would ever fail."""
    api, read = Unwatchable(), asyncio.Event()
    mirror = Mirror(api, Kind("Pod", "default"), str, read.set, rng=lambda: 1.0)
    page, answered = api.list_page, list[float]()

    def timed(*given: Any, **asked: Any) -> Page:
        found = page(*given, **asked)
        answered.append(time.monotonic())
        return found

    api.list_page = timed  # type: ignore[method-assign]
    mirror.start()
    await read.wait()
    assert mirror.heard_at >= answered[0]
    mirror.stop()
    await mirror.join()


@on_loop
async def test_a_mirror_that_is_stopped_reads_no_further_page() -> None:
    """Of a slow server the pages of a large run would take longer than the grace period."""
    api = Unwatchable()
    mirror = Mirror(api, Kind("Pod", "default"), str, lambda: None)
    page = api.list_page

    def endless(*given: Any, **asked: Any) -> Page:
        mirror.stop()
        return replace(page(*given, **asked), more="" if len(api.lists) > 9 else "more")

    api.list_page = endless  # type: ignore[method-assign]
    mirror.start()
    await mirror.join()
    assert 1 == len(api.lists)


@on_loop
async def test_lists_without_a_watch_are_no_success() -> None:
    """They are asked for at longer and longer intervals, not many times a second."""
    api = Unwatchable()
    mirror = Mirror(api, Kind("Pod", "default"), str, lambda: None, rng=lambda: 1.0)
    mirror.start()
    assert await asyncio.to_thread(api.enough.wait, HANG)
    mirror.stop()
    await mirror.join()
    assert api.lists[4] - api.lists[0] >= 1.5


class Quiet:
    """The API, where nothing happens: the server ends each watch at its time."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.enough = threading.Event()

    def list_page(self, *_: Any, **__: Any) -> Page:
        self.asked.append("list")
        return Page([], "1", "")

    def watch(self, *_: Any, server_timeout: int, **__: Any) -> Any:
        self.asked.append("a short watch" if server_timeout < SILENCE else "a watch")
        if len(self.asked) >= 4:
            self.enough.set()
        return self

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def close(self) -> None:
        """It has ended already."""


@pytest.mark.parametrize(
    ("bookmarks", "asked"),
    {True: ["list", "a watch", "a watch", "a watch"], False: ["list", "a short watch"] * 2}.items(),
)
def test_where_nothing_happens_nothing_is_lost(bookmarks: bool, asked: list[str]) -> None:
    """Without bookmarks, as for Events, silence says nothing, and a version may become too old."""

    @on_loop
    async def story() -> None:
        api = Quiet()
        kind = Kind("Event", "default", bookmarks=bookmarks)
        mirror = Mirror(api, kind, str, lambda: None, rng=lambda: 1.0)
        mirror.start()
        assert await asyncio.to_thread(api.enough.wait, HANG)
        mirror.stop()
        await mirror.join()
        assert (asked, None) == (api.asked[:4], mirror.lost)

    story()


class Accepting:
    """The API, which takes everything; `made` has the kinds."""

    def __init__(self) -> None:
        self.made: list[str] = []
        self.asked_to_delete = threading.Event()

    def delete(self, *_: Any, **__: Any) -> None:
        self.asked_to_delete.set()

    def create(self, kind: str, _: str, body: dict[str, Any], **__: Any) -> dict[str, Any]:
        self.made.append(kind)
        data = {name: base64.b64encode(b"").decode() for name in ("ca.crt", "tls.crt", "tls.key")}
        return {**body, "metadata": {**body["metadata"], "uid": "u"}, "data": data}


@contextmanager
def requests_to(
    api: Any, plan: Plan = ONE, wanted: Callable[[Key], bool] = lambda _: True
) -> Iterator[Requests]:
    """The requests of a run, of one entry unless said otherwise."""
    owner = {"kind": "ConfigMap", "name": RUN, "uid": "o"}
    place = RunLocation(RUN, "default", owner, "https://r1:8080")
    kube = Kube(api, "default")
    try:
        yield Requests(
            kube,
            LaunchedRun(plan, launch_of(plan), "o"),
            place,
            Secrets(kube, place, ca=b"", client=lambda _: Pair(b"", b"")),
            Mirror(api, Kind("Job", "default"), read_job, lambda: None),
            wanted=wanted,
            changed=lambda: None,
            failed=lambda *_: None,
            now=RunClock(time.monotonic, time.time),
        )
    finally:
        kube.close()


@on_loop
async def test_what_was_answered_during_a_decision_is_not_made_again() -> None:
    """With thousands of entries a decision takes long, and what it has seen is old by then."""
    api = Accepting()
    with requests_to(api) as requests:
        for _ in range(2):
            requests.create(CHECK)
            await requests.settle(HANG)
        assert ["Secret", "Job"] == api.made


class Logging:
    """The API, which has the logs of Pods; `asked` are the requests for them."""

    def __init__(self, log: bytes | KubeError) -> None:
        self.log, self.asked = log, list[str]()
        self.go, self.at_work, self.most = threading.Event(), 0, 0
        self.go.set()

    def read_log(
        self, namespace: str, pod: str, container: str, query: Any, **limits: Any
    ) -> Iterator[bytes]:
        self.asked.append(f"{namespace}/{pod}/{container}")
        self.at_work += 1
        self.most = max(self.most, self.at_work)
        self.go.wait(HANG)
        self.at_work -= 1
        if isinstance(self.log, KubeError):
            raise self.log
        assert limits["most"] < 2**20
        yield from (self.log[:10], self.log[10:])


class Reads(Obstacles):
    """What looks into logs, and waits until that is done."""

    def __init__(self, api: Logging) -> None:
        self.done, self.clock = asyncio.Event(), 0.0
        super().__init__(cast("KubeApi", api), "default", self.done.set)

    async def after(self, later: float, *keys: Key) -> dict[Key, str]:
        self.clock += later
        self.done.clear()
        self.look({key: replace(WORKER, name=f"{key.plugin}-x") for key in keys}, self.clock)
        await asyncio.wait_for(self.done.wait(), HANG)
        return self.known


WORKER = SeenPod("check-x", uid="p", uploader="status-worker")


@on_loop
async def test_the_log_of_a_pod_that_is_cut_off() -> None:
    """It is looked at again soon, and what cannot be read changes nothing."""
    api = Logging(b'{"message": "Cannot reach the aggregator", "error": "cannot resolve r1"}\n')
    reads = Reads(api)
    assert {CHECK: "cannot resolve r1"} == await reads.after(0.0, CHECK)
    reads.look({CHECK: WORKER}, AGAIN / 2)
    api.log = Unavailable("the kubelet is away")
    assert {CHECK: "cannot resolve r1"} == await reads.after(AGAIN, CHECK)
    api.log = b'{"message": "Reached the aggregator"}\n'
    assert {CHECK: ""} == await reads.after(AGAIN, CHECK)
    assert ["default/check-x/status-worker"] * 3 == api.asked
    reads.stop()


@on_loop
async def test_many_pods_that_are_cut_off() -> None:
    """Few logs are read at a time, and each before one of them again."""
    api, keys = Logging(b""), [Key(f"p{number}", "global") for number in range(5)]
    reads = Reads(api)
    api.go.clear()
    reads.look(dict.fromkeys(keys, WORKER), 0.0)
    async with asyncio.timeout(HANG):
        while len(api.asked) < 2:
            await asyncio.sleep(0.01)
    reads.look(dict.fromkeys(keys, WORKER), 0.0)
    api.go.set()
    for _ in range(20):
        await reads.after(AGAIN / 2, *keys)
    assert 2 == api.most
    first = api.asked[:2], {each.split("/")[1] for each in api.asked[2:5]}
    assert (["default/check-x/status-worker"] * 2, {"p2-x", "p3-x", "p4-x"}) == first
    reads.stop()


def cut_off(one: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log of its only Pod says so, and is looked at without delay."""
    monkeypatch.setattr("reporter.launch.decide.HEARD", 0.0)
    one.passes = lambda key: False
    line = '{"message": "Cannot reach the aggregator", "error": "cannot resolve r1"}\n'
    log = ("default", f"{CHECK_JOB}-x7k2p", "status-worker")
    one.fake.store.logs[log] = line.encode()


def trouble_of_its_pod(one: World) -> str:
    pod = one.store.snapshot().pods.get(CHECK)
    return pod.reason if pod else ""


@on_loop
async def test_a_worker_that_is_cut_off_and_then_is_not(
    one: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its fault is shown while it lasts, and costs it nothing."""
    cut_off(one, monkeypatch)
    async with one.begun():
        await one.until(lambda: trouble_of_its_pod(one) == "AggregatorUnreachable")
        one.store.record_heartbeat(CHECK, time.monotonic(), beat=True)
        await one.until(lambda: trouble_of_its_pod(one) == "")
        await one.upload(CHECK)
        await one.until(lambda: one.launcher.through)
    assert State.COMPLETE is one.entry(CHECK).state


@on_loop
async def test_many_creations_do_not_keep_up_a_deletion(monkeypatch: pytest.MonkeyPatch) -> None:
    """They wait for their turns outside the slots that others could use."""
    monkeypatch.setattr("reporter.launch.requests.CREATIONS", 10 * HANG)
    api = Accepting()
    with requests_to(api, MANY) as requests:
        for key in MANY.keys:
            requests.create(key)
        requests.delete("old", "o")
        try:
            assert await asyncio.to_thread(api.asked_to_delete.wait, HANG)
        finally:
            await requests.close()


@on_loop
async def test_creations_that_waited_for_a_slot_keep_their_pace() -> None:
    """An API server that was slow does not get many at once when it is so no more."""
    began, api, slow = dict[Key, float](), Accepting(), threading.Event()
    create = api.create

    def held(*given: Any, **asked: Any) -> dict[str, Any]:
        assert slow.wait(HANG)
        return create(*given, **asked)

    def wanted(key: Key) -> bool:  # it is asked once more before the Job is made
        began.setdefault(key, time.monotonic())
        if len(began) == AT_ONCE:
            asyncio.get_running_loop().call_later(10 * CREATIONS, slow.set)
        return True

    api.create = held  # type: ignore[method-assign]
    with requests_to(api, MANY, wanted) as requests:
        for key in MANY.keys[: 2 * AT_ONCE]:
            requests.create(key)
        await requests.settle(HANG)
    assert 2 * AT_ONCE == len(began)
    assert min(later - one for one, later in pairwise(began.values())) > CREATIONS / 2


@pytest.mark.parametrize("missing", ["configmaps", "jobs"])
def test_a_decided_run_whose_cluster_is_not_to_be_seen(
    one: World, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    """L10: the launcher begins anew and may not look; after a while its verdict goes on without."""
    rules = one.fake.tokens.roles["launcher"]
    one.fake.tokens.roles["launcher"] = tuple(
        rule for rule in rules if missing not in rule.resources
    )

    @on_loop
    async def story() -> None:
        async with one.begun():
            await one.until(lambda: one.store.snapshot().launcher)
            monkeypatch.setattr(launching, "LONGEST_END", 0.0)
            await one.upload(CHECK)
            await one.until(lambda: one.launcher.through)
            assert Step.DONE is one.store.snapshot().launcher.step

    story()


@on_loop
async def test_the_config_map_is_gone_for_good(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """L10: named after a restart; what has started may report, the rest fails, and it ends."""
    monkeypatch.setattr(launching, "OWNER_GONE", 0.5)
    world.passes = lambda key: False
    async with world.begun():
        await world.until(lambda: world.entry(CHECK).started_at)
    world.fake.store.delete("ConfigMap", "default", RUN)
    async with world.begun():
        shown = await world.until(lambda: world.store.snapshot().launcher)
        assert f'configmaps "{RUN}" not found' in shown.degraded.reason
        for key in DISKS:
            await world.until(lambda key=key: world.entry(key).terminal)
            record = world.entry(key).record
            assert (Cause.START_FAILED, "ConfigMapGone") == (record.cause, record.reason)
        assert not world.entry(CHECK).terminal
        assert not world.launcher.through
        await world.upload(CHECK)
        await world.until(lambda: world.launcher.through)
        assert State.COMPLETE is world.entry(CHECK).state


@on_loop
async def test_a_secret_that_fails_keeps_up_nobody_else(
    two: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each object has its own back-off, and waits outside the slots that others could use."""
    monkeypatch.setattr("reporter.launch.requests.next_delay", lambda *_, **__: HANG)
    two.fake.fail(
        Answer(500),
        method="POST",
        path="/secrets",
        where=lambda entry: CHECK_JOB in str(entry.body),
        times=None,
    )
    async with two.begun():
        await two.until(lambda: two.entry(Key("other", GLOBAL)).state is State.COMPLETE)
        trouble = await two.until(lambda: two.store.snapshot().launcher.degraded)
        assert "creating Jobs" in trouble.reason
        await two.upload(CHECK)
        await two.until(lambda: two.launcher.through)


@on_loop
async def test_the_trouble_with_a_secret_ends_with_the_need_for_it(
    one: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The Pod did without: what nobody asks for any more is no trouble of anybody."""
    monkeypatch.setattr("reporter.launch.decide.MOUNTED", 0.0)
    one.cluster.fates["check"] = waits("ContainerCreating")
    one.passes = lambda key: False
    async with one.begun():
        await one.until(lambda: one.names("Pod"))
        one.fake.fail(Answer(500), method="GET", path="/secrets", times=None)
        await one.until(
            lambda: (
                (trouble := one.store.snapshot().launcher.degraded)
                and "making Secrets" in trouble.reason
            )
        )
        one.fake.update_pod(one.names("Pod")[0], runs)
        await one.until(lambda: one.store.snapshot().launcher.degraded is None)


@on_loop
async def test_a_secret_that_stays_is_named(one: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """It holds a key: who looks at the end of the run learns that it is still there, and why."""
    monkeypatch.setattr("reporter.launch.cleanup.REMOVAL", -59.0)
    monkeypatch.setattr(launching, "_SETTLE", 0.0)
    one.fake.fail(Answer(500), method="DELETE", path="/secrets", times=None)
    async with one.begun():
        await one.until(lambda: one.launcher.through)
        stays = one.store.snapshot().launcher.stays
        assert [f"Secret {CHECK_JOB}"] == list(stays)
        assert "500" in stays[f"Secret {CHECK_JOB}"]


@pytest.mark.parametrize("error", [OSError("disk full"), Unavailable("broken"), ValueError("?")])
def test_logs_cost_no_run_its_end(
    one: World, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """Whatever goes wrong with them, the Job is removed at once, not after the time for logs."""

    def broken(*_: Any) -> None:
        raise error

    monkeypatch.setattr(Logs, "take", broken)
    monkeypatch.setattr("reporter.launch.cleanup.LOGS", HANG)

    @on_loop
    async def story() -> None:
        async with one.begun():
            await one.until(lambda: one.launcher.through)
            assert [] == one.names("Job")
            assert {} == one.store.snapshot().launcher.stays

    story()


@on_loop
async def test_state_that_is_lost_leaves_no_key_behind(one: World) -> None:
    """What the process before has made goes, the Secrets that only it knew of included."""
    one.passes = lambda key: False
    async with one.begun():
        await one.until(lambda: one.entry(CHECK).launched_at)
    for file in one.folder.glob("run.db*"):
        file.unlink()
    async with one.begun():
        await one.until(lambda: one.launcher.through)
        assert Cause.LOST is one.entry(CHECK).record.cause
    assert [] == one.names("Job") + one.names("Secret")
