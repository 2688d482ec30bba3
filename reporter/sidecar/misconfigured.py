"""Settings that do not fit: say so on the Job, and end in a way that does not fail it.

A native sidecar that ends is always restarted, and under `restartPolicy: OnFailure` the Job
controller counts every restart of a container, ours too, against the Job's back-off limit.
"""

import random
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from itertools import chain, repeat
from typing import TypeVar

from reporter import __version__
from reporter.common import log
from reporter.common.endpoint import Site, opened
from reporter.common.lifecycle import Stop
from reporter.common.retry import next_delay
from reporter.errors import KubeError, ReporterError
from reporter.kube.api import KubeApi
from reporter.sidecar import settings
from reporter.sidecar.ending import BAD_SETTINGS, GOOD
from reporter.sidecar.job import JobCondition
from reporter.sidecar.metrics import Metrics
from reporter.sidecar.pace import REQUEST_TIMEOUT
from reporter.sidecar.publish import SLOW_WRITES
from reporter.sidecar.telemetry import Telemetry
from reporter.verdict import rows
from reporter.verdict.condition import Attempt, Statement, worth_writing
from reporter.verdict.facts import Form, Pod
from reporter.verdict.pod import Names, read_pod

BUDGET = 10.0  # seconds for each request where the end of the Pod may wait for ours
LONGEST_PAUSE = 60.0  # seconds between two tries
T = TypeVar("T")


Connect = Callable[..., KubeApi]
"""How the API server is found; called with `relax_x509_strict`. Raises SettingsError."""


class Misconfigured:
    """A reporter that can only say what is wrong with its settings."""

    case = None

    def __init__(
        self, problems: list[str], environ: Mapping[str, str], stop: Stop, connect: Connect
    ) -> None:
        self._problems, self._stop, self._connect = problems, stop, connect
        self._settings = settings.salvage(environ)
        self._pod_name = self._settings.pod_name or environ.get("HOSTNAME") or "unknown"
        self._metrics = Metrics(__version__, log.dropped)
        self._telemetry = Telemetry(self._metrics)

    def run(self) -> int:
        """Write `Unknown/ReporterConfigError`; in the native form stay until SIGTERM."""
        known, pod = self._settings, None
        form = None if known.reporter_form == "auto" else Form(known.reporter_form)
        with ExitStack() as release:
            if known.metrics_port:
                site = Site(
                    self._metrics.render,
                    alive=lambda: True,
                    checks=lambda: {"settings": "invalid: see the log"},
                )
                if endpoint := opened(known.metrics_address, known.metrics_port, site):
                    release.callback(endpoint.close)
            try:
                api = self._connect(relax_x509_strict=known.kubernetes_relax_x509_strict)
            except ReporterError:
                pass  # outside of a cluster: the log has said it all
            else:
                release.callback(api.close)
                pod = self._look(api, form)
                form = pod.form if pod else form
                self._report(api, pod, native=form is Form.NATIVE)
            if form is Form.NATIVE:
                self._stop.wait()
                return GOOD
        return BAD_SETTINGS if pod and not pod.own_restart.can_restart else GOOD

    def _look(self, api: KubeApi, form: Form | None) -> Pod | None:
        known = self._settings
        if not known.job_namespace:
            return None
        names = Names(reporter=known.reporter_container_name, form=form)
        return self._tried(
            "getPod",
            lambda: read_pod(api.get("Pod", known.job_namespace, self._pod_name), names),
            BUDGET,
        )

    def _report(self, api: KubeApi, pod: Pod | None, *, native: bool) -> None:
        known = self._settings
        if not (known.job_name and known.job_namespace and known.report_condition):
            return
        condition = JobCondition(api, known.job_namespace, known.job_name, known.condition_type)
        condition.expect(pod.job_uid if pod else "")
        wall = time.time()
        attempt = Attempt(
            pod=self._pod_name,
            pod_uid=pod.uid if pod else "",
            created_at=pod.created_at if pod else None,
            waiting_since_at=wall,
            index=pod.index if pod else None,
        )

        patience = chain((REQUEST_TIMEOUT, *SLOW_WRITES), repeat(SLOW_WRITES[-1]))

        def write() -> None:
            began, standing = time.monotonic(), condition.read()
            report = rows.misfit("; ".join(self._problems))
            report = rows.of_index(report, attempt.index, completions=standing.job.completions)
            statement = Statement(report, native, attempt, evidence={}, wall=wall)
            if worth_writing(standing, statement.attempt, statement.report, final=native):
                condition.write(statement, timeout=next(patience))
                self._telemetry.published(statement, time.monotonic() - began)

        self._tried("job", write, float("inf") if native else BUDGET)

    def _tried(self, what: str, ask: Callable[[], T], budget: float) -> T | None:
        """Return the answer; None where none has come in so many seconds, or soon after SIGTERM."""
        end, tries = time.monotonic() + budget, 0
        while True:
            last, tries = self._stop.requested, tries + 1
            try:
                return ask()
            except KubeError as error:
                self._telemetry.failed(what, error)
                pause = next_delay(
                    tries,
                    random.random,
                    retry_after=error.retry_after,
                    remaining=end - time.monotonic(),
                    longest=LONGEST_PAUSE,
                )
            if last or pause is None:
                return None
            self._stop.wait(pause)
