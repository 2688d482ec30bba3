"""The launcher's own requests: Jobs and Secrets, so many at a time and a second.

Each is one try, and the next look asks again; what exists already is not made twice. Trouble with
the API server is never a plugin's failure: it is remembered with its age. An object that fails
waits longer and longer, each by itself, so that one keeps up no other; what the server asks for
with Retry-After holds for all.
"""

from __future__ import annotations

import asyncio
import base64
import random
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from reporter.common.objects import section, text
from reporter.common.retry import next_delay
from reporter.errors import (
    AlreadyExists,
    Conflict,
    Denied,
    Forbidden,
    InvalidRequest,
    KubeError,
    NotFound,
)
from reporter.kube.api import WARN, KubeApi
from reporter.launch.job import certificate_holder, job, secret
from reporter.launch.mirror import Mirror
from reporter.launch.seen import SeenJob, owner_of, read_job
from reporter.launch.world import Denial, LaunchedRun
from reporter.pki.issuing import CertificateError, Pair
from reporter.run.clock import RunClock
from reporter.run.launch_file import RunLocation
from reporter.run.names import STARTED_BY, entry_name
from reporter.run.plan import Key
from reporter.run.state import LauncherTrouble

T = TypeVar("T")

AT_ONCE = 8
CREATIONS = 0.05  # seconds between the beginnings of two
LONGEST_BACK_OFF = 30.0  # seconds
READING_OWNER = "reading the run's ConfigMap"
_AGAIN = 30.0  # seconds after which what was done is done again: a watch has shown it long before
_CHECK = 30.0  # seconds between two looks at what Pods wait for
_MARKING = "marking the run's ConfigMap"
_MAKING = "making Secrets"
_CREATING = "creating Jobs"
_DELETING = "deleting Secrets"


class LaunchRefused(Exception):
    """The entry cannot be launched, for good; the text says why."""


class Kube:
    """One namespace of the API server, for the event loop. All requests raise KubeError."""

    def __init__(self, api: KubeApi, namespace: str) -> None:
        self._api, self._namespace = api, namespace
        # Not those of the loop: a server that hangs would keep up everybody.
        self._threads = ThreadPoolExecutor(AT_ONCE, "launch")

    async def call(self, call: Callable[[], T]) -> T:
        """Return what a call that blocks returns."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, call)

    async def get(self, kind: str, name: str) -> dict[str, Any]:
        """Read an object."""
        return await self.call(partial(self._api.get, kind, self._namespace, name))

    async def annotate(self, kind: str, name: str, **annotations: str) -> None:
        """Add annotations to an object."""
        body = {"metadata": {"annotations": annotations}}
        await self.call(partial(self._api.patch, kind, self._namespace, name, body, merge="json"))

    async def post(self, kind: str, name: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Create it; where there is one of that name, return that. Raises LaunchRefused."""
        try:
            return await self.call(
                partial(self._api.create, kind, self._namespace, body, validation=WARN)
            )
        except AlreadyExists:
            return await self.get(kind, name)
        except (Denied, InvalidRequest) as error:
            raise LaunchRefused(error.said or str(error)) from error

    async def remove(self, kind: str, name: str, uid: str) -> bool:
        """Delete the object with that UID; say whether it was there."""
        try:
            await self.call(partial(self._api.delete, kind, self._namespace, name, uid=uid))
        except (NotFound, Conflict):
            # A conflict: another object has that name by now, and is left alone.
            return False
        return True

    def close(self) -> None:
        """Let go of what has not begun."""
        self._threads.shutdown(wait=False, cancel_futures=True)


@dataclass(frozen=True, slots=True)
class _Failing:
    """What has failed so many times in a row, and why."""

    times: int
    trouble: LauncherTrouble
    reason: str


