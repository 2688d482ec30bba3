"""The launcher in a fake cluster: what it makes, watches and removes, and what hinders it."""

from __future__ import annotations

import asyncio
import base64
import shutil
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from reporter.errors import Unavailable
from reporter.kube.api import KubeApi
from reporter.launch import cleanup, decide, launcher
from reporter.launch.requests import Requests
from reporter.pki.issuing import CertificateError
from reporter.run.entry import State
from reporter.run.identity import client_uri
from reporter.run.names import annotations, entry_name
from reporter.run.plan import Plugin
from reporter.run.record import Cause, Failure, stopped
from reporter.run.state import LauncherTrouble, Phase, Step
from tests.fakekube import Answer, FakeKube, Rule
from tests.fakekube.store import stamp
from tests.integration.launch.cluster import ends, runs, unscheduled, waits
from tests.integration.launch.world import (
    CHECK,
    DISKS,
    HANG,
    NODES,
    RUN,
    World,
    on_loop,
    plan_of,
)

CHECK_JOB = entry_name(RUN, CHECK)
ALL = (CHECK, *DISKS)


def left(world: World) -> list[str]:
    return [name for kind in ("Job", "Pod", "Secret") for name in world.names(kind)]


def degraded(world: World) -> LauncherTrouble | None:
    shown = world.store.snapshot().launcher
    return shown and shown.degraded


def step(world: World) -> Step | None:
    shown = world.store.snapshot().launcher
    return shown and shown.step


@on_loop
async def test_a_run_goes_through(world: World) -> None:
    """Groups one after the other; each entry's Job and its Secret go, and nothing is left."""
    for key in ALL:
        pod = f"{entry_name(RUN, key)}-x7k2p"
        world.fake.store.logs["default", pod, "main"] = str(key).encode()
    async with world.begun():
        await world.until(lambda: world.launcher.through)
        assert {State.COMPLETE} == {world.entry(key).state for key in world.plan.keys}
        assert Step.DONE is world.store.snapshot().launcher.step

    names = [entry_name(RUN, key) for key in ALL]
    assert names[0] == world.made("Job")[0]
    assert sorted(names) == sorted(world.made("Job"))
    assert 2 == len(world.made("Secret"))
    assert [] == left(world)
    for key in ALL:
        logs = world.folder / "podlogs" / "default" / f"{entry_name(RUN, key)}-x7k2p" / "logs"
        assert str(key) == (logs / "main.txt").read_text()


@on_loop
async def test_the_job_of_each_node_has_a_certificate_that_speaks_for_that_node_alone(
    tmp_path: Path,
) -> None:
    plan = plan_of(Plugin("disk", NODES, identity="node"))
    with FakeKube() as fake, (world := World(fake, tmp_path, plan)).prepared():
        async with world.begun():
            await world.until(lambda: world.launcher.through)

    added = [found for _, event, found in fake.store.events if event == "ADDED"]
    holders = {
        each["metadata"]["name"]: holder(each["data"]["tls.crt"])
        for each in added
        if each["kind"] == "Secret"
    }
    jobs = [each for each in added if each["kind"] == "Job"]
    mounted = {
        each["metadata"]["name"]: holders[volume["secret"]["secretName"]]
        for each in jobs
        for volume in each["spec"]["template"]["spec"]["volumes"]
        if "secret" in volume
    }
    assert {entry_name(RUN, key): [client_uri(RUN, *key)] for key in DISKS} == mounted
    assert [] == left(world)


def holder(certificate: str) -> list[str]:
    """The URIs in a certificate of a Secret."""
    found = x509.load_pem_x509_certificate(base64.b64decode(certificate))
    names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return names.get_values_for_type(x509.UniformResourceIdentifier)


@on_loop
async def test_the_key_of_the_authority_is_kept_until_the_last_plugin_has_its_certificate(
    world: World,
) -> None:
    """While plugins still run it is gone, from the disk and from memory."""
    world.passes = lambda key: key == CHECK
    world.cluster.fates = {"disk": waits("ContainerCreating")}
    ca_key = world.folder / "tls" / "ca.key"
    async with world.begun():
        await world.until(lambda: all(world.store.snapshot().pods.get(key) for key in DISKS))
        assert ca_key.exists()
        for name in world.names("Pod"):
            world.fake.update_pod(name, runs)
        await world.until(lambda: not ca_key.exists())
        assert {State.RUNNING} == {world.entry(key).state for key in DISKS}
        with pytest.raises(CertificateError):
            world.authority.client(RUN, CHECK)


