"""A cluster and a launcher in memory: time is a number, and everything may go wrong.

The launcher here is the thinnest shell around `decide` that there can be. It is killed between any
two requests, sees old states of objects, and its API server goes away.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field, replace
from math import inf

from reporter.common.objects import stamp
from reporter.launch.decide import decide
from reporter.launch.job import secret_name
from reporter.launch.seen import (
    SeenPod,
    newest_pods,
    newest_refusals,
    read_event,
    read_job,
    read_pod,
)
from reporter.launch.world import Decision, Denial, LaunchedRun, Memory, World
from reporter.run.entry import Entry, due, fail, next_due, receive, start
from reporter.run.entry import launch as launched
from reporter.run.names import entry_name
from reporter.run.plan import Key
from reporter.run.record import Rank, Record
from tests.unit.launch.cluster import (
    NOW,
    OWNER,
    api_job,
    api_pod,
    api_refusal,
    ended,
    running,
    unscheduled,
    waiting,
)

CHANGES = (1, 3, 4, 8, 15, 20, 25)
"""How old a Job is, in seconds, when something becomes of it or its Pod."""
CAUGHT_UP = 5.0  # after so many seconds an observation is never old any more
GONE = "0/3 nodes are available: 3 node(s) didn't satisfy plugin(s) [NodeAffinity]."

HEALTHY = ("passes", "fails", "sleeps on")
"""What becomes of a plugin that sends a result; the last one's Pod never ends by itself."""
SICK = (
    "exits",
    "exits well",
    "cannot be pulled",
    "has no node",
    "is refused",
    "hangs",
    "is evicted",
    "loses its Pod",
    "loses its Job",
    "has no Pod",
    "breaks its settings",
)
FOREIGN = ("name is taken", "is denied")
EVERY = (*HEALTHY, *SICK, *FOREIGN)


class Killed(Exception):
    """The launcher's process was killed."""


