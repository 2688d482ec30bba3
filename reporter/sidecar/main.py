"""The sidecar's life: settings, wiring, the loop, and what comes after its verdict."""

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reporter import __version__
from reporter.common import log
from reporter.common.endpoint import Endpoint, Site, opened
from reporter.common.lifecycle import Stop
from reporter.errors import SettingsError
from reporter.kube.api import KubeApi
from reporter.sidecar.ending import GOOD, code_after_crash, exit_code, linger_end
from reporter.sidecar.files import Noted, ProgressFile, ResultFile, file_before_start
from reporter.sidecar.inotify import DirectoryWatch
from reporter.sidecar.job import JobCondition
from reporter.sidecar.loop import Inputs, Loop, Options
from reporter.sidecar.metrics import Metrics
from reporter.sidecar.pod import PodWatch
from reporter.sidecar.publish import LoopOutcome
from reporter.sidecar.settings import Settings
from reporter.sidecar.telemetry import Telemetry
from reporter.verdict.case import Case, Policy
from reporter.verdict.decide import restartable, stays
from reporter.verdict.facts import FileBeforeStart, Form, PodRefused, PodUnknown
from reporter.verdict.pod import Names

if TYPE_CHECKING:
    from reporter.sidecar.link import Link
    from reporter.sidecar.misconfigured import Connect, Misconfigured

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0  # seconds before beginning again after a crash
STALLED = 120.0  # a pass may make two writes of 35 s, with and without details
LINGER_STEP = 1.0  # seconds between two looks at whether to stay for a scrape


def main(
    arguments: list[str],
    environ: Mapping[str, str],
    stop: Stop,
    connect: "Connect" = KubeApi.in_cluster,
    *,
    noted: Noted | None = None,
) -> int:
    """Run the sidecar and return its exit code; `connect` finds the API server.

    `noted` is what lay at RESULTS_PATH before anything else was done. After a crash it begins
    again: under OnFailure a restart by the kubelet would count against the Job's back-off limit.
    """
    if arguments:
        from reporter.sidecar.command_line import answer

        return answer(arguments, environ)
    log.report_crashes()
    began, pause, case = time.monotonic(), FIRST_PAUSE, None
    while True:
        last, life = stop.requested, None
        try:
            life = _prepared(environ, stop, connect, noted, began)
            return life.run()
        except Exception as error:
            log.crashed(error)
        case = (life.case if life else None) or case
        code = code_after_crash(case, began=began, now=time.monotonic(), last=last)
        if code is not None:
            return code
        stop.wait(pause)
        pause = min(2 * pause, LONGEST_PAUSE)


def _prepared(
    environ: Mapping[str, str], stop: Stop, connect: "Connect", noted: Noted | None, began: float
) -> "Sidecar | Misconfigured":
    try:
        chosen = Settings.read(environ)
        log.configure(chosen.log_format, chosen.log_level)
        api = connect(relax_x509_strict=chosen.kubernetes_relax_x509_strict)
    except SettingsError as error:
        for problem in error.problems:
            log.get().error("Invalid setting", problem=problem)
        # Only bad settings need it, and they are found at the start.
        from reporter.sidecar.misconfigured import Misconfigured

        return Misconfigured(error.problems, environ, stop, connect)
    for warning in chosen.warnings:
        log.get().warning("Setting ignored", problem=warning)
    for line in chosen.ignored:
        log.get().info("Unknown setting", variable=line)
    return Sidecar(chosen, api, stop, environ, file_before_start(noted), began=began)


