"""The launcher's own requests: Secrets and Jobs made and deleted, so many at a time and a second.

Each does one thing and remembers how it ended for the next look. Trouble with the API server is
never a plugin's failure: it is remembered with its age, and the next look asks again.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Executor
from typing import Any

from reporter.aggregator.launch.asking import Asking, Refused, WriteApi
from reporter.aggregator.launch.secrets import Secrets
from reporter.core.launch.job import job, secret_name
from reporter.core.launch.names import entry_name
from reporter.core.launch.seen import SeenJob, read_job
from reporter.core.launch.spec import Launch, Place
from reporter.core.objects import section, text
from reporter.core.retry import next_delay
from reporter.core.run.plan import Key, Plan, Plugin
from reporter.errors import Conflict, KubeError
from reporter.pki.issuing import Pair

AT_ONCE = 8
CREATIONS = 0.05  # seconds between the beginnings of two
LONGEST_BACK_OFF = 30.0  # seconds
_SHOWS_UP = 150.0  # seconds after which even a watch that was silent shows a Job that was made
_CREATING, _DELETING = "creating Jobs", "deleting Jobs"
_ASK_AGAIN = 30.0  # seconds after which a deletion is asked for again
_CHECK = 30.0  # seconds between two looks at what Pods wait for


class Requests:
    """Creates and deletes what `Launcher` says. It belongs to the event loop.

    `threads` make the requests. `wanted` says whether an entry is to be launched still, `done` is
    called after each request, `trouble` with what was done and how it failed, nothing for success.
    `ca` is the run's CA as PEM, `client` makes a client's certificate. `clock` is monotonic.
    """

    def __init__(
        self,
        api: WriteApi,
        place: Place,
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
        self._next_creation = 0.0
        self._paused_until, self._failures = 0.0, 0
        self._answers: dict[str, tuple[SeenJob, float]] = {}
        self._asked: dict[str, float] = {}
        self._checked: dict[str, float] = {}
        self._fault: BaseException | None = None
        self.denied: dict[str, str] = {}
        """By the names of Jobs, why the API server does not take them."""

    # -- what is wanted --------------------------------------------------------------------------

    def create(self, key: Key) -> None:
        """Make the entry's Job, and its Secret before."""
        name = entry_name(self._place.run, key)
        self._begin(_CREATING, name, lambda: self._create(key, name))

    def delete_job(self, name: str, uid: str) -> None:
        """Delete the Job with that UID and its Pod, unless that was asked a moment ago."""
        if self._clock() < self._asked.get(uid, -_ASK_AGAIN) + _ASK_AGAIN:
            return
        self._begin(_DELETING, name, lambda: self._delete_job(name, uid))

    def delete_secret(self, name: str) -> None:
        """Delete a Secret of the run."""
        self._begin("deleting Secrets", name, lambda: self.secrets.delete(name))

    def check_secret(self, plugin: Plugin, key: Key) -> None:
        """Make the Secret that a waiting Pod mounts again, if somebody has deleted it."""
        name = secret_name(self._place.run, plugin, key)
        if not self._check_is_due(name):
            return
        self._begin("making Secrets", name, lambda: self.secrets.check(plugin, key, name))

    def check_owner(self) -> None:
        """See whether the run's ConfigMap, which owns all that is made, is still there."""
        if not self._check_is_due(""):
            return
        self._begin("reading the run's ConfigMap", self._place.run, self._check_owner)

    def idle(self, *, creating: bool, deleting: bool) -> None:
        """Forget the trouble with what nobody wants any more."""
        for what, wanted in ((_CREATING, creating), (_DELETING, deleting)):
            if not wanted:
                self._trouble(what, None)

    def answered(self, seen: Mapping[str, SeenJob]) -> dict[str, SeenJob]:
        """Return the Jobs that were answered with and are not in `seen` yet, by name."""
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
        """Wait for what has begun, but not longer than that."""
        if tasks := tuple(self._tasks.values()):
            await asyncio.wait(tasks, timeout=seconds)

    async def close(self) -> None:
        """Let go of what has not begun, and wait for what has."""
        tasks = tuple(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # -- how it is done --------------------------------------------------------------------------

    def _check_is_due(self, name: str) -> bool:
        now = self._clock()
        due = now >= self._checked.get(name, -_CHECK) + _CHECK
        if due:
            self._checked[name] = now
        return due

    def _begin(self, what: str, name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        if (what, name) in self._tasks:
            return
        task = asyncio.create_task(self._at_work(what, work))
        self._tasks[what, name] = task
        task.add_done_callback(lambda _: self._over(what, name))

    def _over(self, what: str, name: str) -> None:
        task = self._tasks.pop((what, name))
        if not task.cancelled() and (fault := task.exception()) is not None:
            self._fault = fault
        self._done()

    async def _at_work(self, what: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        async with self._slots:
            await self._pause()
            try:
                await work()
            except KubeError as error:
                self._failures += 1
                delay = next_delay(
                    self._failures,
                    self._rng,
                    retry_after=error.retry_after,
                    longest=LONGEST_BACK_OFF,
                )
                self._paused_until = max(self._paused_until, self._clock() + (delay or 0.0))
                self._trouble(what, error)
            else:
                self._failures = 0
                self._trouble(what, None)

    async def _pause(self) -> None:
        while (left := self._paused_until - self._clock()) > 0:
            await asyncio.sleep(left)

    async def _turn(self) -> None:
        """Wait until the next creation may begin."""
        at = self._next_creation = max(self._clock(), self._next_creation + CREATIONS)
        await asyncio.sleep(at - self._clock())

    async def _create(self, key: Key, name: str) -> None:
        await self._turn()
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
        except Refused as error:
            self.denied[name] = str(error)
            return
        self._answers[name] = read_job(found), self._clock() + _SHOWS_UP

    async def _check_owner(self) -> None:
        run, owner = self._place.run, self._place.owner or {}
        found = await self._asking.get("ConfigMap", run)
        if text(section(found, "metadata"), "uid") != owner.get("uid"):
            raise Conflict(f"ConfigMap {run} is another one than this run began with")

    async def _delete_job(self, name: str, uid: str) -> None:
        await self._asking.remove("Job", name, uid)
        self._asked[uid] = self._clock()
