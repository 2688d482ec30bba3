"""What all parts of one aggregator share, made once from its settings."""

from __future__ import annotations

import resource
import time
from pathlib import Path
from typing import TYPE_CHECKING

from reporter.aggregator.metrics import Metrics
from reporter.aggregator.settings import Settings
from reporter.common import log
from reporter.ledger import Store, Windows
from reporter.ledger.blobs import BlobStore, Step, no_step
from reporter.ledger.layout import Layout
from reporter.results.process import Judge
from reporter.run import heartbeats as beats
from reporter.run.clock import RunClock
from reporter.run.launch_file import Launch
from reporter.run.plan import Plan

if TYPE_CHECKING:
    from reporter.kube.api import KubeApi


_KEPT = 41 * 1024  # bytes that a kept connection holds, TLS included


class Context:
    """The settings of one run, its clock and files, its store, its log and its metrics.

    `launch` is what is to be launched, if anything is, `api` that of the cluster we run in. `now`
    is the run's clock; `clock` is monotonic, and what ages of heartbeats are measured with; `wall`
    gives Unix time. `step` is told each step that is about to be final.
    """

    def __init__(
        self,
        settings: Settings,
        plan: Plan,
        *,
        launch: Launch | None = None,
        api: KubeApi | None = None,
        now: RunClock | None = None,
        step: Step = no_step,
    ) -> None:
        self.settings, self.plan, self.launch, self.api = settings, plan, launch, api
        self.now = now or RunClock(time.monotonic, time.time)
        self.clock, self.wall, self.step = self.now.clock, self.now.wall, step
        self.log = log.get()
        self.metrics = Metrics(self.clock)
        self.layout = Layout(
            Path(settings.state), Path(settings.output), reserve=settings.disk_reserve_bytes
        )
        self.blobs = BlobStore(self.layout, step)
        self.store = Store(
            self.layout.database,
            now=self.now,
            on_commit=self.metrics.observe_commit,
            windows=Windows(settings.retry_window_seconds, settings.retry_window_cap_seconds),
        )
        self.judge = Judge(self.layout.judging)  # the only one: it reads one result at a time
        self.rhythm = beats.rhythm(
            len(plan.keys), settings.heartbeat_interval_seconds, settings.heartbeat_timeout_seconds
        )

    @property
    def connections(self) -> int:
        """How many connections of workers are kept: half as many as there can be files."""
        files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return max(1, min(self.settings.connection_memory_bytes // _KEPT, files // 2))
