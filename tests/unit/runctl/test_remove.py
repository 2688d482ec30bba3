"""Removing a run: what is told while something takes its time to go."""

from collections.abc import Iterator
from typing import Any, cast

import pytest

from reporter.errors import Forbidden, NotFound
from reporter.runctl.follow import Deadline
from reporter.runctl.remove import Removal

LABELS = {"status-reporter.io/run": "first"}


class World:
    """A cluster with one Pod of the run on a node, which goes `takes` seconds after the start."""

    def __init__(self, takes: float) -> None:
        self._takes, self.now = takes, 0.0

    def removal(self) -> Removal:
        deadline = Deadline(120.0, lambda: self.now, self._sleep)
        return Removal(cast("Any", self), "default", "first", deadline)

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
    [(9.0, []), (60.0, ["status-ctl: waiting: pod/first-x: is being deleted; its node is node1"])],
)
def test_what_is_waited_for_is_told_once(
    takes: float, told: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    world = World(takes)
    removal = world.removal()

    assert [] == removal.aggregator() + removal.rest()
    assert told == capsys.readouterr().err.splitlines()
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

    assert [] == Passing(5.0).removal().rest()


class Leaving(World):
    """A Job and its Pod, whose worker waits out the grace period that it was given first."""

    def __init__(self, own: str) -> None:
        super().__init__(0.0)
        self.deleted = list[tuple[str, int | None]]()
        self._metadata: dict[str, Any] = {
            "name": "first-x",
            "uid": "u",
            "labels": LABELS,
            "annotations": {"status-reporter.io/own-grace-period-seconds": own},
        }

    def list_all(self, kind: str, *_: Any, **__: Any) -> Iterator[Any]:
        if kind == "Job" and not self.deleted:
            yield {"metadata": {"name": "first", "uid": "j", "labels": LABELS}}
        if kind == "Pod" and (not self.deleted or self.now < self._takes):
            yield {"metadata": dict(self._metadata)}

    def delete(self, kind: str, *_: Any, grace: int | None = None, **__: Any) -> None:
        self.deleted.append((kind, grace))
        if "deletionTimestamp" not in self._metadata:
            # With the Job the garbage collector deletes its Pod, and asks for nothing special.
            self._metadata["deletionTimestamp"] = "2030-01-01T12:00:00Z"
            self._takes = self.now + (60 if grace is None else grace)


def test_a_pod_has_its_own_grace_period_and_not_what_ours_was_given_for_an_upload() -> None:
    """Nobody takes a result any more; with its Job it would have the longer one."""
    world = Leaving("5")

    assert [] == world.removal().rest()
    assert [("Pod", 5), ("Job", None)] == world.deleted
    assert 5 <= world.now < 7


def test_an_aggregator_that_is_only_just_starting_does_not_use_up_its_grace_period() -> None:
    """It has no signal handler yet, and what it could store is deleted with it."""
    world = Leaving("")

    assert [] == world.removal().aggregator()
    assert [("Pod", 5), ("Job", None)] == world.deleted
    assert 5 <= world.now < 7


@pytest.mark.parametrize("own", ["", "0", "-1", "soon", "1e9", "9" * 30])
def test_a_grace_period_that_somebody_has_made_up_is_ignored(own: str) -> None:
    """Never 0: that would take the object away and leave the containers."""
    world = Leaving(own)

    assert [] == world.removal().rest()
    assert {("Pod", None), ("Job", None)} == set(world.deleted)
