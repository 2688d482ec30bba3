"""Keeping the status annotations on the aggregator's own Pod up to date.

When they are written, and what happens when they cannot be; what they say is `run`'s. The run
never waits for this and is never harmed by it: whatever goes wrong is counted, logged now and then,
and tried again.
"""

import asyncio
import random
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING

from reporter.aggregator.context import Context
from reporter.common.retry import next_delay
from reporter.errors import InvalidRequest, NoAggregatorPod, NotFound
from reporter.run.annotation import BUDGET, RUN_ANNOTATION, STATUS_ANNOTATION, annotations
from reporter.run.state import Snapshot, run_status
from reporter.runctl.run_status import DEFAULT_POD, find_aggregator

if TYPE_CHECKING:
    from reporter.kube.api import KubeApi

LOOK = 0.5  # seconds between looks at the run
GAP = 5.0  # seconds between writes: soon enough for people, and each is a write to etcd
JITTER = 1.0
REPAIR = 300.0  # what is unchanged is written again: somebody may have damaged it
LONGEST_BACK_OFF = 60.0
QUIET = 300.0  # seconds between log lines about failures
SHARES = (1, 2, 4, 16)
"""Parts of its budget that the status annotation is cut to when the API server refuses it, in this
order: the Pod may carry other annotations too."""


class Cadence:
    """When the next write is due. Times are monotonic seconds.

    A run's status that no write has tried to show yet: at once. Other news: 5 to 6 s after the last
    write. No news: every 5 minutes. After a failure: 5 to 60 s later.
    """

    def __init__(self, rng: Callable[[], float]) -> None:
        self._rng = rng
        self._tried: Hashable = None
        self.written_revision: int | None = None
        self._not_before = self._repair_at = 0.0
        self.failures = 0

    def due(self, revision: int, status: Hashable, now: float) -> float:
        """Return when this revision of the run, with this status, is to be written."""
        if self._tried != status:
            return now
        if self.failures or self.written_revision != revision:
            return self._not_before
        return self._repair_at

    def written(self, revision: int, status: Hashable, now: float) -> None:
        """Take note of a success."""
        self._tried, self.written_revision, self.failures = status, revision, 0
        self._not_before = now + GAP + JITTER * self._rng()
        self._repair_at = now + REPAIR

    def failed(self, status: Hashable, now: float, retry_after: float | None = None) -> None:
        """Take note of a failure; `retry_after` is what the server asked for."""
        self._tried = status
        self.failures += 1
        delay = next_delay(
            self.failures,
            self._rng,
            retry_after=retry_after,
            first=2 * GAP,
            longest=LONGEST_BACK_OFF,
        )
        self._not_before = now + max(GAP, delay or 0.0)


class Annotator:
    """Writes a run's annotations to the aggregator's own Pod, until `run` is cancelled.

    Without a POD_NAME the Pod is found by its labels.
    """

    def __init__(
        self, context: Context, api: "KubeApi", rng: Callable[[], float] = random.random
    ) -> None:
        self._context, self._api = context, api
        self._clock = context.clock
        self._namespace = context.settings.pod_namespace
        self._own_name = self._name = context.settings.pod_name
        self._cadence = Cadence(rng)
        self._smaller, self._smaller_until = 0, 0.0
        self._said, self._log_again = False, 0.0

    async def run(self) -> None:
        """Look again and again and write what is due. Only a cancellation ends it."""
        while True:
            await self.step()
            # Changes come by the thousand a second; each look builds a snapshot.
            await asyncio.sleep(LOOK)

    def shows(self, revision: int) -> bool:
        """Whether the annotations have been written as of this revision."""
        return self._cadence.written_revision == revision

    async def step(self) -> None:
        """Look once."""
        snapshot, now = self._context.store.snapshot(), self._clock()
        revision, status = snapshot.revision, (run_status(snapshot), snapshot.phase)
        if now < self._cadence.due(revision, status, now):
            return
        # Making 192 KiB of JSON would hold up the event loop, too.
        done, errors = await asyncio.to_thread(self._write, snapshot)
        now = self._clock()
        self._context.metrics.count("annotation_failures", len(errors))
        if done:
            if self._said:
                self._context.log.info(
                    "The status annotation can be written again", failures=self._cadence.failures
                )
            self._said = False
            self._cadence.written(revision, status, now)
            return
        self._cadence.failed(status, now, getattr(errors[-1], "retry_after", None))
        if now >= self._log_again:
            self._said, self._log_again = True, now + QUIET
            self._context.log.warning(
                "The status annotation could not be written",
                pod=self._name,
                error=errors[-1],
                failures=self._cadence.failures,
            )

    def _write(self, snapshot: Snapshot) -> tuple[bool, list[Exception]]:
        """Say whether it is written, and what went wrong on the way."""
        errors: list[Exception] = []
        try:
            self._name = self._name or self._find()
            return self._patch(snapshot, self._name, errors), errors
        except NotFound as error:
            self._name = self._own_name  # found by its labels it may be another one by now
            errors.append(error)
        # Whatever it is, the run goes on.
        except Exception as error:
            errors.append(error)
        return False, errors

    def _find(self) -> str:
        try:
            pod, _ = find_aggregator(self._api, self._namespace)
        except NoAggregatorPod:
            return DEFAULT_POD
        return str(pod["metadata"]["name"])

    def _patch(self, snapshot: Snapshot, name: str, errors: list[Exception]) -> bool:
        """Try smaller and smaller values; after a while the largest may be welcome again."""
        if self._clock() >= self._smaller_until:
            self._smaller = 0
        before = None
        for tier in range(self._smaller, len(SHARES)):
            budget = BUDGET // SHARES[tier]
            values = annotations(
                snapshot, strict=self._context.settings.status_values == "strict", budget=budget
            )
            if values == before:
                continue
            before = values
            written = {STATUS_ANNOTATION: values.status, RUN_ANNOTATION: values.run}
            patch = {"metadata": {"annotations": written}}
            try:
                self._api.patch("Pod", self._namespace, name, patch, merge="json")
            except InvalidRequest as error:
                errors.append(error)
                continue
            if tier > self._smaller:
                self._smaller, self._smaller_until = tier, self._clock() + REPAIR
            return True
        return False
