"""Settings that do not fit: say so on the Job, as far as the Job can be named. Best effort.

Whether or not the adapter starts, which in the native form depends on how long the kubelet sees us
run, nobody else would say why there is no verdict.
"""

import time
from collections.abc import Mapping
from typing import Protocol

from reporter.core import rows
from reporter.core.condition import Attempt, Statement, worth_writing
from reporter.core.retry import next_delay
from reporter.errors import Gone, KubeError, NotFound, ReporterError
from reporter.kube.api import KubeApi
from reporter.runtime import log
from reporter.runtime.lifecycle import Stop
from reporter.settings import sidecar as settings
from reporter.sinks.job import JobCondition

BUDGET = 10.0  # seconds; the container is restarted, so this is tried again


class Connect(Protocol):
    """How the API server is found."""

    def __call__(self, *, relax_x509_strict: bool) -> KubeApi:
        """Return its API. Raises SettingsError where there is none."""


def report_problems(
    problems: list[str], environ: Mapping[str, str], stop: Stop, connect: Connect
) -> None:
    """Write `Unknown/ReporterConfigError` with the problems, if the Job can be named."""
    named = settings.named_job(environ)
    if named is None:
        return
    try:
        api = connect(relax_x509_strict=named.relax_x509_strict)
    except ReporterError:
        return  # outside of a cluster: the log has said it all
    sink = JobCondition(api, named.namespace, named.job, named.condition_type)
    wall = time.time()
    pod = named.pod or environ.get("HOSTNAME") or "unknown"
    statement = Statement(
        report=rows.misfit("; ".join(problems)),
        final=False,
        attempt=Attempt(pod=pod, pod_uid="", created_at=None, waiting_since_at=wall),
        evidence={},
        wall=wall,
    )
    end, attempt = time.monotonic() + BUDGET, 0
    while stop.requested_at is None:
        attempt += 1
        try:
            standing = sink.read()
            if worth_writing(standing, statement.attempt, statement.report, final=False):
                sink.write(statement)
            break
        except KubeError as error:
            if isinstance(error, NotFound | Gone):
                log.get().error("No such Job", job=named.job, namespace=named.namespace)
                break
            delay = next_delay(attempt, lambda: 0.5, remaining=end - time.monotonic())
            if delay is None:
                log.get().error("The problems could not be written to the Job", error=str(error))
                break
            stop.wake.wait(delay)
    api.close()
