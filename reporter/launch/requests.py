"""The launcher's own requests: Jobs and Secrets, so many at a time and a second.

Each does one thing and remembers how it ended for the next look. Trouble with the API server is
never a plugin's failure: it is remembered with its age, and the next look asks again. An object
that fails waits longer and longer, each by itself, so that one keeps up no other; what the server
asks for with Retry-After holds for all.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Collection, Coroutine
from concurrent.futures import Executor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from reporter.common.objects import section, text
from reporter.common.retry import next_delay
from reporter.errors import Conflict, KubeError
from reporter.kube.api import KubeApi
from reporter.launch.calls import Asking, LaunchRefused
from reporter.launch.job import job, secret_name
from reporter.launch.secrets import Secrets
from reporter.launch.seen import SeenJob, read_job
from reporter.pki.issuing import Pair
from reporter.run.names import entry_name
from reporter.run.plan import Key, Plan
from reporter.run.spec import Launch, RunLocation

AT_ONCE = 8
READING_OWNER = "reading the run's ConfigMap"
CREATIONS = 0.05  # seconds between the beginnings of two
LONGEST_BACK_OFF = 30.0  # seconds
_SHOWS_UP = 150.0  # seconds after which even a watch that was silent shows what was made
_ASK_AGAIN = 30.0  # seconds after which a deletion is asked for again
_ASK_SOON = 3.0  # the same, where no watch has shown what is to go
_MAKING = "making Secrets"
_CHECK = 30.0  # seconds between two looks at what Pods wait for


@dataclass(frozen=True, slots=True)
class _Failing:
    """What has failed so many times in a row, is not tried before then (monotonic), and why."""

    times: int
    until: float
    reason: str


class Requests:
    """Creates and deletes what `Launcher` says. It belongs to the event loop.

    `threads` make the requests. `wanted` says whether an entry is to be launched still, `done` is
    called after each request, `trouble` with what was done and how it failed, nothing for success.
    `ca` is the run's CA as PEM, `client` makes a client's certificate. `clock` is monotonic.
    """

    def __init__(
        self,
        api: KubeApi,
        place: RunLocation,
        plan: Plan,
        launch: Launch,
        threads: Executor,
        *,
        ca: bytes,
        client: Callable[[Key], Pair],
        wanted: Callable[[Key], bool],
        done: Callable[[], None],
        trouble: Callable[[str, KubeError | None], None],
        clock: Callable[[], float],
        rng: Callable[[], float] = random.random,
    ) -> None:
        self._place, self._plan, self._launch = place, plan, launch
        self._asking = Asking(api, place.namespace, threads)
        self.secrets = Secrets(self._asking, place, ca=ca, client=client)
        self._wanted, self._done, self._trouble = wanted, done, trouble
        self._clock, self._rng = clock, rng
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._tasks: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._creating = asyncio.Lock()
        self._next_creation = 0.0
        self._paused_until = 0.0
        self._failing: dict[tuple[str, str], _Failing] = {}
        self._looked_for: set[tuple[str, str]] = set()
        self._answers: dict[str, tuple[SeenJob, float]] = {}
        self._asked: dict[str, float] = {}
        self._checked: dict[str, float] = {}
        self._fault: BaseException | None = None
        self.denied: dict[str, str] = {}
        """By the names of Jobs, why the API server does not take them."""

    # -- what is wanted --------------------------------------------------------------------------

    def create(self, key: Key) -> None:
        """Make the entry's Job, and its Secret before, unless it is there meanwhile.

        A decision takes time: what was on its way when it began to look may be there by now.
        """
        name = entry_name(self._place.run, key)
        if name not in self._answers:
            self._begin("creating Jobs", name, lambda: self._create(key, name), in_turn=True)

    def delete(self, name: str, uid: str) -> None:
        """Delete the Job with that UID and its Pod, unless that was asked a moment ago."""
        pause = _ASK_SOON if name in self._answers else _ASK_AGAIN
        due = self._clock() >= self._asked.get(uid, -pause) + pause
        self._begin("deleting Jobs", name, lambda: self._delete(name, uid), due=due)

    def delete_secret(self, name: str) -> None:
        """Delete a Secret of the run."""
        self._begin("deleting Secrets", name, lambda: self.secrets.delete(name))

    def check_secret(self, key: Key) -> None:
        """Make the Secret that a waiting Pod mounts again, if somebody has deleted it."""
        plugin = self._plan.plugin(key.plugin)
        assert plugin is not None
        name = secret_name(self._place.run, plugin, key)
        self._check(_MAKING, name, lambda: self.secrets.check(plugin, key, name))

    def check_owner(self) -> None:
        """See whether the run's ConfigMap, which owns all that is made, is still there."""
        name = self._place.run
        self._check(READING_OWNER, name, self._check_owner)

    def end_of_look(self) -> None:
        """Forget the trouble with what was not asked for since the last look."""
        for each in self._failing.keys() - self._looked_for:
            self._well(*each)
        self._looked_for.clear()

    def failing_secrets(self) -> dict[str, str]:
        """Return the Secrets that may still be there, and why."""
        unconfirmed = _Failing(0, 0.0, "its deletion has not been confirmed yet")
        return {
            name: self._failing.get(("deleting Secrets", name), unconfirmed).reason
            for name in sorted(self.secrets.kept)
        }

    def answered(self, seen: Collection[str]) -> dict[str, SeenJob]:
        """Return what was answered with and is not in `seen` yet."""
        now = self._clock()
        self._answers = {
            name: (found, until)
            for name, (found, until) in self._answers.items()
            if now < until and name not in seen
        }
        return {name: found for name, (found, _) in self._answers.items()}

    def check(self) -> None:
        """Raise what went wrong with a request, if it was no trouble with the API server."""
        if self._fault is not None:
            raise self._fault

    async def settle(self, seconds: float) -> None:
        """Wait for what has begun, but not longer than that; not for what is to be tried again."""
        if tasks := [task for each, task in self._tasks.items() if self._pause(*each) == 0]:
            await asyncio.wait(tasks, timeout=seconds)

    async def close(self) -> None:
        """Let go of what has not begun, and wait for what has."""
        tasks = tuple(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # -- how it is done --------------------------------------------------------------------------

    def _check(self, what: str, name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Look now and then; after a failure as soon as its back-off is over."""
        now = self._clock()
        due = (what, name) in self._failing or now >= self._checked.get(name, -_CHECK) + _CHECK
        if due:
            self._checked[name] = now
        self._begin(what, name, work, due=due)

    def _begin(
        self,
        what: str,
        name: str,
        work: Callable[[], Coroutine[Any, Any, None]],
        *,
        due: bool = True,
        in_turn: bool = False,
    ) -> None:
        self._looked_for.add((what, name))
        if not due or (what, name) in self._tasks:
            return
        task = asyncio.create_task(self._at_work(what, name, work, in_turn))
        self._tasks[what, name] = task
        task.add_done_callback(lambda _: self._over(what, name))

    def _over(self, what: str, name: str) -> None:
        task = self._tasks.pop((what, name))
        if not task.cancelled() and (fault := task.exception()) is not None:
            self._fault = fault
        self._done()

    async def _at_work(
        self, what: str, name: str, work: Callable[[], Coroutine[Any, Any, None]], in_turn: bool
    ) -> None:
        while True:
            await asyncio.sleep(self._pause(what, name))  # not in a slot that others could use
            async with self._turn() if in_turn else self._slots:
                if self._pause(what, name) > 0:
                    continue
                try:
                    await work()
                except KubeError as error:
                    self._failed(what, name, error)
                else:
                    self._well(what, name)
                return

    def _pause(self, what: str, name: str) -> float:
        failing = self._failing.get((what, name))
        until = max(self._paused_until, 0.0 if failing is None else failing.until)
        return max(0.0, until - self._clock())

    def _failed(self, what: str, name: str, error: KubeError) -> None:
        before = self._failing.get((what, name))
        times = 1 if before is None else before.times + 1
        wish = error.retry_after
        delay = next_delay(times, self._rng, retry_after=wish, longest=LONGEST_BACK_OFF) or 0.0
        until = self._clock() + delay
        self._failing[what, name] = _Failing(times, until, str(error))
        if wish:
            self._paused_until = max(self._paused_until, until)
        self._trouble(what, error)

    def _well(self, what: str, name: str) -> None:
        self._failing.pop((what, name), None)
        if not any(other == what for other, _ in self._failing):
            self._trouble(what, None)

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """Hold a slot for a creation: only the next one waits for it, when it may begin."""
        async with self._creating:
            await asyncio.sleep(self._next_creation - self._clock())
            await self._slots.acquire()
            self._next_creation = self._clock() + CREATIONS
        try:
            yield
        finally:
            self._slots.release()

    async def _create(self, key: Key, name: str) -> None:
        if not self._wanted(key):
            return
        plugin = self._plan.plugin(key.plugin)
        assert plugin is not None
        body = job(
            self._place,
            self._launch,
            plugin,
            key,
            index=self._plan.plugins.index(plugin),
            timeout=self._plan.timeout_of(key.plugin),
        )
        try:
            await self.secrets.provide(plugin, key, secret_name(self._place.run, plugin, key))
            found = await self._asking.post("Job", name, body)
        except LaunchRefused as error:
            self.denied[name] = str(error)
            return
        self._answers[name] = read_job(found), self._clock() + _SHOWS_UP

    async def _check_owner(self) -> None:
        run, owner = self._place.run, self._place.owner or {}
        found = await self._asking.get("ConfigMap", run)
        if text(section(found, "metadata"), "uid") != owner.get("uid"):
            raise Conflict(f"ConfigMap {run} is not the one that this run began with")

    async def _delete(self, name: str, uid: str) -> None:
        there = await self._asking.remove("Job", name, uid)
        self._asked[uid] = self._clock()
        # Made and deleted between two looks: no watch will show it any more.
        answer = self._answers.get(name)
        if not there and answer is not None and answer[0].uid == uid:
            del self._answers[name]