class Requests:
    """Creates and deletes what `Launcher` says. It belongs to the event loop.

    `wanted` says whether an entry is to be launched still, `changed` is called after each request
    and when one may be tried again, `failed` with what was tried and why in vain. `secrets` makes
    and removes those of the run, `jobs` is told of its Jobs.
    """

    def __init__(
        self,
        kube: Kube,
        run: LaunchedRun,
        location: RunLocation,
        secrets: Secrets,
        jobs: Mirror[SeenJob],
        *,
        wanted: Callable[[Key], bool],
        changed: Callable[[], None],
        failed: Callable[[str, str], None],
        now: RunClock,
    ) -> None:
        self._kube, self._run, self._location, self.secrets = kube, run, location, secrets
        self._jobs = jobs
        self._wanted, self._changed, self._tell = wanted, changed, failed
        self._now, self._clock = now, now.clock
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._tasks: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._creating = asyncio.Lock()
        self._next_creation = 0.0
        self._paused_until = 0.0
        self._failing: dict[tuple[str, str], _Failing] = {}
        self._looked_for: set[tuple[str, str]] = set()
        self._not_before: dict[tuple[str, str], float] = {}  # monotonic
        self._fault: BaseException | None = None
        self.marked = False
        """Whether it stands on the ConfigMap who starts the plugins, or cannot."""
        self.denied: dict[str, Denial] = {}
        """By the names of Jobs, why there will be none."""

    # -- what is wanted --------------------------------------------------------------------------

    def mark(self, mark: str) -> None:
        """Note on the run's ConfigMap who starts its plugins.

        When all is removed nothing else tells an aggregator without its state that they ran.
        """
        self._begin(_MARKING, self._run.name, lambda: self._mark(mark))

    def create(self, key: Key) -> None:
        """Make the entry's Job, and its Secret before, unless it is there meanwhile."""
        name = entry_name(self._run.name, key)
        self._begin(_CREATING, name, lambda: self._create(key, name), _AGAIN)

    def delete(self, name: str, uid: str) -> None:
        """Delete the Job with that UID and its Pod."""
        self._begin("deleting Jobs", uid, lambda: self._delete(name, uid), _AGAIN)

    def delete_secret(self, name: str) -> None:
        """Delete a Secret of the run."""
        self._begin(_DELETING, name, lambda: self.secrets.delete(name))

    def check_secret(self, key: Key) -> None:
        """Make the Secret that a waiting Pod mounts again, if somebody has deleted it."""
        holder = self._holder(key)
        name = entry_name(self._run.name, holder)
        self._begin(_MAKING, name, lambda: self.secrets.restore(holder), _CHECK)

    def check_owner(self) -> None:
        """See whether the run's ConfigMap, which owns all that is made, is still there."""
        self._begin(READING_OWNER, self._run.name, self._check_owner, _CHECK)

    def end_of_look(self) -> None:
        """Forget the trouble with what was not asked for since the last look."""
        for gone in self._failing.keys() - self._looked_for:
            del self._failing[gone], self._not_before[gone]
        self._looked_for.clear()

    @property
    def troubles(self) -> list[LauncherTrouble]:
        """What fails, and since when."""
        return [each.trouble for each in self._failing.values()]

    @property
    def creating(self) -> bool:
        """Whether a Job or a Secret may be made at any moment."""
        return any(what in (_CREATING, _MAKING) for what, _ in self._tasks)

    def failing_secrets(self) -> dict[str, str]:
        """Return the Secrets that may still be there, and why."""
        return {
            name: failing.reason
            if (failing := self._failing.get((_DELETING, name)))
            else "its deletion has not been confirmed yet"
            for name in sorted(self.secrets.kept)
        }

    def raise_fault(self) -> None:
        """Raise what went wrong with a request, if it was no trouble with the API server."""
        if self._fault is not None:
            raise self._fault

    async def settle(self, seconds: float) -> None:
        """Wait for what has begun, but not longer than that."""
        if self._tasks:
            await asyncio.wait(tuple(self._tasks.values()), timeout=seconds)

    async def close(self) -> None:
        """Let go of what has not begun, and wait for what has."""
        tasks = tuple(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # -- how it is done --------------------------------------------------------------------------

    def _begin(
        self,
        what: str,
        name: str,
        work: Callable[[], Coroutine[Any, Any, None]],
        again: float = 0.0,
    ) -> None:
        """Try it, unless it is being tried, has to wait, or was done less than `again` ago."""
        one = what, name
        self._looked_for.add(one)
        until = max(self._paused_until, self._not_before.get(one, 0.0))
        if one in self._tasks or self._clock() < until:
            return
        task = asyncio.create_task(self._try(one, work, again))
        self._tasks[one] = task
        task.add_done_callback(lambda _: self._over(one))

    def _over(self, one: tuple[str, str]) -> None:
        task = self._tasks.pop(one)
        if not task.cancelled() and (fault := task.exception()) is not None:
            self._fault = fault
        self._changed()

    async def _try(
        self, one: tuple[str, str], work: Callable[[], Coroutine[Any, Any, None]], again: float
    ) -> None:
        if one[0] == _CREATING:
            async with self._creating:  # only the next one waits for a slot, when it may begin
                await asyncio.sleep(self._next_creation - self._clock())
                await self._slots.acquire()
                self._next_creation = self._clock() + CREATIONS
        else:
            await self._slots.acquire()
        try:
            if self._clock() < self._paused_until:
                return
            await work()
        except KubeError as error:
            self._fail(one, error)
        else:
            self._not_before[one] = self._clock() + again
            self._failing.pop(one, None)
        finally:
            self._slots.release()

    def _fail(self, one: tuple[str, str], error: KubeError) -> None:
        doing, before = one[0], self._failing.get(one)
        times = 1 if before is None else before.times + 1
        wish = error.retry_after
        delay = next_delay(times, random.random, retry_after=wish, longest=LONGEST_BACK_OFF) or 0.0
        self._not_before[one] = until = self._clock() + delay
        if wish:
            self._paused_until = max(self._paused_until, until)
        since = self._now() if before is None else before.trouble.since
        trouble = LauncherTrouble(since, f"{doing}: {error}")
        self._failing[one] = _Failing(times, trouble, str(error))
        self._tell(doing, str(error))
        asyncio.get_running_loop().call_later(delay, self._changed)

    def _holder(self, key: Key) -> Key:
        plugin = self._run.plan.plugin(key.plugin)
        assert plugin is not None
        return certificate_holder(plugin, key)

    async def _mark(self, mark: str) -> None:
        try:
            await self._kube.annotate("ConfigMap", self._run.name, **{STARTED_BY: mark})
        except (Forbidden, InvalidRequest) as error:
            self._tell(_MARKING, str(error))  # a run without the mark is better than none
        self.marked = True

    async def _create(self, key: Key, name: str) -> None:
        if not self._wanted(key):
            return
        plan = self._run.plan
        plugin = plan.plugin(key.plugin)
        assert plugin is not None
        index, timeout = plan.plugins.index(plugin), plan.timeout_of(key.plugin)
        made = partial(
            job, self._location, self._run.launch, plugin, key, index=index, timeout=timeout
        )
        try:
            await self.secrets.provide(certificate_holder(plugin, key))
            if not self._wanted(key):
                return
            # In a thread: the first one reads its parts from files.
            found = read_job(await self._kube.post("Job", name, await self._kube.call(made)))
        except LaunchRefused as error:
            self.denied[name] = Denial("JobRefused", f"Job {name} was refused: {error}")
            return
        if found.made_for(key, self._run.name, self._run.owner):
            self._jobs.note(name, found)
        else:
            text = f"Job {name} exists already and does not belong to this run"
            self.denied[name] = Denial("NameTaken", text)

    async def _delete(self, name: str, uid: str) -> None:
        if not await self._kube.remove("Job", name, uid):
            self._jobs.forget(name)

    async def _check_owner(self) -> None:
        found = await self._kube.get("ConfigMap", self._run.name)
        if text(section(found, "metadata"), "uid") != self._run.owner:
            raise Conflict(f"ConfigMap {self._run.name} is not the one that this run began with")


class Secrets:
    """Those by which plugins report: made once, again where somebody deleted them, and removed.

    One of that name which does not belong to the run is never touched. `ca` is the run's CA as PEM,
    `client` makes a client's certificate.
    """

    def __init__(
        self, kube: Kube, location: RunLocation, *, ca: bytes, client: Callable[[Key], Pair]
    ) -> None:
        self._kube, self._location, self._ca, self._client = kube, location, ca, client
        self._making: dict[str, asyncio.Lock] = {}
        self._made: dict[str, str] = {}  # UIDs by names
        self.kept: set[str] = set()
        """Names of those that may exist."""

    async def provide(self, holder: Key) -> None:
        """See that the Secret is there. Raises LaunchRefused where somebody else has its name."""
        name = entry_name(self._location.run, holder)
        async with self._making.setdefault(name, asyncio.Lock()):
            if name in self._made:
                return
            self.kept.add(name)
            for _ in range(2):
                found = await self._kube.post("Secret", name, await self._secret(name, holder))
                if not self._is_ours(found):
                    self.kept.discard(name)
                    raise LaunchRefused(
                        f"Secret {name} exists already and does not belong to this run"
                    )
                uid = text(section(found, "metadata"), "uid")
                if self._is_usable(found):
                    self._made[name] = uid
                    return
                # It was made by a process that was killed before it could keep its authority.
                await self._kube.remove("Secret", name, uid)
            raise Conflict(f"Secret {name} was recreated with certificates of another CA")

    async def restore(self, holder: Key) -> None:
        """Make it again, if somebody has deleted it."""
        name = entry_name(self._location.run, holder)
        try:
            await self._kube.get("Secret", name)
        except NotFound:
            self._made.pop(name, None)
            with suppress(LaunchRefused):
                await self.provide(holder)

    async def delete(self, name: str) -> None:
        """Delete it, if it is there and ours; not again what was deleted since that was decided."""
        async with self._making.setdefault(name, asyncio.Lock()):
            if name not in self.kept:
                return
            uid = self._made.pop(name, None)
            if uid is None:
                with suppress(NotFound):  # a process before us may have made it, or a stranger
                    found = await self._kube.get("Secret", name)
                    uid = text(section(found, "metadata"), "uid") if self._is_ours(found) else None
            if uid:
                await self._kube.remove("Secret", name, uid)
            self.kept.discard(name)

    async def _secret(self, name: str, holder: Key) -> dict[str, Any]:
        try:
            pair = await self._kube.call(partial(self._client, holder))
        except CertificateError as error:
            raise LaunchRefused(f"no certificate can be made: {error}") from error
        return secret(
            self._location,
            name,
            holder,
            ca=self._ca,
            certificate=pair.certificate,
            private_key=pair.key,
        )

    def _is_ours(self, found: Mapping[str, Any]) -> bool:
        return owner_of(found) == (self._location.owner or {}).get("uid")

    def _is_usable(self, found: Mapping[str, Any]) -> bool:
        with suppress(ValueError):
            return base64.b64decode(text(section(found, "data"), "ca.crt")) == self._ca
        return False
