"""What the API server shows of the run: what was launched, its Pods, and why some are refused."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from reporter.aggregator.launch.mirror import Kind, Mirror
from reporter.core.launch.names import Maker, selector
from reporter.core.launch.seen import (
    Refusal,
    SeenJob,
    SeenPod,
    read_daemon_set,
    read_event,
    read_job,
    read_pod,
)
from reporter.core.launch.spec import Launch
from reporter.kube.objects import Objects

_FRESH = 5.0  # seconds since a mirror has heard anything in which nobody is failed by it


class Mirrors:
    """One mirror of each kind. `changed` is called from their threads, `now` is the run's time."""

    def __init__(
        self,
        api: Objects,
        namespace: str,
        run: str,
        launch: Launch,
        changed: Callable[[], object],
        *,
        now: Callable[[], float],
        rng: Callable[[], float] = random.random,
    ) -> None:
        labelled = selector(run)
        refused = {"reason": "FailedCreate"}
        if not launch.daemon_sets:  # the server cannot be asked for one of two
            refused["involvedObject.kind"] = "Job"

        def tell() -> None:
            with suppress(RuntimeError):  # the threads may outlive the loop
                changed()

        def mirror(kind: Kind, read: Callable[[Mapping[str, Any]], Any]) -> Mirror[Any]:
            return Mirror(api, kind, read, tell, now=now, rng=rng)

        self.jobs: Mirror[SeenJob] = mirror(Kind("Job", namespace, labelled), read_job)
        self.pods: Mirror[SeenPod] = mirror(
            Kind("Pod", namespace, labelled), lambda pod: read_pod(pod, launch)
        )
        self.sets: Mirror[SeenJob] | None = None
        if launch.daemon_sets:
            self.sets = mirror(Kind("DaemonSet", namespace, labelled), read_daemon_set)
        self.events: Mirror[Refusal] = mirror(
            Kind("Event", namespace, fields=refused, bookmarks=False), read_event
        )

    def __iter__(self) -> Iterator[Mirror[Any]]:
        return iter((*self._needed, self.events))

    @property
    def _needed(self) -> tuple[Mirror[Any], ...]:
        """All but the Events, without which only words are missing."""
        return tuple(filter(None, (self.jobs, self.sets, self.pods)))

    @property
    def listed(self) -> bool:
        """Whether it was ever known what was launched and which Pods there are."""
        return all(each.listed for each in self._needed)

    @property
    def unseen_since(self) -> float | None:
        """Since when that is not seen; nothing while it is."""
        return min((each.lost.since for each in self._needed if each.lost), default=None)

    def launched(self) -> dict[Maker, SeenJob]:
        """Return the Jobs and DaemonSets that there are."""
        sets = {} if self.sets is None else self.sets.seen()
        found = (*self.jobs.seen().values(), *sets.values())
        return {Maker(each.kind, each.name): each for each in found}

    def old(self, now: float) -> list[Mirror[Any]]:
        """Return those that may show the past: a dead connection is told from silence only late.

        Ask before looking at what they show: they may hear news at any moment. `now` is monotonic.
        """
        return [mirror for mirror in self._needed if now >= mirror.heard_at + _FRESH]
