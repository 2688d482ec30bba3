"""A run in a fake cluster: its launcher over a real store, and what its plugins do."""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from reporter.aggregator.certificates.run import Authority
from reporter.kube.api import KubeApi
from reporter.launch.launcher import Launcher
from reporter.launch.logs import Logs
from reporter.ledger import Store
from reporter.run.clock import RunClock
from reporter.run.definition import Definition
from reporter.run.entry import Entry
from reporter.run.launch_file import Launch
from reporter.run.names import key_of
from reporter.run.plan import GLOBAL, Key, Plan, Plugin
from reporter.run.record import Rank, Record
from reporter.runctl.objects import objects
from reporter.runctl.spec import RunSpec
from tests.fakekube import FakeKube, Rule
from tests.integration.launch.cluster import Cluster
from tests.kube_client import connect

T = TypeVar("T")

RUN, NAMESPACE = "r1", "default"
CHECK = Key("check", GLOBAL)
NODES = ("node1", "node2")
DISKS = tuple(Key("disk", node) for node in NODES)
HANG = 60.0  # seconds; only a bound


def on_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run an async test on a loop of its own."""

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        asyncio.run(asyncio.wait_for(test(*args, **kwargs), HANG))

    return run


def definition(name: str, contract: str = "done-file", **fields: Any) -> Definition:
    """What to start for a plugin."""
    mount = {"name": "results", "mountPath": "/tmp/sonobuoy/results"}
    container = {"name": "main", "image": "example/plugin:1", "volumeMounts": [mount]}
    template = {"spec": {"containers": [container]}}
    driver = fields.pop("driver", "Job")
    return Definition(name, driver, contract, template, **fields)


def plan_of(*plugins: Plugin) -> Plan:
    return Plan(RUN, plugins or (Plugin("check"), Plugin("disk", NODES, order=1)), 600)


def launch_of(plan: Plan, *definitions: Definition, **fields: Any) -> Launch:
    given = {each.name: each for each in definitions}
    made = tuple(
        given.get(plugin.name)
        or definition(plugin.name, driver="Node" if plugin.nodes else "Job", order=plugin.order)
        for plugin in plan.plugins
    )
    return Launch("ours:1", f"{RUN}-plugin", made, **fields)


@dataclass
class World:
    """One run. `passes` says whether a plugin's result comes as soon as its Pod is there.

    The wall clock was set back by `set_back` seconds when the run had begun.
    """

    fake: FakeKube
    folder: Path
    plan: Plan = field(default_factory=plan_of)
    launch: Launch | None = None
    passes: Callable[[Key], bool] = lambda key: True
    api: Any = None
    uploading: set[Key] = field(default_factory=set)
    closed: set[Key] = field(default_factory=set)
    refused: int = 0
    set_back: float = 0.0
    store: Store = field(init=False)
    authority: Authority = field(init=False)
    launcher: Launcher = field(init=False)
    cluster: Cluster = field(init=False)
    task: asyncio.Task[None] = field(init=False)

    def __post_init__(self) -> None:
        self.launch = self.launch or launch_of(self.plan)
        self.cluster = Cluster(self.fake)

    @contextmanager
    def prepared(self) -> Iterator[None]:
        """The cluster with the run's ConfigMap in it."""
        assert self.launch is not None
        options = RunSpec(namespace=NAMESPACE, plan=self.plan, launch=self.launch)
        # What the run's Role gives its aggregator, and nothing more.
        self.fake.tokens.roles["launcher"] = tuple(
            Rule(
                tuple(rule["verbs"]),
                tuple(rule["resources"]),
                tuple(rule.get("resourceNames", ())),
                tuple(rule["apiGroups"]),
            )
            for role in objects(options)
            if ("Role", f"{RUN}-aggregator") == (role["kind"], role["metadata"]["name"])
            for rule in role["rules"]
        )
        self.fake.write_token(self.fake.token("launcher"))
        self.fake.store.create("ConfigMap", {"metadata": {"name": RUN}})
        with self.cluster:
            yield

    @asynccontextmanager
    async def begun(self) -> AsyncIterator[None]:
        """The store is open and the launcher at work; in the end it is as after a kill."""
        loop = asyncio.get_running_loop()
        now = RunClock(time.monotonic, lambda: time.time() - self.set_back)
        self.store = Store(self.folder / "run.db", now=now)
        await self.store.open_run(self.plan, now=time.time())
        self.authority = Authority.open(
            self.folder / "tls",
            self.plan,
            ["r1"],
            now=time.time(),
            seconds=3600,
            hand_out=None,
        )
        real = connect(self.fake)
        assert self.launch is not None
        self.launcher = Launcher(
            self.api(real) if self.api else real,
            self.store,
            self.plan,
            self.launch,
            namespace=NAMESPACE,
            url="https://r1.default.svc:8080",
            ca=self.authority.ca,
            client=functools.partial(self.authority.client, RUN),
            forget_key=self.authority.forget_key,
            uploading=lambda: self.uploading,
            close=self.close,
            logs=self.logs(real),
            now=now,
        )
        self.cluster.begun = lambda key: loop.call_soon_threadsafe(self._began, key) and None
        self.task = asyncio.create_task(self.launcher.run())
        # What came in while nobody was here is tried again by its worker.
        for pod in self.fake.store.find("Pod", NAMESPACE):
            key = key_of(pod)
            assert key is not None
            self._began(key)
        try:
            yield
        finally:
            self.cluster.begun = lambda key: None
            self.task.cancel()
            await asyncio.wait((self.task,))
            await self.store.close()
            real.close()

    def logs(self, api: KubeApi) -> Logs:
        """What takes logs to `podlogs`."""
        (self.folder / "staging").mkdir(exist_ok=True)
        podlogs, staging = self.folder / "podlogs", self.folder / "staging"
        return Logs(api, NAMESPACE, podlogs, staging, check_room=lambda size: None)

    def _began(self, key: Key) -> None:
        if self.passes(key):
            self._uploading = asyncio.create_task(self.upload(key))

    def close(self, key: Key) -> bool:
        """Whether it has no upload; then none is taken any more."""
        if key in self.uploading:
            self.refused += 1
            return False
        self.closed.add(key)
        return True

    async def upload(self, key: Key, verdict: str = "passed") -> None:
        """A worker's result is in."""
        record = Record(Rank.RESULT, time.time(), digest=str(hash(key)), size=1, verdict=verdict)
        await self.store.record_result(key, record)

    async def until(self, predicate: Callable[[], T]) -> T:
        """Return the first true value; what is asked belongs to threads and to the loop."""
        while not (found := predicate()):
            if self.task.done():
                self.task.result()
                found = predicate()
                assert found, "the launcher has ended"
                return found
            await asyncio.sleep(0.01)
        return found

    def entry(self, key: Key) -> Entry:
        return self.store.entry(key)

    def made(self, kind: str) -> list[str]:
        """The names of all objects of that kind that were ever created, in order."""
        return [
            found["metadata"]["name"]
            for _, event, found in self.fake.store.events
            if event == "ADDED" and found["kind"] == kind
        ]

    def names(self, kind: str) -> list[str]:
        """The names of the objects of that kind that there are."""
        return [each["metadata"]["name"] for each in self.fake.store.find(kind, NAMESPACE)]
