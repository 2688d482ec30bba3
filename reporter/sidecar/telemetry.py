"""What the loop does, told to the log and the metrics.

One event per fact, one canonical line per verdict. A verdict that is not on the Job is left in the
container's termination message as well.
"""

import contextlib
import time
from collections.abc import Callable, Mapping
from typing import Any

from reporter.common import log
from reporter.errors import Conflict, Denied, Forbidden, KubeError
from reporter.sidecar.metrics import Metrics
from reporter.sidecar.publish import LoopOutcome
from reporter.verdict import rows
from reporter.verdict.case import Observation
from reporter.verdict.condition import Standing, Statement
from reporter.verdict.facts import FileValid, Running, Terminated, pod_of
from reporter.verdict.rows import Report, Row

REPEAT = 30.0  # seconds between two log lines about the same failure


class Telemetry:
    """The loop's listener. `failed` may be called from any thread, the rest from the main loop.

    `tick` is called once for each pass.
    """

    def __init__(
        self,
        metrics: Metrics,
        clock: Callable[[], float] = time.monotonic,
        *,
        tick: Callable[[], None] = lambda: None,
    ) -> None:
        self._metrics, self._tick, self._clock = metrics, tick, clock
        self._log = log.get()
        self._said: set[str] = set()
        self._failing: dict[str, tuple[str, float]] = {}
        self._last_error: KubeError | None = None
        self._left: str | None = None  # unknown: a process before may have left something
        self._state = ""

    def observed(self, o: Observation) -> None:
        """Take over what a pass saw."""
        self._tick()
        self._metrics.observed(time.time())
        if o.progress is not None:
            self._metrics.set_progress(
                completed=o.progress.completed,
                total=o.progress.total,
                failures=len(o.progress.failures),
                errors=len(o.progress.errors),
            )
        if isinstance(o.file, FileValid):
            for note in o.file.result.notes:
                self._once("Result file needs attention", note=note)
        if o.job is not None and o.job.parallel:
            self._once("Job runs several Pods at once: the newest Pod's verdict counts")
        pod = pod_of(o.pod)
        if pod is None:
            return
        if o.job is not None and o.job.completions > 1 and pod.index is None:
            self._once(
                "Job has several completions and no indexes: the newest Pod's verdict is kept; "
                "set completionMode: Indexed"
            )
        for remark in pod.remarks:
            self._once("Adapter container guessed; set ADAPTER_CONTAINER_NAME", remark=remark)
        if pod.misfit:
            self._once("Settings do not match the Pod", problem=pod.misfit)
        if pod.adapter is None:
            return
        state = pod.adapter.state
        ended = state if isinstance(state, Terminated) else pod.adapter.last
        self._metrics.set_adapter(ended.exit_code if ended else None, pod.adapter.restarts)
        kind = type(state).__name__.lower()
        if f"{kind}{pod.adapter.restarts}" != self._state:
            self._state = f"{kind}{pod.adapter.restarts}"
            reason = {} if isinstance(state, Running) else {"reason": state.reason}
            self._log.info(
                "Adapter state",
                container=pod.adapter.name,
                state=kind,
                restarts=pod.adapter.restarts,
                **reason,
            )

    def published(self, statement: Statement, seconds: float) -> None:
        """Take over a write that was accepted; a final one is the canonical line of the verdict."""
        report = statement.report
        self._failing.clear()
        self._last_error = None
        self._leave("")
        self._metrics.observe_publish("written", seconds=seconds, now=time.time())
        self._metrics.set_condition(
            report.status, report.reason, from_file=report.from_file, final=statement.final
        )
        self._log.info(
            "Verdict" if statement.final else "Condition written",
            status=report.status,
            reason=report.reason,
            text=report.message,
            rule=report.row,
            final=statement.final,
            attempt=_plain(statement.attempt),
            evidence=statement.evidence,
            publish_seconds=round(seconds, 4),
        )

    def found(self, standing: Standing) -> None:
        """Take over a final verdict that an earlier start of this container has written."""
        note = standing.note
        row = note.row if note else ""
        self._leave("")
        self._metrics.set_condition(
            standing.status, standing.reason, from_file=row == Row.RESULT, final=True
        )
        self._log.info(
            "Final verdict is already on the Job",
            status=standing.status,
            reason=standing.reason,
            rule=row,
        )

    def ended(self, outcome: LoopOutcome, job: str, namespace: str) -> None:
        """Say how the work on a Job ended, where that is not a verdict."""
        match outcome:
            case LoopOutcome.SUPERSEDED:
                self._log.warning("A newer Pod reports on this Job: nothing more is written")
            case LoopOutcome.OTHER_INDEX_FAILED:
                self._log.warning(
                    "Another completion index has failed: its verdict stays on the Job"
                )
            case LoopOutcome.JOB_GONE:
                self._log.info("The Job is gone: nothing is left to report on")
            case LoopOutcome.JOB_NEVER_SEEN:
                self._log.error(
                    "No such Job: check JOB_NAME and JOB_NAMESPACE", job=job, namespace=namespace
                )
            case LoopOutcome.GAVE_UP:
                self._log.error("The verdict could not be written in time")
            case LoopOutcome.STOPPED:
                self._log.warning("Stopped before a final verdict was known")

    def withheld(self, report: Report, evidence: Mapping[str, Any]) -> None:
        """Log a final verdict that is not on the Job, once, and leave it to who looks later."""
        self._once("Verdict not written yet", reason=report.reason, text=report.message)
        error = self._last_error
        forbidden = isinstance(error, Forbidden) and not isinstance(error, Denied)
        self._leave(rows.last_words(report, str(error or "no answer"), forbidden=forbidden))

    def failed(self, what: str, error: KubeError) -> None:
        """Take over a request that failed; the same failure again is said every half minute."""
        if what == "event" and isinstance(error, Forbidden):
            # Roles from before there were Events work as well.
            self._log.debug("Not allowed to create Events", error=str(error))
            return
        self._metrics.observe_failure(error.failure)
        if what == "job":
            self._last_error = error
            self._metrics.observe_publish("failed", seconds=0.0, now=time.time())
        now = self._clock()
        last, said_at = self._failing.get(what, ("", float("-inf")))
        if last == error.failure and now < said_at + REPEAT:
            return
        self._failing[what] = (error.failure, now)
        hint = {}
        if isinstance(error, Denied):
            hint = {"hint": "an admission policy or webhook denies the change"}
        elif isinstance(error, Forbidden):
            hint = {"hint": "check that the Role is bound to the ServiceAccount"}
        # Whoever writes to the same Job meets a conflict now and then; the next try is at once.
        tell = self._log.info if isinstance(error, Conflict) else self._log.warning
        tell("Request failed", request=what, failure=error.failure, error=str(error), **hint)

    def _leave(self, words: str) -> None:
        if words != self._left:
            self._left = words
            leave_message(words)

    def _once(self, message: str, **fields: str) -> None:
        key = f"{message}{fields}"
        if key not in self._said and len(self._said) < 100:
            self._said.add(key)
            self._log.warning(message, **fields)


def leave_message(text: str, path: str = "/dev/termination-log") -> None:
    """Have the container's status say this at its end, in place of the end of its log."""
    # Only where there is such a file already: outside of a container there is none.
    with contextlib.suppress(OSError), open(path, "r+") as file:  # noqa: PTH123
        file.write(text)
        file.truncate()


def _plain(attempt: Any) -> Mapping[str, Any]:
    return {
        "pod": attempt.pod,
        "podUID": attempt.pod_uid,
        "adapterRestarts": attempt.restarts,
    }
