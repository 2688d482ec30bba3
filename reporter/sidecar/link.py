"""The sidecar as a worker of an aggregator: on only where AGGREGATOR_URL is set.

Listens to the loop after everybody else and hands on what an aggregator wants to know. Nothing that
happens here can touch the verdict on the Job or the exit code.
"""

import json
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal

from reporter.common import log
from reporter.common.defaults import ADAPTER_RESULT
from reporter.common.lifecycle import Stop
from reporter.common.log import link_event
from reporter.errors import KubeError
from reporter.link import (
    AggregatorClient,
    ConfigError,
    Delivery,
    Heart,
    Relay,
    ResultSource,
    WorkerConfig,
)
from reporter.sidecar.courier import Courier, Deliver
from reporter.sidecar.ending import LAST_TRY, LAST_WORD, LEAVE, delivery_end
from reporter.sidecar.files import content_of
from reporter.sidecar.loop import Loop
from reporter.sidecar.metrics import Metrics
from reporter.sidecar.publish import Listener, LoopOutcome
from reporter.verdict.case import Observation, Policy
from reporter.verdict.condition import Standing, Statement
from reporter.verdict.decide import Settled
from reporter.verdict.evidence import evidence
from reporter.verdict.facts import Progress, ResultPayload
from reporter.verdict.rows import TRUE, UNKNOWN, Report, Row

TICK = 10.0  # seconds between two signs of life while a delivery is waited for


class Link:
    """What the loop tells, told to an aggregator too; a `Listener` in front of another one."""

    def __init__(
        self,
        config: WorkerConfig,
        telemetry: Listener,
        metrics: Metrics,
        *,
        results_path: Path,
        policy: Policy,
        stop: Stop,
    ) -> None:
        self._telemetry, self._metrics, self._path = telemetry, metrics, results_path
        self._policy, self._stop = policy, stop
        self._seen: Observation | None = None
        self._log = log.get(plugin=config.plugin, node=config.node)
        said = partial(link_event, plugin=config.plugin, node=config.node)
        self._url = config.aggregator_url
        self._hurry = threading.Event()
        self._closed = threading.Event()
        self._client = AggregatorClient(
            config, stop=self._hurry, sleep=self._closed.wait, ends=self._ends, on_event=said
        )
        self._courier = Courier(
            self._client,
            on_update=self._updated,
            on_delivery=self._delivered,
            wake=stop.wake.wake,
        )
        interval = config.heartbeat_seconds
        self._heart = Heart(self._client, interval=interval, on_event=said) if interval else None
        self._relay = Relay(self._client, config.progress_port, on_event=said)
        self._progress: Progress | None = None
        self._refused: set[int] = set()
        self._concluded_at: float | None = None
        self._waiting_since: float | None = None

    def start(self) -> None:
        """Begin to beat, to relay and to carry."""
        self._log.info("Linked to an aggregator", url=self._url)
        self._metrics.set_link(up=True)
        self._courier.start()
        self._relay.start()
        if self._heart is not None:
            self._heart.start()

    def close(self) -> None:
        """End everything; what hangs is left to the end of the process."""
        self._hurry.set()
        self._closed.set()
        closing = threading.Thread(target=self._close, name="link-close", daemon=True)
        closing.start()
        # Who has given the courier up has waited for it already.
        closing.join(0.0 if self._courier.busy else LEAVE)

    def _close(self) -> None:
        self._client.close()
        self._courier.close()
        self._relay.close()
        if self._heart is not None:
            self._heart.close()

    def observed(self, o: Observation) -> None:
        """Hear of a pass."""
        self._telemetry.observed(o)
        self._seen = o
        if o.stopping_since is not None:
            self._hurry.set()  # what waits for its next try is tried now
        if o.progress is not None and o.progress != self._progress:
            self._progress = o.progress
            self._courier.progress(o.progress)

    def published(self, statement: Statement, seconds: float) -> None:
        """Hear of a write that was accepted; a final one is the end of the work."""
        self._telemetry.published(statement, seconds)
        if statement.final:
            self.conclude(statement.report, statement.evidence)

    def withheld(self, report: Report, evidence: Mapping[str, Any]) -> None:
        """Hear of a final verdict that the Job may not have: the run must not lose it too."""
        self._telemetry.withheld(report, evidence)
        self.conclude(report, evidence)

    def failed(self, what: str, error: KubeError) -> None:
        """Hear of a request that failed."""
        self._telemetry.failed(what, error)

    def take_over(self, loop: Loop, outcome: LoopOutcome, standing: Standing | None) -> None:
        """Learn what the loop has not told by a write of its own.

        That is a final verdict that an earlier start of this container has written, whose delivery
        may not have been made (an aggregator takes the same one twice for once), and one that
        could not be written.
        """
        if outcome is LoopOutcome.FINAL and loop.statement is None and standing is not None:
            row = standing.note.row if standing.note else ""
            report = Report(row, standing.status, standing.reason, standing.message)
            self.conclude(report, {})
        unwritten = outcome in {
            LoopOutcome.GAVE_UP,
            LoopOutcome.STOPPED,
            LoopOutcome.OTHER_INDEX_FAILED,
        }
        if unwritten and isinstance(loop.verdict, Settled) and loop.last is not None:
            self.conclude(loop.verdict.report, evidence(loop.last, time.time()))

    def stay(self, tick: Callable[[], None]) -> None:
        """Return when the delivery is made, or when there is no more time for it."""
        self._waiting_since = time.monotonic()
        while self._courier.busy:
            left = self._ends() - time.monotonic()
            if left + LAST_WORD <= 0:
                self._metrics.observe_delivery("gave_up")
                self._log.error("Not delivered to the aggregator in time")
                return
            last = left <= LAST_TRY
            if last or self._stop.requested:
                self._hurry.set()
            tick()
            self._stop.wake.wait(min(left + LAST_WORD if last else left - LAST_TRY, TICK))

    def _ends(self) -> float:
        """Return when the last try has to be over; asked by the courier's thread, too."""
        return delivery_end(
            self._seen,
            self._policy,
            stopped=self._stop.requested_at,
            concluded=self._concluded_at,
            waiting=self._waiting_since,
        )

    def conclude(self, report: Report, evidence: Mapping[str, Any]) -> None:
        """Hand over what is final; only the first time counts."""
        if self._concluded_at is None:
            self._concluded_at = time.monotonic()
            self._courier.conclude(self._delivery(report, evidence))

    def _delivery(self, report: Report, evidence: Mapping[str, Any]) -> Deliver:
        """Return what delivers it: an adapter's own word as its file, all else as a report."""
        if report.row not in {Row.RESULT, Row.SUCCEEDED}:
            facts: dict[str, Any] = {"evidence": evidence} if evidence else {}
            facts["status"] = "unknown" if report.status == UNKNOWN else "failure"
            return partial(
                self._client.report_error,
                report.message,
                report.reason,
                evidence=facts,
                result_format=ADAPTER_RESULT,
            )
        said = ResultPayload(report.status == TRUE, report.reason, report.message)
        content = content_of(self._path, said) if report.row == Row.RESULT else None
        name, content = self._path.name, content or _written(said)

        def put() -> Delivery:
            source = ResultSource.from_bytes(content, name, "application/json")
            return self._client.put_result(source, result_format=ADAPTER_RESULT)

        return put

    def _updated(self, status: int) -> None:
        self._metrics.observe_update(sent=status == 200)
        if status != 200 and status not in self._refused:
            self._refused.add(status)
            self._log.warning("The aggregator did not accept the progress", status=status)

    def _delivered(self, delivery: Delivery | None, text: str) -> None:
        self._metrics.observe_delivery(delivery.outcome if delivery else "untrusted")
        facts = {} if delivery is None else delivery.facts
        if self._heart is not None:
            self._heart.stop()
        if delivery is not None and delivery.delivered:
            self._log.info("Delivered to the aggregator", outcome=delivery.outcome, **facts)
        else:
            self._log.error("Not delivered to the aggregator", text=text, **facts)