@on_loop
async def test_a_container_starts_after_the_wall_clock_was_set(one: World) -> None:
    """The API server's times are by that clock, the run's are not: it began after its launch."""
    one.set_back, one.passes = 3_600.0, lambda key: False

    def starts(pod: dict[str, Any]) -> None:
        runs(pod)
        began = datetime.now(UTC) - timedelta(seconds=3_600 - 60)
        for shown in pod["status"]["containerStatuses"]:
            shown["state"]["running"]["startedAt"] = stamp(began)

    one.cluster.fates["check"] = starts
    async with one.begun():
        await one.until(lambda: one.entry(CHECK).started_at is not None)
    entry = one.entry(CHECK)
    assert entry.launched_at is not None
    assert entry.started_at is not None
    assert entry.launched_at < entry.started_at


@on_loop
async def test_a_result_is_being_uploaded_when_its_job_is_to_go(
    one: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is waited for; after that nothing more is taken for the entry, and then its Job goes.

    Nobody tells the launcher of the upload's end: it looks again each second.
    """
    monkeypatch.setattr(launcher, "_LOOK", 600.0)
    one.passes = lambda key: False
    one.uploading = {CHECK}
    async with one.begun():
        await one.until(lambda: one.names("Pod"))
        await one.store.mark_failed(CHECK, Failure("final", time.time(), "so", Cause.POD_FAILED))
        await one.until(lambda: one.refused == 2)
        assert ([CHECK_JOB], set()) == (one.names("Job"), one.closed)
        one.uploading.clear()
        await one.until(lambda: one.launcher.through)
    assert ({CHECK}, []) == (one.closed, left(one))


@on_loop
async def test_an_upload_begins_at_the_last_look_of_a_run(
    one: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its Job goes all the same: once the run is over, nothing would ever delete it."""
    monkeypatch.setattr(decide, "REMOVAL", -60.0)  # nobody waits for the grace period
    monkeypatch.setattr(cleanup, "LOGS", 0.0)
    monkeypatch.setattr(one, "close", lambda key: False)
    one.passes = lambda key: False
    async with one.begun():
        # The launcher has seen the Job: it knows what to delete, however soon the run is over.
        await one.until(lambda: one.entry(CHECK).launched_at is not None)
        await one.store.mark_failed(CHECK, Failure("final", time.time(), "so", Cause.POD_FAILED))
        await one.until(lambda: one.launcher.through)
    assert [] == one.names("Job")


class Slow:
    """An API that creates objects of one kind only when `answer` is set."""

    def __init__(self, kind: str) -> None:
        self._kind, self.asked, self.answer = kind, threading.Event(), threading.Event()

    def __call__(self, api: KubeApi) -> Slow:
        self._api = api
        return self

    def __getattr__(self, name: str) -> Any:
        return getattr(self._api, name)

    def create(self, kind: str, *args: Any, **how: Any) -> dict[str, Any]:
        if kind == self._kind:
            self.asked.set()
            assert self.answer.wait(HANG)
        return self._api.create(kind, *args, **how)


@pytest.mark.parametrize("kind", ["Secret", "Job"])
@on_loop
async def test_a_run_is_stopped_while_an_object_is_being_created(
    one: World, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a slow admission lets in when all is decided goes, too."""
    one.passes, one.api, settle = lambda key: False, Slow(kind), Requests.settle

    async def answered(requests: Requests, seconds: float) -> None:
        one.api.answer.set()
        await settle(requests, seconds)

    monkeypatch.setattr(Requests, "settle", answered)
    async with one.begun():
        await one.until(one.api.asked.is_set)
        await one.store.mark_all_failed({CHECK: stopped(time.time())})
        await one.until(lambda: step(one) is Step.REMOVING)
        if kind == "Secret":  # its deletion waits for it
            one.api.answer.set()
        await one.until(lambda: one.launcher.through)
        assert Step.DONE is step(one)
    assert [] == left(one)


@on_loop
async def test_the_removal_goes_on_when_the_run_is_over(one: World) -> None:
    """The verdict has not waited for it. The next process takes it up, and takes no more logs."""
    one.fake.fail(Answer(500), method="DELETE", path="/jobs", times=None)
    async with one.begun():
        await one.until(lambda: one.launcher.logs_taken)
        await one.store.advance_run(Phase.POST_PROCESSING)
        await one.store.advance_run(Phase.CLOSED)
        assert not one.launcher.through
    shutil.rmtree(one.folder / "podlogs")
    one.fake.clear_faults()
    async with one.begun():
        assert Step.REMOVING is step(one)  # before its first look, too
        await one.until(lambda: one.launcher.through)
    assert ([], False) == (left(one), (one.folder / "podlogs").exists())


@on_loop
async def test_a_result_is_uploaded_once_more_when_its_job_is_to_go(one: World) -> None:
    """One is stored, so nothing can come of it: it keeps no Job."""
    one.uploading = {CHECK}
    async with one.begun():
        await one.until(lambda: one.launcher.through)
    assert (0, []) == (one.refused, left(one))


class KilledAfter:
    """The API, of which only so many requests get through: then the launcher is killed."""

    def __init__(self, calls: int) -> None:
        self.calls, self._lock = calls, threading.Lock()
        self.over = threading.Event()

    def __call__(self, api: Any) -> KilledAfter:
        self._api = api
        return self

    def __getattr__(self, name: str) -> Any:
        called = getattr(self._api, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            with self._lock:
                if self.over.is_set():
                    raise Unavailable("killed")
                self.calls -= 1
                last = self.calls == 0
                try:
                    return called(*args, **kwargs)
                finally:
                    if last:
                        self.over.set()

        return call


STEP = 8
PARTS = [pytest.param(n, marks=[pytest.mark.long] if n % 2 else []) for n in range(STEP)]


@pytest.mark.parametrize("first", PARTS)
def test_a_launcher_killed_after_any_request(tmp_path: Path, first: int) -> None:
    """L4: whatever it was doing, the next one makes nothing twice, misses nothing, ends right."""

    async def story(world: World, calls: int) -> bool:
        limit = KilledAfter(calls)
        world.api = limit
        async with world.begun():
            await world.until(lambda: limit.over.is_set() or world.launcher.through)
        if not limit.over.is_set():
            return True
        world.api = None
        async with world.begun():
            await world.until(lambda: world.launcher.through)
            assert {State.COMPLETE} == {world.entry(key).state for key in world.plan.keys}
        return False

    for calls in range(first + 1, 100, STEP):
        with FakeKube() as fake:
            folder = tmp_path / str(calls)
            folder.mkdir()
            world = World(fake, folder)
            with world.prepared():
                unharmed = asyncio.run(asyncio.wait_for(story(world, calls), 60))
            jobs = [entry_name(RUN, key) for key in world.plan.keys]
            assert sorted(jobs) == sorted(world.made("Job")), calls
            assert [] == left(world), calls
        if unharmed:
            break
    assert calls > STEP


@on_loop
async def test_the_api_server_is_away(world: World) -> None:
    """L9: a delay and nothing else, said with its age; nobody fails for it."""
    world.passes = lambda key: False
    async with world.begun():
        await world.until(lambda: world.names("Pod"))
        world.fake.stop()
        await world.until(lambda: degraded(world))
        await world.upload(CHECK)
        await asyncio.sleep(1)
        assert {State.RUNNING} == {world.entry(key).state for key in DISKS}
        world.passes = lambda key: True
        world.fake.start()
        await world.until(lambda: world.launcher.through)
        assert {State.COMPLETE} == {world.entry(key).state for key in ALL}
        assert world.store.snapshot().launcher.degraded is None
    assert [] == left(world)
    assert sorted(entry_name(RUN, key) for key in ALL) == sorted(world.made("Job"))


@on_loop
async def test_a_role_is_taken_away_and_comes_back(world: World) -> None:
    """L10: named while it is missing, and the run goes on when it is back."""
    rules = world.fake.tokens.roles["launcher"]
    world.fake.tokens.roles["launcher"] = tuple(
        rule for rule in rules if not {"secrets"} & {*rule.resources}
    )
    async with world.begun():
        shown = await world.until(lambda: degraded(world))
        assert 'cannot create resource "secrets"' in shown.reason
        assert {State.RUNNING} == {world.entry(key).state for key in ALL}
        world.fake.tokens.roles["launcher"] = rules
        await world.until(lambda: world.launcher.through)
        assert {State.COMPLETE} == {world.entry(key).state for key in ALL}


@on_loop
async def test_nothing_starts_again_when_the_state_is_lost_after_the_end(
    world: World, tmp_path: Path
) -> None:
    """The aggregator's Pod has moved without its volume, and no Job is left to tell of the run."""
    async with world.begun():
        await world.until(lambda: world.launcher.through)
    made = world.made("Job")
    world.folder = tmp_path / "another volume"
    world.folder.mkdir()

    async with world.begun():
        await world.until(lambda: world.launcher.through)
        records = [world.entry(key).record for key in ALL]
    assert {"StateLost"} == {record.reason for record in records if record}
    assert made == world.made("Job")


@on_loop
async def test_a_pod_whose_label_somebody_changes_is_still_there(
    one: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its plugin runs on: it was not deleted."""
    monkeypatch.setattr("reporter.launch.situation.SETTLE", 0.0)
    one.passes = lambda key: False
    async with one.begun():
        await one.until(lambda: one.entry(CHECK).started_at is not None)
        (name,) = one.names("Pod")
        other = {"status-reporter.io/plugin": "other"}
        one.fake.update_pod(name, lambda pod: pod["metadata"]["labels"].update(other))
        for _ in range(5):
            looked = one.launcher._memory
            one.launcher._changed.set()
            await one.until(lambda before=looked: one.launcher._memory is not before)
        assert one.entry(CHECK).record is None


@on_loop
async def test_the_right_to_mark_the_config_map_is_missing(world: World) -> None:
    """As in a cluster whose policies forbid it: the run goes on without the mark."""
    world.fake.fail(Answer(403), method="PATCH", path=f"/configmaps/{RUN}")
    async with world.begun():
        await world.until(lambda: world.launcher.through)
        assert {State.COMPLETE} == {world.entry(key).state for key in ALL}


@on_loop
async def test_nothing_is_lost_when_nothing_was_started(world: World, tmp_path: Path) -> None:
    """An aggregator without a volume was evicted before it could begin."""
    world.fake.fail(Answer(500), method="GET", path="/jobs", times=None)
    async with world.begun():
        await world.until(lambda: degraded(world))
    world.fake.clear_faults()
    world.folder = tmp_path / "another volume"
    world.folder.mkdir()

    async with world.begun():
        await world.until(lambda: world.launcher.through)
        assert {State.COMPLETE} == {world.entry(key).state for key in ALL}


@on_loop
async def test_the_config_map_comes_late(world: World) -> None:
    """Without it nothing can be owned, so nothing is made; it is named."""
    made = world.fake.store.delete("ConfigMap", "default", RUN)
    async with world.begun():
        shown = await world.until(lambda: degraded(world))
        assert f'configmaps "{RUN}" not found' in shown.reason
        assert [] == world.made("Job")
        made["metadata"].pop("resourceVersion")
        world.fake.store.create("ConfigMap", made)
        await world.until(lambda: world.launcher.through)
    assert [] == left(world)


@on_loop
async def test_a_secret_is_deleted_before_its_pod_has_mounted_it(
    one: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """L10: the Pod would wait for ever; the Secret is made again."""
    monkeypatch.setattr("reporter.launch.decide.MOUNTED", 0.2)
    monkeypatch.setattr("reporter.launch.requests._CHECK", 0.2)
    one.cluster.fates["check"] = waits("ContainerCreating")
    one.passes = lambda key: False
    async with one.begun():
        await one.until(lambda: one.names("Pod"))
        (name,) = one.names("Secret")
        one.fake.store.delete("Secret", "default", name)
        await one.until(lambda: len(one.made("Secret")) == 2)
        assert [name] == one.names("Secret")
        one.fake.update_pod(one.names("Pod")[0], runs)
        await one.until(lambda: one.entry(CHECK).started_at)
        await one.upload(CHECK)
        await one.until(lambda: one.launcher.through)
    assert [] == left(one)


@on_loop
async def test_the_right_to_see_a_secret_is_taken_away_and_given_back(
    one: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """L10: named; it is tried again by its own back-off, not only when the next look is due."""
    monkeypatch.setattr("reporter.launch.decide.MOUNTED", 0.2)
    monkeypatch.setattr("reporter.launch.requests._CHECK", 1e9)
    one.cluster.fates["check"] = waits("ContainerCreating")
    one.passes = lambda key: False
    async with one.begun():
        await one.until(lambda: one.names("Pod"))
        (name,) = one.names("Secret")
        one.fake.fail(Answer(403), method="GET", path=f"/secrets/{name}", times=2)
        one.fake.store.delete("Secret", "default", name)
        shown = await one.until(lambda: degraded(one))
        assert "making Secrets: " in shown.reason
        await one.until(lambda: len(one.made("Secret")) == 2)
        await one.until(lambda: not degraded(one))


@on_loop
async def test_a_job_has_the_name_of_ours(one: World) -> None:
    """L6: the same; what nobody knows of the run's is not removed at its end."""
    one.passes = lambda key: False
    said = {"labels": {}, "annotations": annotations(CHECK)}
    template = {"metadata": said, "spec": {"containers": [{"name": "main"}]}}
    metadata = {**said, "name": CHECK_JOB, "namespace": "default"}
    one.fake.store.create("Job", {"metadata": metadata, "spec": {"template": template}})
    async with one.begun():
        await one.until(lambda: one.launcher.through)
        record = one.entry(CHECK).record
        assert (Cause.START_FAILED, "NameTaken") == (record.cause, record.reason)
        assert f"Job {CHECK_JOB} exists already" in record.text
    assert [CHECK_JOB] == one.names("Job")


@on_loop
async def test_a_job_that_the_api_server_refuses(one: World) -> None:
    """L6: at once, with its words."""
    words = 'jobs.batch "x" is forbidden: exceeded quota: none, requested: count/jobs.batch=1'
    one.fake.fail(Answer(403, said=words), method="POST", path="/jobs", times=None)
    async with one.begun():
        await one.until(lambda: one.launcher.through)
        record = one.entry(CHECK).record
        assert (Cause.START_FAILED, True) == (record.cause, words in record.text)
    assert [] == left(one)


@on_loop
async def test_too_many_requests(one: World) -> None:
    """429 is obeyed, and is no failure."""
    one.fake.fail(Answer(429, headers={"Retry-After": "1"}), method="POST", path="/jobs")
    async with one.begun():
        await one.until(lambda: one.launcher.through)
        assert State.COMPLETE is one.entry(CHECK).state
    first, second = one.fake.requests("POST", "/jobs")
    assert second.time - first.time >= 1


@on_loop
async def test_what_a_pod_waits_for_is_shown(one: World) -> None:
    """Before it is a failure."""
    one.cluster.fates["check"] = unscheduled("0/3 nodes are available")
    one.passes = lambda key: False
    async with one.begun():
        await one.until(
            lambda: (
                (shown := one.store.snapshot().pods.get(CHECK))
                and ("Unschedulable", True)
                == (shown.reason, "0/3 nodes are available" in shown.message)
            )
        )
        assert (State.RUNNING, None) == (one.entry(CHECK).state, one.entry(CHECK).started_at)


@on_loop
async def test_a_plugin_that_ends_without_a_result(one: World) -> None:
    """L8: shown at once; a minute later, or when somebody deletes the Pod, it has failed."""
    one.cluster.fates["check"] = ends
    one.passes = lambda key: False
    async with one.begun():
        # Before that it may be shown as it starts.
        await one.until(lambda: "exit code 1" in str(one.store.snapshot().pods.get(CHECK)))
        one.fake.delete_pod(one.names("Pod")[0])
        await one.until(lambda: one.launcher.through)
        record = one.entry(CHECK).record
        assert (Cause.POD_FAILED, True) == (record.cause, "exit code 1" in record.text)
    assert [] == left(one)


@on_loop
async def test_its_pod_is_refused(one: World) -> None:
    """The Job was taken; only an Event has the words, which are shown at once."""
    one.cluster.refusals["check"] = 'pods "x" is forbidden: violates PodSecurity "restricted"'
    async with one.begun():
        await one.until(
            lambda: (shown := one.store.snapshot().pods.get(CHECK)) and "PodSecurity" in str(shown)
        )
        assert State.RUNNING is one.entry(CHECK).state


@on_loop
async def test_a_role_without_events(one: World) -> None:
    """The words of refusals are missing then, and nothing else."""
    rules = one.fake.tokens.roles["launcher"]
    one.fake.tokens.roles["launcher"] = tuple(
        rule if "events" not in rule.resources else Rule((), ()) for rule in rules
    )
    async with one.begun():
        shown = await one.until(lambda: degraded(one))
        assert "watching Events" in shown.reason
        await one.until(lambda: one.launcher.through)
        assert State.COMPLETE is one.entry(CHECK).state