@dataclass
class Cluster:
    """Jobs and their Pods by name, each entry with its fate. `now` is Unix seconds."""

    run: LaunchedRun
    fates: dict[Key, str]
    now: float = NOW
    jobs: dict[str, float] = field(default_factory=dict)  # when created
    deleted: dict[str, float] = field(default_factory=dict)  # when that was asked for
    strangers: set[str] = field(default_factory=set)
    created: list[Key] = field(default_factory=list)
    uploads: list[Key] = field(default_factory=list)
    began: dict[Key, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.keys = {entry_name(self.run.name, key): key for key in self.fates}
        self.strangers |= {
            name for name, key in self.keys.items() if self.fates[key] == "name is taken"
        }

    def create(self, key: Key) -> str:
        """Create its Job; the answer's reason."""
        name = entry_name(self.run.name, key)
        if name in self.jobs or name in self.strangers:
            return "AlreadyExists"
        if self.fates[key] == "is denied":
            return "Forbidden"
        self.jobs[name] = self.now
        self.created.append(key)
        return ""

    def delete(self, name: str) -> None:
        """Delete a Job; its Pod has ten seconds."""
        assert name not in self.strangers, "a stranger's Job was deleted"
        self.deleted.setdefault(name, self.now)

    def age(self, key: Key) -> float:
        """Seconds since its Job was created."""
        return self.now - self.jobs.get(entry_name(self.run.name, key), self.now)

    def next_change(self) -> float:
        """When something will happen by itself."""
        moments = [at + 10 for at in self.deleted.values()]
        moments += [at + age for at in self.jobs.values() for age in CHANGES]
        return min((moment for moment in moments if moment > self.now), default=inf)

    def tick(self, now: float) -> None:
        """Let time pass until then; nothing may be due in between."""
        self.now = now
        for name, at in list(self.deleted.items()):
            if self.now >= at + 10:
                self.jobs.pop(name, None)
                del self.deleted[name]
        for name in self.jobs:
            key = self.keys[name]
            fate, age = self.fates[key], self.age(key)
            if fate in HEALTHY and age == 20:
                self.uploads.append(key)
            if fate == "loses its Job" and age == 15:
                self.delete(name)

    def objects(self) -> dict[str, tuple[dict | None, dict | None, dict | None]]:
        """Every name with its Job, Pod and Event as the API shows them now."""
        shown = {}
        for name, key in self.keys.items():
            job = pod = event = None
            if name in self.jobs:
                leaving = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
                job = api_job(key, **(leaving if name in self.deleted else {}))
                pod, event = self._pod(key), self._event(key)
            elif name in self.strangers:
                job = api_job(key, owner="somebody", uid="stranger")
            shown[name] = job, pod, event
        return shown

    def _event(self, key: Key) -> dict | None:
        if self.fates[key] == "is refused" and self.age(key) >= 1:
            return api_refusal(key, "Error creating: exceeded quota")
        return None

    def _pod(self, key: Key) -> dict | None:
        fate, age = self.fates[key], self.age(key)
        if fate in {"is refused", "has no Pod"} or age < 1:
            return None
        if fate == "has no node":
            return api_pod(key, node="", conditions=[unscheduled(GONE)])
        if fate == "cannot be pulled" and age >= 3:
            back_off = 8 <= age < 20
            state = waiting(
                "ImagePullBackOff" if back_off else "ErrImagePull", "" if back_off else "404"
            )
            return api_pod(key, state, running())
        if fate == "breaks its settings" and age >= 3:
            return api_pod(key, waiting("CreateContainerConfigError", "no secret"), running())
        if age < 4:
            return api_pod(key, waiting("ContainerCreating"), waiting("PodInitializing"))
        self.began.setdefault(key, self.now)
        began = self.began[key]
        if age >= 15 and fate in {"exits", "exits well", "passes", "fails"}:
            over = age >= 25
            code = 1 if fate == "exits" else 0
            state = ended(code, began=began, at=began + 11)
            ours = ended(0, began=began, at=began + 21) if over else running(began)
            return api_pod(key, state, ours, phase="Succeeded" if over else "Running")
        if age >= 15 and fate == "loses its Pod":
            return None
        if age >= 15 and fate == "is evicted":
            return api_pod(
                key,
                ended(137, began=began, at=began + 11),
                ended(0, began=began, at=began + 12),
                phase="Failed",
                status={"reason": "Evicted", "message": "low on memory"},
            )
        return api_pod(key, running(began), running(began), phase="Running")


@dataclass
class Faults:
    """When the launcher is killed (by number of request), the API away, and what is seen late.

    A request whose number is in `before` never reaches the API server, one in `after` does, but
    nobody hears the answer. `forged` is the state of a Pod beside that of each entry, with its
    labels, that its Job has not made, and that is always newer.
    """

    before: frozenset[int] = frozenset()
    after: frozenset[int] = frozenset()
    outages: tuple[tuple[float, float], ...] = ()
    seed: int | None = None
    forged: str = ""


class Shell:
    """A launcher's process after the other, on one store. `entries` and `begun` are the store."""

    def __init__(self, cluster: Cluster, faults: Faults) -> None:
        self.cluster, self.run, self.faults = cluster, cluster.run, faults
        self.entries = {key: Entry(key) for key in cluster.run.plan.keys}
        self.begun = False
        self.requests = self.restarts = 0
        self.through = False
        self.stays: dict[str, str] = {}
        self.most_open: dict[str, int] = {}
        self._dice = random.Random(faults.seed or 0)  # the same, whenever it is driven
        self._kept: dict[str, tuple] = {}
        self._read: dict[str, tuple] = {}
        self._old_since: dict[str, float] = {}
        self._unseen: float | None = None
        self._busy, self._late = True, False
        self._forget()

    def _forget(self) -> None:
        self.memory = Memory()
        self.taken: set[Key] = set()
        self.denied: dict[str, Denial] = {}
        # A new process cannot know which of its Secrets are there.
        self.secrets = {
            secret_name(self.run.name, plugin, key)
            for plugin in self.run.plan.plugins
            for key in plugin.keys
            if self.entries[key].launched_at is not None
        }

    def go(self, seconds: float) -> None:
        """Run until the launcher is through, or so long."""
        end = self.cluster.now + seconds
        while self.cluster.now < end and not self.through:
            self.cluster.tick(min(self._next(), end))
            self._take_results()
            try:
                self._look()
            except Killed:
                self.restarts += 1
                self._forget()

    def _next(self) -> float:
        """When there is something to do: by the cluster, by time, or because of what was done."""
        now = self.cluster.now
        moments = [self.cluster.next_change(), *filter(None, map(next_due, self.entries.values()))]
        for begin, length in self.faults.outages:
            moments += [NOW + begin, NOW + begin + length]
        if self.memory.next_look is not None:
            moments.append(self.memory.next_look)
        if self._busy:
            moments.append(now + 0.5)
        return min((moment for moment in moments if moment > now), default=inf)

    def _take_results(self) -> None:
        """What the rest of the aggregator does: results and deadlines."""
        now = self.cluster.now
        for key in self.cluster.uploads:
            verdict = "failed" if self.cluster.fates[key] == "fails" else "passed"
            record = Record(Rank.RESULT, now, verdict=verdict)
            self.entries[key], _ = receive(self.entries[key], record, closed=False)
        self.cluster.uploads.clear()
        for key, entry in self.entries.items():
            if failure := due(entry, now):
                self.entries[key], _ = fail(entry, failure, closed=False)

    def _look(self) -> None:
        now = self.cluster.now
        world = self._world()
        made = decide(self.run, self.entries, world, self.memory, now=now, begun=self.begun)
        self.memory = made.memory
        self._busy = True
        self._carry_out(made)
        acted = (made.begin, made.create, made.adopt, made.start, made.fail, made.take_logs)
        self._busy = self._late or any(acted) or bool(made.delete or made.delete_secrets)

    def _away(self) -> bool:
        at = self.cluster.now - NOW
        return any(begin <= at < begin + length for begin, length in self.faults.outages)

    def _world(self) -> World:
        """What is seen: of each name the present, or for some seconds what it was before."""
        now, objects = self.cluster.now, self.cluster.objects()
        self._late = False
        if self._away():
            self._unseen = now if self._unseen is None else self._unseen
        else:
            self._unseen = None
        for name, present in objects.items():
            kept = self._kept.setdefault(name, (None, None, None))
            if self._unseen is not None or present == kept:
                continue
            since = self._old_since.setdefault(name, now)
            lags = self.faults.seed is not None and now - since < CAUGHT_UP
            if lags and self._dice.random() < 0.5:
                self._late = True
                continue
            self._kept[name] = present
            self._read[name] = self._values(present)
            del self._old_since[name]
        jobs, pods, refusals = {}, [], []
        names = list(objects)
        self._dice.shuffle(names)
        for name in names:
            job, pod, refusal = self._read.get(name, (None, None, None))
            if job is not None:
                jobs[name] = job
            if pod is not None:
                pods.append(pod)
            if refusal is not None:
                refusals.append(refusal)
        if self.faults.forged:
            pods += [self._forged(key) for key in self.entries]
        return World(
            jobs,
            newest_pods(pods),
            newest_refusals(refusals),
            frozenset(self.taken),
            frozenset(self.secrets),
            self.denied,
            self._unseen,
        )

    def _forged(self, key: Key) -> SeenPod:
        """A Pod with the labels of the entry's that somebody else has made just now."""
        state = self.faults.forged
        now = ended(1) if state == "Failed" else running()
        leaving = {"deletionTimestamp": stamp(NOW)} if state == "deleted" else {}
        phase = "Running" if leaving else state
        pod = read_pod(api_pod(key, now, now, phase=phase, **leaving), self.run.launch)
        assert pod is not None
        return replace(pod, name="forged", uid="zz", job_uid="zz", created_at=self.cluster.now)

    def _values(self, shown: tuple) -> tuple:
        """What is kept of a name's Job, Pod and Event."""
        job, pod, event = shown
        return (
            job and read_job(job),
            pod and read_pod(pod, self.run.launch),
            event and read_event(event),
        )

    def _request(self) -> None:
        """Count a request; the process may die before it, or the API server be away."""
        self.requests += 1
        if self.requests in self.faults.before:
            raise Killed

    def _answered(self) -> None:
        if self.requests in self.faults.after:
            raise Killed

    def _carry_out(self, made: Decision) -> None:
        for key, failure in made.fail.items():
            self.entries[key], _ = fail(self.entries[key], failure, closed=False)
        for key, at in made.start.items():
            self.entries[key] = start(self.entries[key], at, self.run.plan.timeout_of(key.plugin))
        for key in made.adopt:
            self._stored(key)
        if self._away():
            self.through = made.through
            return
        self.taken |= set(made.take_logs)
        for name in made.delete:
            self._request()
            self.cluster.delete(name)
            self._answered()
        for name in made.delete_secrets:
            self._request()
            self.secrets.discard(name)
            self._answered()
        self.begun = self.begun or made.begin
        for key in made.create:
            self._create(key)
        self._count()
        self.through, self.stays = made.through, dict(made.stays)

    def _create(self, key: Key) -> None:
        name = entry_name(self.run.name, key)
        self._request()
        order = {plugin.name: plugin.order for plugin in self.run.plan.plugins}
        assert self.begun, "created before that was stored"
        assert all(
            entry.terminal
            for each, entry in self.entries.items()
            if order[each.plugin] < order[key.plugin]
        ), f"{key} was created before its turn"
        answer = self.cluster.create(key)
        self._answered()
        if answer == "AlreadyExists" and name in self.cluster.strangers:
            self.denied[name] = Denial("NameTaken", answer)
        elif answer and answer != "AlreadyExists":
            self.denied[name] = Denial("JobRefused", answer)
        else:
            self._stored(key)

    def _stored(self, key: Key) -> None:
        self.entries[key] = launched(self.entries[key], self.cluster.now)

    def _count(self) -> None:
        """Note how many entries of each plugin are at work."""
        at_work = Counter(
            key.plugin
            for key, entry in self.entries.items()
            if entry.launched_at is not None and not entry.terminal
        )
        for plugin, many in at_work.items():
            self.most_open[plugin] = max(self.most_open.get(plugin, 0), many)


__all__ = ["EVERY", "FOREIGN", "HEALTHY", "OWNER", "SICK", "Cluster", "Faults", "Shell"]
