"""Removing a run: what is told while something takes its time to go."""

from collections.abc import Iterator
from typing import Any

import pytest

from reporter.ctl.launch.remove import Removal, Times
from reporter.errors import Forbidden, NotFound

LABELS = {"status-reporter.io/run": "first"}


class World:
    """A cluster with one Pod of the run on a node, which goes `takes` seconds after the start."""

    def __init__(self, takes: float) -> None:
        self._takes, self.now = takes, 0.0
        self.times = Times(lambda: self.now, self._sleep)

    def _sleep(self, seconds: float) -> None:
        self.now += seconds

    def get(self, kind: str, *_: Any, **__: Any) -> Any:
        raise NotFound(f"no such {kind}")

    def list_all(self, kind: str, *_: Any, **__: Any) -> Iterator[Any]:
        if kind == "Pod" and self.now < self._takes:
            stamp = "2030-01-01T12:00:00Z"
            meta = {"name": "first-x", "uid": "u", "labels": LABELS, "deletionTimestamp": stamp}
            yield {"metadata": meta, "spec": {"nodeName": "node1"}}

    def delete(self, *_: Any, **__: Any) -> None:
        raise AssertionError("it is being deleted already")


@pytest.mark.parametrize(
    ("takes", "told"),
    [(9.0, []), (60.0, ["waiting: pod/first-x: is being deleted; its node is node1"])],
)
def test_what_is_waited_for_is_told_once(takes: float, told: list[str]) -> None:
    world, said = World(takes), list[str]()
    removal = Removal(world, "default", "first", tell=said.append, times=world.times)

    assert [] == removal.aggregator() + removal.rest()
    assert told == said
    assert takes <= world.now < takes + 2


def test_what_could_not_be_seen_once_is_no_longer_said_once_it_could() -> None:
    """As while an API server starts, or its roles change."""

    class Passing(World):
        def list_all(self, kind: str, *_: Any, **__: Any) -> Iterator[Any]:
            if kind in {"Secret", "ClusterRole"} and self.now < self._takes:
                raise Forbidden("not yet")
            return super().list_all(kind)

        def get(self, kind: str, *_: Any, **__: Any) -> Any:
            said = {"status-reporter.io/elsewhere": "*"}
            return {"metadata": {"annotations": said}, "data": {}} if kind == "ConfigMap" else {}

    world = Passing(5.0)
    removal = Removal(world, "default", "first", tell=print, times=world.times)

    assert [] == removal.rest()


class Leaving(World):
    """A plugin's Pod whose worker waits out the grace period; something else deletes it as well."""

    def __init__(self, own: str, *, deleted: bool) -> None:
        super().__init__(60.0)
        self.asked, self.period = list[int | None](), 60 if deleted else None
        self._own = own

    def list_all(self, kind: str, *_: Any, **__: Any) -> Iterator[Any]:
        for each in super().list_all(kind):
            metadata = each["metadata"]
            metadata["annotations"] = {"status-reporter.io/own-grace-period-seconds": self._own}
            if self.period is None:
                del metadata["deletionTimestamp"]
            metadata["deletionGracePeriodSeconds"] = self.period
            yield each

    def delete(self, *_: Any, grace: int | None = None, **__: Any) -> None:
        self.asked.append(grace)
        self.period = 60 if grace is None else grace
        self._takes = self.now + self.period


@pytest.mark.parametrize("deleted", [False, True])
@pytest.mark.parametrize(("own", "grace"), [("5", 5), ("90", 90)])
def test_a_pod_has_its_own_grace_period_and_not_what_ours_was_given_for_an_upload(
    own: str, grace: int, deleted: bool
) -> None:
    """Nobody takes a result any more, and the garbage collector knows only the longer period."""
    world = Leaving(own, deleted=deleted)
    removal = Removal(world, "default", "first", tell=print, times=world.times)
    longer = deleted and grace > 60

    assert [] == removal.rest()
    assert ([] if longer else [grace]) == world.asked
    assert (60 if longer else grace) <= world.now < grace + 2


@pytest.mark.parametrize("own", ["", "0", "-1", "soon", "1e9", "9" * 30])
def test_a_grace_period_that_somebody_has_made_up_is_ignored(own: str) -> None:
    """Never 0: that would take the object away and leave the containers."""
    world = Leaving(own, deleted=False)

    assert [] == Removal(world, "default", "first", tell=print, times=world.times).rest()
    assert [None] == world.asked