class Sidecar:
    """One reporter beside one adapter."""

    def __init__(
        self,
        chosen: Settings,
        api: KubeApi,
        stop: Stop,
        environ: Mapping[str, str],
        before_start: FileBeforeStart | None = None,
        *,
        began: float | None = None,
    ) -> None:
        self._settings, self._api, self._stop, self._began = chosen, api, stop, began
        self._before_start = before_start
        api.hurry_after(
            lambda: stop.requested_at, lambda: self._loop.time.write_end if self._loop else 0.0
        )
        self._log = log.get()
        self._metrics = Metrics(__version__, log.dropped)
        self._environ = environ
        self._link: Link | None = None
        self._policy = Policy(
            wait=float(chosen.max_wait_time_seconds),
            result_required=chosen.result_required,
            at_exit=chosen.result_trust == "at-exit",
            form=None if chosen.reporter_form == "auto" else Form(chosen.reporter_form),
        )
        writes = chosen.report_condition
        self._job = JobCondition(
            api,
            chosen.job_namespace,
            chosen.job_name,
            chosen.condition_type,
            events=api if writes and chosen.report_events else None,
            writes=writes,
        )
        self._ticked = time.monotonic()
        self._job_never_seen = False
        self._telemetry = Telemetry(self._metrics, tick=self._tick)
        self._pod = PodWatch(
            api,
            chosen.job_namespace,
            chosen.pod_name,
            Names(
                reporter=chosen.reporter_container_name,
                adapter=chosen.adapter_container_name,
                results_path=chosen.results_path,
                form=self._policy.form,
            ),
            wake=stop.wake.wake,
            on_failure=self._telemetry.failed,
        )
        self._scraped = False
        self._endpoint: Endpoint | None = None
        self._loop: Loop | None = None

    @property
    def case(self) -> Case | None:
        """What is known last."""
        o = self._loop.last if self._loop else None
        return Case(o, self._policy) if o else None

    def run(self) -> int:
        """Work until the verdict is on the Job, then live as the form asks."""
        with ExitStack() as release:
            return self._run(release)

    def _run(self, release: ExitStack) -> int:
        release.callback(self._api.close)
        self._log.info("Reporter started", version=__version__, **_shown(self._settings))
        if endpoint := self._open_endpoint():
            self._endpoint = endpoint
            release.callback(endpoint.close)
        result = Path(self._settings.results_path)
        progress = Path(self._settings.progress_path) if self._settings.progress_path else None
        if events := DirectoryWatch.open(
            [result, progress] if progress else [result],
            lambda cause: self._log.info("File events are not available", cause=cause),
        ):
            release.callback(events.close)
        release.callback(self._pod.close)
        self._pod.start()
        if link := self._open_link():
            self._link = link
            release.callback(link.close)
        loop = self._loop = Loop(
            Inputs(
                pod=self._pod,
                result=ResultFile(
                    result,
                    others=[progress] if progress else [],
                    details=self._settings.report_details,
                    on_read=self._metrics.observe_read,
                ),
                progress=ProgressFile(progress, self._malformed_progress),
                file_events=events,
                file_before_start=self._before_start,
            ),
            self._job,
            Options(
                pod_name=self._settings.pod_name,
                policy=self._policy,
                report_running=self._settings.report_running,
                poll_interval=float(self._settings.poll_interval_seconds),
            ),
            stop=self._stop,
            telemetry=self._link or self._telemetry,
            began=self._began,
        )
        outcome = loop.run()
        code = self._after(loop, outcome)
        if self._link is not None:
            self._link.stay(self._tick)
        self._log.info("Reporter exits", outcome=outcome.value, exitCode=code, **self._since_stop())
        return code

    def _after(self, loop: Loop, outcome: LoopOutcome) -> int:
        self._job_never_seen = outcome is LoopOutcome.JOB_NEVER_SEEN
        if (
            outcome is LoopOutcome.FINAL
            and loop.statement is None
            and self._job.standing is not None
        ):
            self._telemetry.found(self._job.standing)
        self._telemetry.ended(outcome, self._settings.job_name, self._settings.job_namespace)
        if self._link is not None:
            self._link.take_over(loop, outcome, self._job.standing)
        o = loop.last
        if (Case(o, self._policy).form if o else self._policy.form) is Form.NATIVE:
            # Ending before SIGTERM would only bring a restart.
            loop.idle(lambda _: False)
            if outcome is LoopOutcome.FINAL:
                self._linger(lambda: self._native_linger_end(loop))
            return GOOD
        if o is None or restartable(o):
            # Any early end would be restarted and counted against the Job's back-off limit.
            if self._stop.requested_at is None:
                loop.idle(lambda o: not stays(o, self._policy))
            self._linger(self._classic_linger_end())
            return GOOD
        self._linger(self._classic_linger_end())
        return exit_code(outcome, self._job.standing, self._settings.exit_policy, loop.verdict)

    def _linger(self, end: Callable[[], float]) -> None:
        """Stay for one more scrape, so that a short Job's last sample is not lost.

        `end` says until when, in monotonic seconds; what happens meanwhile may change it.
        """
        while self._endpoint is not None and not self._scraped:
            remaining = end() - time.monotonic()
            if remaining <= 0:
                return
            self._tick()
            self._stop.wake.wait(min(remaining, LINGER_STEP))

    def _classic_linger_end(self) -> Callable[[], float]:
        last = time.monotonic() + self._settings.metrics_linger_seconds
        return lambda: last if self._stop.requested_at is None else 0.0

    def _native_linger_end(self, loop: Loop) -> float:
        o, stopped = loop.last, self._stop.requested_at
        if o is None or stopped is None:
            return 0.0
        now = replace(o, pod=self._pod.look(timeout=LINGER_STEP))
        return linger_end(now, self._policy, self._settings.metrics_linger_seconds, stopped)

    def _open_link(self) -> "Link | None":
        if not self._environ.get("AGGREGATOR_URL", "").strip():
            return None
        # Who has no aggregator pays nothing for the link.
        from reporter.sidecar import link

        return link.opened(
            self._environ,
            self._telemetry,
            self._metrics,
            results_path=Path(self._settings.results_path),
            policy=self._policy,
            stop=self._stop,
        )

    def _open_endpoint(self) -> Endpoint | None:
        if self._settings.metrics_port == 0:
            return None
        site = Site(self._metrics.render, self._alive, self._checks, self._on_scrape)
        return opened(self._settings.metrics_address, self._settings.metrics_port, site)

    def _on_scrape(self, final: bool) -> None:
        if final:
            self._scraped = True
            self._stop.wake.wake()

    def _tick(self) -> None:
        self._ticked = time.monotonic()

    def _alive(self) -> bool:
        return time.monotonic() - self._ticked < STALLED + self._settings.poll_interval_seconds

    def _checks(self) -> dict[str, str | None]:
        """Return the problem of each readiness check; the endpoint's thread asks."""
        o, job, pod = self._loop.last if self._loop else None, None, None
        if self._job_never_seen:
            job = "no such Job"
        elif self._job.standing is None:
            job = "the Job has not been read yet"
        if o is None or isinstance(o.pod, PodUnknown):
            pod = "the Pod has not been read yet"
        elif isinstance(o.pod, PodRefused):
            pod = "reading the Pod is forbidden"
        return {"job": job, "pod": pod}

    def _since_stop(self) -> dict[str, float]:
        stopped = self._stop.requested_at
        return {} if stopped is None else {"stopSeconds": round(time.monotonic() - stopped, 3)}

    def _malformed_progress(self, cause: str) -> None:
        self._log.warning("Progress file ignored", cause=cause)


def _shown(chosen: Settings) -> dict[str, Any]:
    shown = {}
    for name, value in chosen.in_force():
        first, *rest = name.lower().split("_")
        shown[first + "".join(word.title() for word in rest)] = value
    return {"settings": shown}
