"""What is done to the whole cluster: drawn by the seed, one at a time, and recorded."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from signal import SIGTERM
from typing import Any, Self, TypeVar

from tests.bed.api import ApiError
from tests.bed.node import Node
from tests.bed.processes import Program
from tests.blackbox.soak.clock import step_clocks
from tests.blackbox.soak.found import Contradiction
from tests.blackbox.soak.proxy import RETRY_AFTER, Asked, Proxy, Trouble

T = TypeVar("T")

LONGEST = {
    "api kill": 30.0,
    "api term": 20.0,
    "api stop": 60.0,
    "etcd kill": 15.0,
    "etcd stop": 30.0,
    "controllers kill": 40.0,
    "controllers stop": 30.0,
    "kubelet kill": 30.0,
    "kubelet stop": 60.0,
    "rights": 40.0,
    "clock": 60.0,
    "429": 25.0,
    "500": 20.0,
    "403": 20.0,
    "403 pods": 40.0,
    "403 jobs": 30.0,
    "409": 20.0,
    "hang": 30.0,
    "cut": 20.0,
    "slow": 30.0,
    "silent": 30.0,
}
"""The kinds, and for how many seconds each may last."""
TROUBLES = {
    "429": Trouble(429),
    "500": Trouble(500),
    "403": Trouble(403),
    "403 pods": Trouble(403, part="/pods"),
    "403 jobs": Trouble(403, part="/status"),
    "409": Trouble(409, ("PATCH",)),
    "hang": Trouble("hang", ("PATCH",)),
    "cut": Trouble("cut"),
    "slow": Trouble("slow"),
    "silent": Trouble("silent"),
}
PAUSES = (5.0, 40.0)
MOST = 200
"""Requests of one Pod in `WINDOW` seconds, whatever it is answered: more is no back-off."""
WINDOW = 10.0
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/rolebindings"


@dataclass(frozen=True)
class Fault:
    """Something that was done to everybody, from `began` to `ended` (Unix seconds).

    While it lasts its end is infinity.
    """

    kind: str
    began: float
    ended: float


class Faults:
    """The faults of one soak. Whoever asks the API server does it by `asking`."""

    def __init__(self, node: Node, seed: str) -> None:
        self._node, plane = node, node.controlplane
        self.proxy = Proxy(plane.port, plane.pki, seed)
        self._one, self._away = threading.Lock(), threading.RLock()
        self.over = threading.Event()
        self._past: list[Fault] = []
        self._now: Fault | None = None
        kubelet = Program(node.folder, "kubelet")
        etcd, apiserver, controllers = (
            Program(plane.folder, name)
            for name in ("etcd", "kube-apiserver", "kube-controller-manager")
        )
        self._ways: dict[str, Callable[[], AbstractContextManager[None]]] = {
            "api kill": partial(_without, plane.stop_apiserver, plane.start_apiserver),
            "api term": partial(
                _without, partial(plane.stop_apiserver, SIGTERM), plane.start_apiserver
            ),
            "api stop": apiserver.stopped,
            "etcd kill": partial(_without, plane.stop_etcd, plane.start_etcd),
            "etcd stop": etcd.stopped,
            "controllers kill": partial(_without, plane.stop_controllers, plane.start_controllers),
            "controllers stop": controllers.stopped,
            "kubelet kill": partial(_without, node.stop_kubelet, node.start_kubelet),
            "kubelet stop": kubelet.stopped,
            "rights": self._without_rights,
            "clock": self._stepped,
        } | {kind: partial(self.proxy.during, trouble) for kind, trouble in TROUBLES.items()}

    def __enter__(self) -> Self:
        self.proxy.listen()
        self._node.controlplane.send_pods_to(self.proxy.port)
        return self

    def __exit__(self, *_: object) -> None:
        self.proxy.close()

    def asking(self, ask: Callable[[], T]) -> T:
        """Ask the API server while it is not away on purpose."""
        with self._away:
            return ask()

    def cause(self, kind: str, seconds: float) -> None:
        """Have such a fault for so long, once the one before is over; its end cuts all watches."""
        away = kind.startswith(("api", "etcd"))
        with self._one, self._away if away else nullcontext():
            began = time.time()
            self._now = Fault(kind, began, float("inf"))
            with self._ways[kind]():
                self.over.wait(seconds)
            if away:
                self._node.controlplane.wait_ready()
            self.proxy.drop_connections()
            self._past.append(Fault(kind, began, time.time()))
            self._now = None

    def between(self, began: float, ended: float) -> list[Fault]:
        """The faults of which a part was then, oldest first."""
        now = [self._now] if self._now else []
        return [e for e in [*self._past, *now] if e.began <= ended and e.ended >= began]

    def seconds(self, since: float) -> float:
        """Seconds of all of them since then."""
        now = time.time()
        return sum(min(e.ended, now) - max(e.began, since) for e in self.between(since, now))

    @contextmanager
    def _stepped(self) -> Iterator[None]:
        """Have wrong clocks, up to 25 minutes off, and step them back."""
        step_clocks(self._node, round(self.proxy.roll(3000.0)) - 1500)
        try:
            yield
        finally:
            step_clocks(self._node, 0)

    @contextmanager
    def _without_rights(self) -> Iterator[None]:
        """Take the reporters their rights, and give them back."""
        request = self._node.controlplane.request
        taken: dict[str, Any] = {}
        for each in request("GET", BINDINGS)["items"]:
            metadata = each["metadata"]
            if metadata["name"] == "status-reporter":
                place = BINDINGS.replace("/role", f"/namespaces/{metadata['namespace']}/role")
                kept = {key: metadata[key] for key in ("name", "namespace", "labels")}
                taken[place] = each | {"metadata": kept}
                request("DELETE", f"{place}/{metadata['name']}")
        try:
            yield
        finally:
            for place, each in taken.items():
                with suppress(ApiError):  # the namespace has gone meanwhile
                    request("POST", place, each)


class Schedule:
    """Plays one fault after the other, and judges how often the Pods asked meanwhile."""

    at_once = 1

    def __init__(self, faults: Faults, seed: str) -> None:
        self._faults, self._seed = faults, seed
        self.counts: Counter[str] = Counter()

    def stop(self) -> None:
        """End the fault or the pause."""
        self._faults.over.set()

    def play(self, number: int) -> None:
        """Wait, have a fault, and look at what was asked for."""
        turn, place = divmod(number, len(LONGEST))
        rng = random.Random(f"{self._seed}/fault/{turn}")
        # Each kind once before any comes again.
        kind = rng.sample(list(LONGEST), len(LONGEST))[place]
        rng = random.Random(f"{self._seed}/fault/{number}")
        seconds = rng.uniform(1.0, LONGEST[kind])
        self._faults.over.wait(rng.uniform(*PAUSES))
        began = time.time()
        self._faults.cause(kind, seconds)
        self.counts[f"fault {kind}"] += 1
        try:
            judge_pace(self._faults.proxy.asked(began))
        except Contradiction as error:
            raise Contradiction(f"{error}\nduring {self._faults.between(began, began)}") from None


def judge_pace(asked: list[Asked]) -> None:
    """Refuse a Pod that asks without a pause, or again and again before a server's Retry-After."""
    by_pod: dict[str, list[Asked]] = defaultdict(list)
    early: dict[tuple[str, str, str], list[Asked]] = defaultdict(list)
    refused: dict[tuple[str, str, str], float] = {}
    for each in sorted(asked, key=lambda one: one.at):
        recent = by_pod[each.client]
        recent.append(each)
        if len(recent) > MOST and each.at - recent[-MOST - 1].at < WINDOW:
            raise Contradiction(f"a Pod asks without a pause\n{_told(recent[-MOST:])}")
        what = (each.client, each.method, each.path)
        if each.at < refused.get(what, -RETRY_AFTER) + RETRY_AFTER - 0.1:
            early[what].append(each)
        # By a reporter that was started again, at SIGTERM, and for the hand-over before the kill.
        if len(early[what]) > 3 and each.path.endswith("/status"):
            raise Contradiction(f"Retry-After is not heeded\n{_told(early[what])}")
        if each.status == 429:
            refused[what] = each.at


def _told(asked: list[Asked]) -> str:
    return "\n".join(f"{e.at:.3f} {e.client} {e.method} {e.path} {e.status}" for e in asked)


@contextmanager
def _without(stop: Callable[[], None], start: Callable[[], None]) -> Iterator[None]:
    stop()
    try:
        yield
    finally:
        start()
