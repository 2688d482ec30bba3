"""What the API server shows of the run: its Jobs, its Pods, and why it takes no more of them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from reporter.aggregator.launch.mirror import Kind, Mirror, WatchApi
from reporter.core.launch.names import selector
from reporter.core.launch.seen import Refusal, SeenJob, SeenPod, read_event, read_job, read_pod
from reporter.core.launch.spec import Launch

_FRESH = 5.0  # seconds since a mirror has heard anything in which nobody is failed by it


class Mirrors:
    """One mirror of each kind. `changed` is called from their threads, `wall` is Unix time."""

    def __init__(
        self,
        api: WatchApi,
        namespace: str,
        run: str,
        launch: Launch,
        changed: Callable[[], object],
        *,
        wall: Callable[[], float],
        rng: Callable[[], float] = random.random,
    ) -> None:
        labelled = selector(run)
        refused = {"involvedObject.kind": "Job", "reason": "FailedCreate"}

        def tell() -> None:
            with suppress(RuntimeError):  # the threads may outlive the loop
                changed()

        def mirror(kind: Kind, read: Callable[[Mapping[str, Any]], Any]) -> Mirror[Any]:
            return Mirror(api, kind, read, tell, wall=wall, rng=rng)

        self.jobs: Mirror[SeenJob] = mirror(Kind("Job", namespace, labelled), read_job)
        self.pods: Mirror[SeenPod] = mirror(
            Kind("Pod", namespace, labelled), lambda pod: read_pod(pod, launch)
        )
        self.events: Mirror[Refusal] = mirror(
            Kind("Event", namespace, fields=refused, bookmarks=False), read_event
        )

    def __iter__(self) -> Iterator[Mirror[Any]]:
        return iter((self.jobs, self.pods, self.events))

    @property
    def listed(self) -> bool:
        """Whether it was ever known which Jobs and Pods there are."""
        return self.jobs.listed and self.pods.listed

    @property
    def unseen_since(self) -> float | None:
        """Since when Jobs or Pods are not seen (Unix seconds); nothing while they are."""
        return min((each.lost.since for each in (self.jobs, self.pods) if each.lost), default=None)

    def refreshed(self, now: float) -> bool:
        """Have read anew what may be the past: a dead connection is told from silence only late.

        `now` is monotonic.
        """
        old = [mirror for mirror in (self.jobs, self.pods) if now >= mirror.heard_at + _FRESH]
        for mirror in old:
            mirror.refresh()
        return bool(old)
