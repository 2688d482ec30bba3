"""Publish: is the verdict worth a write, what stands on the Job, and how it gets there.

One write is: read what stands, look and decide again, and patch what was read; so the patch is
never older than the answer it is based on. `pace` says when, `job` does the requests.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

from reporter.errors import (
    Conflict,
    Forbidden,
    Gone,
    InvalidRequest,
    KubeError,
    NotFound,
    Unavailable,
)
from reporter.sidecar.job import JobCondition
from reporter.sidecar.pace import LEAST_TIMEOUT, Pace, TimeLeft
from reporter.verdict import rows
from reporter.verdict.case import NEVER, Case, Observation
from reporter.verdict.condition import Attempt, Owner, Standing, Statement, owner, worth_writing
from reporter.verdict.decide import Pending, Settled, Verdict
from reporter.verdict.evidence import contradiction, evidence, late
from reporter.verdict.facts import FileValid, Form, PodSeen, PodUnknown, Running, Terminated, pod_of
from reporter.verdict.rows import Report, Row

SLOW_WRITES = (10.0, 35.0)
"""Seconds for a write after a first and a second one had no answer in time: a webhook may take 10,
and an API server ends a change after 34."""
JOB_PATIENCE = 5.0  # a 404 that may be wrong has to last so long
EVENT_PATIENCE = 1.0  # seconds for the one try to announce a final verdict
EVENT_LEAST = 0.5  # less than this before the end is kept for what matters
HAND_OVER = 5.0
"""Seconds until others hear of a verdict that is not written: since SIGTERM of a result that nobody
can change any more, and of any verdict so long before the end."""
_PROVEN = {Row.RESULT, Row.OUT_OF_MEMORY, Row.NO_RESULT, Row.SUCCEEDED, Row.RUNNING}
"""Rows that rest on what was seen. The others rest on something not having happened: before they
are written the Pod is asked again."""
_WITHOUT_A_POD = _PROVEN | {Row.INTERRUPTED, Row.DEADLINE, Row.EVICTED}
"""Rows that are written, too, while the API does not show a Pod that is not taken away."""


class LoopOutcome(Enum):
    """How the work on a Job ended."""

    FINAL = "final"  # a final verdict of this attempt is on the Job
    SUPERSEDED = "superseded"  # a newer attempt has written
    OTHER_INDEX_FAILED = "otherIndexFailed"  # its verdict stays, ours is known and not written
    JOB_GONE = "jobGone"
    JOB_NEVER_SEEN = "jobNeverSeen"
    GAVE_UP = "gaveUp"  # the verdict could not be written in time
    STOPPED = "stopped"  # by SIGTERM, before a final verdict


class Listener(Protocol):
    """Who is told what the loop does."""

    def observed(self, o: Observation) -> None:
        """Hear of every pass."""

    def published(self, statement: Statement, seconds: float) -> None:
        """Hear of every write that was accepted."""

    def withheld(self, report: Report, evidence: Mapping[str, Any]) -> None:
        """Hear of a final verdict that cannot be written, maybe repeatedly; it is tried again."""

    def failed(self, what: str, error: KubeError) -> None:
        """Hear of every request that failed; "job" is a publish, at its read or at its write."""


@dataclass(frozen=True, slots=True)
class Pass:
    """What one pass has seen and decided, and whose attempt it is."""

    case: Case
    verdict: Verdict
    attempt: Attempt

    @property
    def o(self) -> Observation:
        """What was seen."""
        return self.case.o

    @property
    def report(self) -> Report | None:
        """What to say, if there is anything."""
        return None if isinstance(self.verdict, Pending) else self.verdict.report

    @property
    def row(self) -> str:
        """Of the report; empty without one."""
        return self.report.row if self.report else ""

    @property
    def final(self) -> bool:
        """Whether this attempt will say nothing else."""
        return isinstance(self.verdict, Settled)

    @property
    def hidden(self) -> bool:
        """Whether what the verdict rests on is not seen now."""
        match self.o.pod:
            case PodUnknown():
                return True  # an attempt that cannot name its Pod must not outrank one that can
            case PodSeen(pod, current):
                shown = current or pod.taken_away or self.row in _WITHOUT_A_POD
                return self.report is not None and not shown
            case _:
                return False

    @property
    def to_be_confirmed(self) -> bool:
        """Whether the Pod has to be asked again before this is written."""
        # With at-exit a result of an adapter that seems to run rests on its end not having come.
        unended = self.case.policy.at_exit and self.case.ended_run is None
        unproven = self.report is not None and self.row not in _PROVEN
        return (
            isinstance(self.o.pod, PodUnknown) or unproven or (self.row == Row.RESULT and unended)
        )


class Publisher:
    """Gets the verdicts of one attempt onto its Job.

    `look_again` makes a pass, with a request for the Pod if it is true, after what an earlier start
    of this container has written on the Job was taken over. `statement` is what this process wrote
    last.
    """

    def __init__(
        self,
        job: JobCondition,
        listener: Listener,
        time: TimeLeft,
        pace: Pace,
        look_again: Callable[[bool, Standing | None], Pass],
        *,
        report_running: bool,
    ) -> None:
        self._job, self._listener, self._time, self.pace = job, listener, time, pace
        self._look_again, self._report_running = look_again, report_running
        self.statement: Statement | None = None
        self.waiting_since = time.now()  # when what waits to be written was first wanted
        self.waiting: tuple[str, bool] | None = None  # its row and finality, as of `follow`
        self._unanswered: Statement | None = None  # sent, and nobody knows whether it arrived
        self._refused: tuple[Report | None, bool] | None = None  # and others have heard of it
        self._job_missing_since: float | None = None
        self._timeouts = 0  # of writes
        self._amended = False  # what contradicts the verdict was added, or cannot be

    # Is the verdict worth a write, and when?

    def is_due(self, seen: Pass) -> bool:
        """Return whether what waits is to be written now."""
        if not self.waiting:
            return False
        self.pace.hurry(seen.o, final=seen.final)
        return self.pace.due(seen.o, final=seen.final)

    def follow(self, seen: Pass) -> None:
        """Note whether this verdict is worth a write; to be called whenever it may have changed."""
        wanted = (seen.row, seen.final) if self._wanted(seen) else None
        if wanted != self.waiting:
            self.waiting, self.waiting_since = wanted, seen.o.now

    def moments(self, seen: Pass) -> list[float]:
        """Return when time alone may change what there is to do."""
        return [*self.pace.moments(), seen.case.no_write_before, self._hand_over_at(seen)]

    def hand_over_in_time(self, seen: Pass) -> None:
        """Let others hear of what waits, if it is time.

        They need time to deliver it, and a request may hang until there is none.
        """
        if self.waiting and seen.o.now >= self._hand_over_at(seen):
            self._withhold(seen)

    def _wanted(self, seen: Pass) -> bool:
        report, standing, o = seen.report, self._job.standing, seen.o
        if report is None or o.now < seen.case.no_write_before:
            return False
        pod = pod_of(o.pod)
        running = pod is not None and isinstance(pod.adapter_state, Running)
        just_starting = report.row == Row.RUNNING and not running and self.pace.starting(o)
        if standing is None:
            return not just_starting
        silent = not self._report_running or just_starting
        if report.row == Row.RUNNING and silent and owner(standing, seen.attempt) is not Owner.OURS:
            return False
        since = self.pace.since_write(o)
        return worth_writing(standing, seen.attempt, report, final=seen.final, since_last=since)

    def _hand_over_at(self, seen: Pass) -> float:
        """Return when others hear of the adapter's own word that its Job does not get."""
        dead = seen.case.form is Form.NATIVE or isinstance(seen.case.state, Terminated)
        if seen.final and seen.row == Row.RESULT and dead:
            return max(seen.case.stopped, self.waiting_since) + HAND_OVER
        return NEVER

    def _withhold(self, seen: Pass) -> None:
        """Report to others a final verdict that cannot be written, or not in time."""
        if isinstance(seen.verdict, Settled):
            self._listener.withheld(seen.verdict.report, evidence(seen.o, self._time.wall()))

    def outcome_on_job(self, seen: Pass) -> LoopOutcome | None:
        """Return the outcome if what stands on the Job ends our work."""
        standing = self._job.standing
        if standing is None or standing.note is None:
            return None
        match owner(standing, seen.attempt):
            case Owner.NEWER:
                return LoopOutcome.SUPERSEDED
            case Owner.FAILED_INDEX:
                # Our own verdict is still needed: the classic form exits by it.
                return LoopOutcome.OTHER_INDEX_FAILED if seen.final else None
            case Owner.OURS if standing.final:
                return LoopOutcome.FINAL
            case _:
                return None

    # Write

    def publish(self, seen: Pass) -> LoopOutcome | None:
        """Read what stands, look and decide again, and write if that still differs."""
        began = self._time.now()
        try:
            standing = self._job.read(timeout=self._time.for_request())
            self._job_missing_since = None
            if self._unanswered and _carried_out(self._unanswered, standing):
                self._accepted(self._unanswered, began)
            seen = self._look_again(seen.to_be_confirmed, standing)
            if seen.report is None or not self._wanted(seen):
                self.pace.unneeded(self._time.now())
                return self.outcome_on_job(seen)
            if seen.hidden:
                return self._failed(seen, Unavailable("the Pod cannot be read now"))
            wall = self._time.wall()
            facts = evidence(seen.o, wall)
            statement = Statement(seen.report, seen.final, seen.attempt, facts, wall)
            annotated = self._write(statement, seen)
        except KubeError as error:  # and `seen` is the newest pass, here too
            return self._failed(seen, error)
        if not annotated:
            what = "the annotation of the verdict is missing or was changed in the response"
            self._listener.failed("annotation", InvalidRequest(what))
        self._accepted(statement, began)
        return self.outcome_on_job(seen)

    def _write(self, statement: Statement, seen: Pass) -> bool:
        timeout, left, began = self._time.for_request(), self._time.left(), self._time.now()
        if self._timeouts:
            timeout = SLOW_WRITES[min(self._timeouts, len(SLOW_WRITES)) - 1]
            if left is not None:
                timeout = min(timeout, max(LEAST_TIMEOUT, left))
                if left - timeout < HAND_OVER:
                    self._withhold(seen)
        self._unanswered = statement
        try:
            return self._job.write(statement, timeout=timeout)
        except Unavailable:
            self._timeouts += self._time.now() - began >= timeout
            raise

    def _accepted(self, statement: Statement, began: float) -> None:
        now = self._time.now()
        self.pace.written(now, final=statement.final)
        self.statement, self._unanswered = statement, None
        self._listener.published(statement, now - began)
        if statement.final:
            self._announce(statement)

    def _failed(self, seen: Pass, error: KubeError) -> LoopOutcome | None:
        """Back off, and let others hear of what may not get on the Job."""
        self._listener.failed("job", error)
        if isinstance(error, NotFound | Gone):
            return self._job_missing(seen, error)
        self._job_missing_since = None
        if isinstance(error, Forbidden | InvalidRequest):
            if (seen.report, seen.final) != self._refused:
                seen = self._look_again(seen.to_be_confirmed, None)
                if not seen.hidden:
                    self._withhold(seen)
                    self._refused = seen.report, seen.final
        elif self._time.ends_within(HAND_OVER):
            self._withhold(seen)
        # Whatever the server wishes, there is a try when others have to hear.
        self.pace.put_off(self._time.now(), error, self._time.left(keep=HAND_OVER))
        return None

    def _job_missing(self, seen: Pass, error: NotFound | Gone) -> LoopOutcome | None:
        pod = pod_of(seen.o.pod)
        labelled = pod is not None and pod.job_uid and pod.job_name == self._job.name
        was_there = self._job.standing is not None or labelled
        # An API server that starts may not know the path yet, and names nothing.
        sure = isinstance(error, Gone) or (was_there and error.name == self._job.name)
        now = self._time.now()
        if self._job_missing_since is None:
            self._job_missing_since = now
        if sure or now >= self._job_missing_since + JOB_PATIENCE:
            return LoopOutcome.JOB_GONE if was_there else LoopOutcome.JOB_NEVER_SEEN
        self.pace.put_off(now, error, self._time.left())
        return None

    def _announce(self, statement: Statement, *, late: bool = False) -> None:
        left = self._time.left()
        if left is not None and left < EVENT_LEAST:
            return
        timeout = EVENT_PATIENCE if left is None else min(EVENT_PATIENCE, left)
        try:
            self._job.announce(statement, timeout=timeout, late=late)
        except Conflict:
            pass  # it is there: this is its second try
        except KubeError as error:
            self._listener.failed("event", error)

    # After a final verdict

    def add_contradiction(self, o: Observation, attempt: Attempt) -> bool:
        """Add what contradicts a verdict given before, once; best effort.

        That is the adapter's end after a success, or a result after a timeout. The verdict may be
        one that an earlier start of this container has written. True while there is something left
        to add; the next try is at the pace's `next_try`.
        """
        if self._amended or self._contradiction(o, attempt) is None:
            return False
        self.pace.hurry(o)
        if not self.pace.due(o):
            return True
        try:
            note = self._job.read(timeout=self._time.for_request()).note
            if found := self._contradiction(o, attempt):
                self._job.annotate(*found, timeout=self._time.for_request())
            # Where it is there already, the answer to an earlier try got lost.
            if note is not None and (found or note.amended):
                self._amended = True
                if isinstance(o.file, FileValid) and note.row == Row.TIMEOUT:
                    report = rows.late_result(o.file.result)
                    said = Statement(report, True, attempt, {}, self._time.wall())
                    self._announce(said, late=True)
        except KubeError as error:
            self._listener.failed("job", error)
            self.pace.put_off(self._time.now(), error, self._time.left())
            self._amended = not isinstance(error, Conflict | Unavailable)
            return not self._amended
        return False

    def _contradiction(
        self, o: Observation, attempt: Attempt
    ) -> tuple[str, Mapping[str, Any]] | None:
        """Return what is missing from the final verdict of ours that stands, if anything."""
        standing, pod = self._job.standing, pod_of(o.pod)
        note = standing.note if standing else None
        if standing is None or note is None or not standing.final or note.amended:
            return None
        if owner(standing, attempt) is not Owner.OURS:
            return None
        if note.row == Row.TIMEOUT and isinstance(o.file, FileValid):
            return "late", late(o.file.result, self._time.wall())
        if note.ended or pod is None or not isinstance(pod.adapter_state, Terminated):
            return None
        after = contradiction(note.row, standing.status, pod.adapter_state)
        return ("after", after) if after else None


def _carried_out(sent: Statement, standing: Standing) -> bool:
    """Return whether what was sent stands, although its answer got lost."""
    note, said = standing.note, sent.report
    if note is None or owner(standing, sent.attempt) is not Owner.OURS:
        return False
    stands = (note.row, standing.status, standing.reason, standing.message)
    final = standing.final == sent.final
    return final and stands == (said.row, said.status, said.reason, said.message)