def _written(said: ResultPayload) -> bytes:
    """Return what stands on the Job as a result file, where there is none that says the same."""
    status = "success" if said.success else "failure"
    return json.dumps({"status": status, "reason": said.reason, "message": said.message}).encode()


def link_config(environ: Mapping[str, str]) -> WorkerConfig:
    """Read a worker's settings and AGGREGATOR_SCOPE. Raises ConfigError with every problem."""
    scope = environ.get("AGGREGATOR_SCOPE", "").strip() or "global"
    problems = []
    if scope not in {"global", "node"}:
        problems = [f"AGGREGATOR_SCOPE: {scope[:40]!r} is not global or node"]
    known: Literal["global", "node"] = "node" if scope == "node" else "global"
    try:
        config = WorkerConfig.from_env(environ, scope=known)
    except ConfigError as error:
        raise ConfigError(problems + error.problems) from None
    if problems:
        raise ConfigError(problems)
    return config


def opened(
    environ: Mapping[str, str],
    telemetry: Listener,
    metrics: Metrics,
    *,
    results_path: Path,
    policy: Policy,
    stop: Stop,
) -> Link | None:
    """Return a link at work; nothing where that cannot be.

    The Job must not lose its verdict over it: so that is one loud line and a metric.
    """
    try:
        config = link_config(environ)
        link = Link(config, telemetry, metrics, results_path=results_path, policy=policy, stop=stop)
        link.start()
    except ConfigError as error:
        log.get().error("No link to the aggregator: invalid settings", problems=error.problems)
    except Exception as error:  # whatever this machine refuses: memory files, descriptors, threads
        log.get().error("No link to the aggregator", error=error)
    else:
        for warning in config.warnings:
            log.get().warning("Setting ignored", problem=warning)
        for line in config.ignored:
            log.get().info("Unknown setting", variable=line)
        return link
    metrics.set_link(up=False)
    return None
