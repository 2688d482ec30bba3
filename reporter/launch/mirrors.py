"""What the API server shows of the run: its Jobs, their Pods, and why some are refused."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from reporter.kube.api import KubeApi
from reporter.launch.mirror import Kind, Mirror
from reporter.launch.seen import Refusal, SeenJob, SeenPod, read_event, read_job, read_pod
from reporter.run.names import selector
from reporter.run.spec import Launch

_FRESH = 5.0  # seconds since a mirror has heard anything in which nobody is failed by it


class Mirrors:
    """One mirror of each kind. `changed` is called from their threads, `now` is the run's time."""

    def __init__(
        self,
        api: KubeApi,
        namespace: str,
        run: str,
        launch: Launch,
        changed: Callable[[], object],
        *,
        now: Callable[[], float],
        rng: Callable[[], float] = random.random,
    ) -> None:
        labelled = selector(run)
        refused = {"reason": "FailedCreate", "involvedObject.kind": "Job"}

        def tell() -> None:
            with suppress(RuntimeError):  # the threads may outlive the loop
                changed()

        def mirror(kind: Kind, read: Callable[[Mapping[str, Any]], Any]) -> Mirror[Any]:
            return Mirror(api, kind, read, tell, now=now, rng=rng)

        self.jobs: Mirror[SeenJob] = mirror(Kind("Job", namespace, labelled), read_job)
        self.pods: Mirror[SeenPod] = mirror(
            Kind("Pod", namespace, labelled), lambda pod: read_pod(pod, launch)
        )
        self.events: Mirror[Refusal] = mirror(
            Kind("Event", namespace, fields=refused, bookmarks=False), read_event
        )
        # Without the Events only words are missing.
        self._needed: tuple[Mirror[Any], ...] = (self.jobs, self.pods)

    def __iter__(self) -> Iterator[Mirror[Any]]:
        return iter((*self._needed, self.events))

    @property
    def listed(self) -> bool:
        """Whether it was ever known which Jobs and Pods there are."""
        return all(each.listed for each in self._needed)

    @property
    def unseen_since(self) -> float | None:
        """Since when that is not seen; nothing while it is."""
        return min((each.lost.since for each in self._needed if each.lost), default=None)

    def launched(self) -> dict[str, SeenJob]:
        """Return the Jobs that there are, by name."""
        return {each.name: each for each in self.jobs.seen().values()}

    def old(self, now: float) -> list[Mirror[Any]]:
        """Return those that may show the past: a dead connection is told from silence only late.

        Ask before looking at what they show: they may hear news at any moment. `now` is monotonic.
        """
        return [mirror for mirror in self._needed if now >= mirror.heard_at + _FRESH]
