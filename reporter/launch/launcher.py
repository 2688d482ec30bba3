"""The launcher of a run: look, decide, act, again and again until nothing of the plugins is left.

It looks at the mirrors and the store, `launch.decide` says what to do, and it is carried out.
Nothing is remembered that a restart would need: the next look finds what is there.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import random
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from reporter.common import log
from reporter.common.log import RateLimitedLog
from reporter.common.objects import View, text
from reporter.common.retry import next_delay
from reporter.errors import KubeError, NotFound
from reporter.kube.api import KubeApi
from reporter.launch.cleanup import LONGEST_END, STATE_LOST
from reporter.launch.decide import decide, waiting_for_mounts
from reporter.launch.job import secret_names
from reporter.launch.logs import LogCollection, Logs
from reporter.launch.mirror import Mirrors
from reporter.launch.obstacles import Obstacles
from reporter.launch.requests import READING_OWNER, Kube, Requests, Secrets
from reporter.launch.seen import newest_pods, newest_refusals
from reporter.launch.world import Decision, LaunchedRun, Memory, World
from reporter.ledger import Store, StoreError
from reporter.pki.issuing import Pair
from reporter.run.clock import RunClock
from reporter.run.entry import State
from reporter.run.launch_file import Launch, RunLocation
from reporter.run.names import STARTED_BY, entry_name
from reporter.run.plan import Key, Plan
from reporter.run.record import Cause, Failure
from reporter.run.state import LauncherState, LauncherTrouble, Phase, PodState, Step

OWNER_GONE = 300.0  # seconds in which a ConfigMap that is gone may come back
_PACE = 0.2  # seconds between two looks of a large run
_SHARE = 10.0  # times as long as a look takes is the pause after it, if that is less
_LOOK = 5.0  # seconds until the next look where nothing happens
_BUSY = 1.0  # the same, where a Job waits for the end of an upload
_LONGEST_BACK_OFF = 10.0
_SETTLE = 10.0  # for the last requests


class Launcher:
    """Launches one run. `run` returns when all of it has been removed.

    `ca` is the run's CA as PEM, `client` makes a client's certificate, and `forget_key` is called
    once nobody needs another one, which may raise OSError. `uploading` gives the keys for whose
    uploads the run stays open. `close` has a key take no more uploads, unless it has one, and says
    whether it has done so. `now` is the clock of the run.
    """

    def __init__(
        self,
        api: KubeApi,
        store: Store,
        plan: Plan,
        launch: Launch,
        *,
        namespace: str,
        url: str,
        ca: bytes,
        client: Callable[[Key], Pair],
        forget_key: Callable[[], None],
        uploading: Callable[[], Collection[Key]],
        close: Callable[[Key], bool],
        logs: Logs,
        now: RunClock,
    ) -> None:
        self._api, self._store, self._plan, self._launch = api, store, plan, launch
        self._namespace, self._url, self._ca, self._client = namespace, url, ca, client
        self._clock, self._now = now.clock, now
        self._uploading, self._close = uploading, close
        self._forget_key, self._key_kept = forget_key, True
        self._own_mark, self._lost = hashlib.sha256(ca).hexdigest(), False
        self._changed = asyncio.Event()
        self._logs = LogCollection(logs, self._changed.set)
        self._obstacles = Obstacles(api, namespace, self._changed.set)
        self._memory = Memory()
        self._decided_at: float | None = None
        self._troubles: list[LauncherTrouble] = []
        self._log, self._seldom = log.get(), RateLimitedLog()
        self.logs_taken = False
        """Whether all logs are here that will come, so that the run may close."""
        self.through = False
        """Whether nothing of the plugins is left, or what is left was given up."""
        if store.phase is not Phase.RUNNING:
            self._publish({}, {})  # nobody may take the removal for over before the first look

    async def run(self) -> None:
        """Launch, watch and remove. A cancellation leaves everything as it is, for the next."""
        kube = Kube(self._api, self._namespace)
        unsubscribe = self._store.subscribe(self._changed.set)
        try:
            owner = await self._owner(kube)
            if owner is not None:
                await self._launch_for(owner, kube)
        finally:
            unsubscribe()
            self._logs.stop()
            self._obstacles.stop()
            kube.close()

    async def _owner(self, kube: Kube) -> Mapping[str, Any] | None:
        """Return the reference to the run's ConfigMap, which owns all that is made.

        Nothing where all is decided and it is not to be seen.
        """
        name, failures, gone_at, since = self._plan.run, 0, math.inf, self._now()
        while True:
            try:
                found = View(await kube.get("ConfigMap", name))
            except KubeError as error:
                failures += 1
                self._troubles = [LauncherTrouble(since, f"{READING_OWNER}: {error}")]
                self._say_failing(READING_OWNER, str(error))
                now = self._clock()
                gone_at = min(gone_at, now) if isinstance(error, NotFound) else math.inf
                gone = now >= gone_at + OWNER_GONE
                if gone:
                    await self._fail_what_has_not_started(name)
                if self._given_up(at_once=gone):
                    return None
                self._publish({}, {})
                delay = next_delay(failures, random.random, longest=_LONGEST_BACK_OFF)
                await asyncio.sleep(delay or 0.0)
                continue
            self._troubles = []
            self._lost = text(found.annotations, STARTED_BY) not in {"", self._own_mark}
            return {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": found.uid}

    async def _fail_what_has_not_started(self, name: str) -> None:
        """What has started ends by its result or its own time; for the rest nothing else would."""
        text = f"ConfigMap {name} is gone, and with it the objects of this run in the cluster"
        failure = Failure("final", self._now(), text, Cause.START_FAILED, "ConfigMapGone")
        entries = self._store.snapshot().entries.items()
        waiting = [key for key, entry in entries if not entry.terminal and entry.started_at is None]
        try:
            await self._store.mark_all_failed(dict.fromkeys(waiting, failure))
        except StoreError as error:
            self._refused(error)

    def _refused(self, error: StoreError) -> None:
        self._seldom.say(self._clock(), self._log.error, "Store write failed", error=error)

    def _say_failing(self, doing: str, error: str) -> None:
        self._seldom.say(
            self._clock(),
            self._log.warning,
            "Launcher requests to the API server are failing",
            about=doing,
            doing=doing,
            error=error,
        )

    async def _launch_for(self, owner: Mapping[str, Any], kube: Kube) -> None:
        mirrors = Mirrors(
            self._api,
            self._namespace,
            self._plan.run,
            self._launch,
            self._changed.set,
            failed=self._say_failing,
            now=self._now,
        )
        location = RunLocation(self._plan.run, self._namespace, owner, self._url)
        run = LaunchedRun(self._plan, self._launch, owner["uid"])
        requests = Requests(
            kube,
            run,
            location,
            Secrets(kube, location, ca=self._ca, client=self._client),
            mirrors.jobs,
            wanted=lambda key: not self._store.entry(key).terminal,
            changed=self._changed.set,
            failed=self._say_failing,
            now=self._now,
        )
        if self._store.launching or self._state_was_lost():
            requests.secrets.kept |= secret_names(self._plan)
        for mirror in mirrors:
            mirror.start()
        try:
            await self._go_on(run, mirrors, requests)
        finally:
            for mirror in mirrors:
                mirror.stop()
            await requests.close()
            for mirror in mirrors:
                await mirror.join()

    def _state_was_lost(self) -> bool:
        entries = self._store.snapshot().entries.values()
        return any(entry.record and entry.record.reason == STATE_LOST for entry in entries)

    async def _go_on(self, run: LaunchedRun, mirrors: Mirrors, requests: Requests) -> None:
        while not self.through:
            self._changed.clear()
            due, began = _LOOK, self._clock()
            try:
                due = await self._look(run, mirrors, requests)
            except StoreError as error:
                self._refused(error)
            if self.through:
                return
            await asyncio.sleep(min(_PACE, _SHARE * (self._clock() - began)))
            with suppress(TimeoutError):
                async with asyncio.timeout(due):
                    await self._changed.wait()

    async def _look(self, run: LaunchedRun, mirrors: Mirrors, requests: Requests) -> float:
        """Look, decide and act once; return the seconds until time alone changes something."""
        for part in (*mirrors, requests):
            part.raise_fault()  # better no process than one that looks at the past, or asks in vain
        if not mirrors.listed:
            self._troubles = [mirror.lost for mirror in mirrors if mirror.lost]
            if not self._given_up():
                self._publish({}, {})
            return _LOOK
        old, creating = mirrors.old(self._clock()), requests.creating
        world, now = self._world(mirrors, requests), self._now()
        entries, begun = self._store.snapshot().entries, self._store.launching
        # With thousands of entries it takes long enough for workers to notice. A change
        # meanwhile does no harm: a failure gives way to a result, and nothing decided is created.
        decision = await asyncio.to_thread(
            decide, run, entries, world, self._memory, now=now, begun=begun, lost=self._lost
        )
        self._memory = decision.memory
        if decision.fail and old:
            for mirror in old:
                mirror.refresh()
            decision = replace(decision, fail={})
        soon = await self._act(decision, world, requests)
        await self._forget()
        requests.check_owner()
        for key in waiting_for_mounts(decision.pods, entries, now=now):
            requests.check_secret(key)  # if somebody has deleted it, the Pod would wait for ever
        self._obstacles.look(decision.unheard, self._clock())
        requests.end_of_look()
        stays, self.logs_taken = dict(decision.stays), decision.logs_taken
        if decision.through:
            await requests.settle(_SETTLE)
            if creating:  # this look knew nothing of what they have made
                return 0.0
            self.through = True
            stays |= {f"Secret {name}": why for name, why in requests.failing_secrets().items()}
            if stays:
                self._log.warning("Some objects of the run were not deleted", stays=stays)
            else:
                self._log.info("Plugin objects deleted from the cluster")
        self._troubles = [mirror.lost for mirror in mirrors if mirror.lost] + requests.troubles
        self._publish(decision.pods, stays)
        return min(soon, _LOOK if decision.next_look is None else decision.next_look - now)

    def _given_up(self, *, at_once: bool = False) -> bool:
        """Say whether the run goes on without its removal, as `decide` does where it has seen."""
        now = self._clock()
        if not all(entry.terminal for entry in self._store.snapshot().entries.values()):
            self._decided_at = None
            return False
        self._decided_at = now if self._decided_at is None else self._decided_at
        if not at_once and now < self._decided_at + LONGEST_END:
            return False
        self.logs_taken = self.through = True
        self._log.warning("Objects of the run may remain: the API server does not show them")
        self._publish({}, {})
        return True

    def _world(self, mirrors: Mirrors, requests: Requests) -> World:
        closed = self._store.phase is not Phase.RUNNING
        if closed:
            self._logs.stop()  # what comes now is too late for the tarball
        return World(
            dict(mirrors.jobs.seen),
            newest_pods(mirrors.pods.seen.values()),
            newest_refusals(mirrors.events.seen.values()),
            frozenset(self._plan.keys if closed else self._logs.tried),
            frozenset(requests.secrets.kept),
            dict(requests.denied),
            mirrors.unseen_since,
            frozenset(self._uploading()),
            frozenset(self._store.snapshot().beats),
            dict(self._obstacles.known),
            self._now.skew,
        )

    async def _act(self, decision: Decision, world: World, requests: Requests) -> float:
        """Do what was decided; return in how many seconds to look at what could not be done."""
        if decision.fail:
            await self._store.mark_all_failed(decision.fail)
            if self._state_was_lost():
                requests.secrets.kept |= secret_names(self._plan)
        await self._store.start_entries(decision.start)
        await self._store.note_launches(decision.adopt, at=self._now())
        for key in decision.take_logs:
            uid = decision.memory.uids[key]
            self._logs.take(key, world.pods[entry_name(self._plan.run, key), uid])
        due = _LOOK
        for name in decision.delete:
            job = world.jobs[name]
            # Whatever still comes, this was its last chance to go with the run.
            if self._idle(job.key) or decision.through:
                requests.delete(name, job.uid)
            else:
                due = _BUSY
        for name in decision.delete_secrets:
            requests.delete_secret(name)
        if decision.begin and not requests.marked:
            requests.mark(self._own_mark)
        elif decision.begin:
            await self._store.begin_launching()
            self._log.info("Launching started", expected=len(self._plan.keys))
            self._changed.set()
        for key in decision.create:
            requests.create(key)
        return due

    def _idle(self, key: Key | None) -> bool:
        """Whether no result can come any more: none is on its way, and none is taken."""
        assert key is not None
        return self._store.entry(key).state is State.COMPLETE or self._close(key)

    async def _forget(self) -> None:
        """Let nobody add a client once every plugin has its own: its container has begun."""
        entries = self._store.snapshot().entries.values()
        if self._key_kept and all(each.terminal or each.started_at is not None for each in entries):
            try:
                await asyncio.to_thread(self._forget_key)
                self._key_kept = False
            except OSError as error:
                self._seldom.say(
                    self._clock(),
                    self._log.warning,
                    "The key of the run's certificate authority could not be removed",
                    error=error,
                )

    def _publish(self, pods: Mapping[Key, PodState], stays: Mapping[str, str]) -> None:
        entries = self._store.snapshot().entries.values()
        trouble = min(self._troubles, key=lambda one: one.since, default=None)
        if self.through:
            step, trouble = Step.DONE, None  # nobody wants any more what failed
        elif all(entry.terminal for entry in entries):
            step = Step.REMOVING
        elif any(entry.launched_at is None and not entry.terminal for entry in entries):
            step = Step.LAUNCHING
        else:
            step = Step.WATCHING
        self._store.show_launch(pods, LauncherState(step, trouble, stays))
