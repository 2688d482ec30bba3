"""Bringing a verdict to where it belongs: is it worth a write, and may we write?

When it is time for one is `verdict/pace.py`'s.

One write is: read what stands, look and decide again, and patch what was read. The patch is
therefore never older than the answer it is based on.
"""

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

from reporter.errors import (
    Conflict,
    Forbidden,
    Gone,
    InvalidRequest,
    KubeError,
    NotFound,
    Unavailable,
)
from reporter.sidecar.interfaces import Options, Sink, Telemetry
from reporter.sidecar.look import LEAST_TIMEOUT, Looker
from reporter.verdict import rows
from reporter.verdict.annotation import contradiction, evidence, late
from reporter.verdict.case import Case, Observation
from reporter.verdict.condition import Owner, Standing, Statement, owner, worth_writing
from reporter.verdict.decide import Pending, Settled, Verdict, decide
from reporter.verdict.facts import (
    Form,
    PodGone,
    PodLook,
    PodNeverSeen,
    PodRefused,
    PodSeen,
    PodUnknown,
    Running,
    Terminated,
    pod_of,
)
from reporter.verdict.pace import Pace
from reporter.verdict.payloads import FileValid
from reporter.verdict.rows import Report

JOB_PATIENCE = 5.0  # a 404 that may be wrong has to last so long
SLOW_WRITES = (10.0, 35.0)
"""Seconds for a write after a first and a second one had no answer in time: a webhook may take 10,
and an API server ends a change after 34."""
EVENT_PATIENCE = 1.0  # seconds for the one try to announce a final verdict
EVENT_LEAST = 0.5  # less than this before the end is kept for what matters
HAND_OVER = 5.0
"""Seconds until others hear of a verdict that is not written: since SIGTERM of a result that nobody
can change any more, and of any verdict so long before the end."""
FRESH = frozenset({"T", "I", "M", "C", "W1", "W2", "W3", "N", "D", "E"})
"""Rows that rest on something not having happened: the Pod is asked again before the write."""
CURRENT = FRESH - {"N", "D", "E"}
"""Rows that are not written while the API does not show the Pod, unless it is taken away."""


class LoopOutcome(Enum):
    """How the work on a Job ended."""

    FINAL = "final"  # a final verdict of this attempt is on the Job
    SUPERSEDED = "superseded"  # a newer attempt has written
    OTHER_INDEX_FAILED = "otherIndexFailed"  # its verdict stays, ours is known and not written
    JOB_GONE = "jobGone"
    JOB_NEVER_SEEN = "jobNeverSeen"
    GAVE_UP = "gaveUp"  # the verdict could not be written in time
    STOPPED = "stopped"  # by SIGTERM, before a final verdict


class Publisher:
    """The way of one attempt's verdicts to the sink. Times are readings of `clock`, in seconds."""

    def __init__(
        self,
        looker: Looker,
        sink: Sink,
        options: Options,
        telemetry: Telemetry,
        *,
        clock: Callable[[], float],
        wall: Callable[[], float],
        rng: Callable[[], float],
    ) -> None:
        self._looker, self._sink, self._options = looker, sink, options
        self._telemetry, self._clock, self._wall = telemetry, clock, wall
        self.pace = Pace(clock(), rng)
        self.wanted_since = clock()
        self._wanted: tuple[str, bool] | None = None  # row and finality of what waits to be written
        self._sent: Statement | None = None
        self._job_missing_since: float | None = None
        self._timeouts = 0  # of writes
        self._unnotable = False  # what contradicts the verdict was added, or cannot be
        self.verdict: Verdict = Pending(self.wanted_since)
        self.statement: Statement | None = None  # what this process wrote last

    def judge(self, o: Observation) -> LoopOutcome | None:
        """Decide; return an outcome when what stands on the Job already ends our work."""
        self.verdict = decide(o, self._options.policy)
        return self._stands()

    def wants(self, o: Observation) -> bool:
        """Return whether the present verdict is worth a write, and keep since when."""
        wanted = None
        if not isinstance(self.verdict, Pending) and self._worth_it(o):
            wanted = (self.verdict.report.row, isinstance(self.verdict, Settled))
        if wanted != self._wanted:
            self._wanted, self.wanted_since = wanted, o.now
        return wanted is not None

    def hand_over(self, o: Observation) -> None:
        """Tell others of the adapter's own word that its Job does not get; call it while wanted.

        They need time to deliver it, and a request may hang until there is none.
        """
        if o.now >= self._hand_over_at(o):
            self._withhold(o)

    def moments(self, o: Observation) -> list[float]:
        """Return when another pass is worth it for the sake of writing."""
        held = [*self.pace.moments(), self._held_until(o), self._hand_over_at(o)]
        later = [end for end in held if end > self._clock()]
        return [*later, self.pace.next_try] if self.wants(o) else later

    def publish(self) -> LoopOutcome | None:
        """Read what stands, look and decide again, and write if that still differs."""
        began = self._clock()
        try:
            standing = self._sink.read(timeout=self._looker.timeout())
            self._job_missing_since = None
            self._looker.recall(standing)
            if self._sent is not self.statement and self._carried_out(standing):
                self._accepted(began)
            o = self._look_again()
            if isinstance(self.verdict, Pending) or not self._worth_it(o):
                self.pace.unneeded(self._clock())
                return self._stands()
            if self._hidden(o):
                raise Unavailable("the Pod cannot be read now")
            self._sent = Statement(
                report=self.verdict.report,
                final=isinstance(self.verdict, Settled),
                attempt=self._looker.attempt(),
                evidence=evidence(o, self._wall()),
                wall=self._wall(),
            )
            shown = self._write(self._sent, o)
        except (NotFound, Gone) as error:
            self._telemetry.failed("job", error)
            return self._job_missing(error)
        except KubeError as error:
            self._telemetry.failed("job", error)
            self._job_missing_since = None
            if isinstance(error, Forbidden | InvalidRequest):
                if not self._hidden(o := self._look_again()):
                    self._withhold(o)
            elif self._looker.ends_within(HAND_OVER) and (last := self._looker.seen):
                self._withhold(last)
            # Whatever the server wishes, there is a try when others have to hear.
            self.pace.put_off(self._clock(), error, self._looker.left(keep=HAND_OVER))
            return None
        if shown != self._sink.standing:
            what = "the annotation of the verdict is missing or was changed in the response"
            self._telemetry.failed("annotation", InvalidRequest(what))
        self._accepted(began)
        return self._stands()

    def note_contradiction(self, o: Observation) -> bool:
        """Add what contradicts a verdict given before, once; best effort.

        That is the adapter's end after a success, or a result after a timeout. The verdict may be
        one that an earlier start of this container has written. True while there is something left
        to add; the next try is at the pace's `next_try`.
        """
        if self._unnotable or self._contradiction(o) is None:
            return False
        if not self.pace.due(o):
            return True
        try:
            note = self._sink.read(timeout=self._looker.timeout()).note
            if found := self._contradiction(o):
                self._sink.annotate(*found, timeout=self._looker.timeout())
            # Where it is there already, the answer to an earlier try got lost.
            if note is not None and (found or note.amended):
                self._unnotable = True
                if isinstance(o.file, FileValid) and note.row == "T":
                    report = rows.late_result(o.file.result)
                    said = Statement(report, True, self._looker.attempt(), {}, self._wall())
                    self._announce(said, late=True)
        except (Conflict, Unavailable) as error:
            self._telemetry.failed("job", error)
            self.pace.put_off(self._clock(), error, self._looker.left())
            return True
        except KubeError as error:
            self._telemetry.failed("job", error)
            self._unnotable = True
        return False

    def _contradiction(self, o: Observation) -> tuple[str, Mapping[str, Any]] | None:
        """Return what is missing from the final verdict of ours that stands, if anything."""
        standing, pod = self._sink.standing, pod_of(o.pod)
        note = standing.note if standing else None
        if standing is None or note is None or not note.final or note.amended:
            return None
        if owner(standing, self._looker.attempt()) is not Owner.OURS:
            return None
        if note.row == "T" and isinstance(o.file, FileValid):
            return "late", late(o.file.result, self._wall())
        if note.ended or pod is None or not isinstance(pod.adapter_state, Terminated):
            return None
        after = contradiction(note.row, standing.status, pod.adapter_state)
        return ("after", after) if after else None

    def _worth_it(self, o: Observation) -> bool:
        if isinstance(self.verdict, Pending) or o.now < self._held_until(o):
            return False
        report, standing = self.verdict.report, self._sink.standing
        if standing is None:
            return not self._just_starting(o)
        attempt = self._looker.attempt()
        silent = not self._options.report_running or self._just_starting(o)
        if report.row == "A" and owner(standing, attempt) is not Owner.OURS and silent:
            return False
        final, since = isinstance(self.verdict, Settled), self.pace.since_write(o)
        return worth_writing(standing, attempt, report, final=final, since_last=since)

    def _hand_over_at(self, o: Observation) -> float:
        case = Case(o, self._options.policy)
        dead = case.form is Form.NATIVE or isinstance(case.state, Terminated)
        match self.verdict:
            case Settled(Report(row="R")) if dead and o.stopping_since is not None:
                return max(o.stopping_since, self.wanted_since) + HAND_OVER
            case _:
                return float("inf")

    def _withhold(self, o: Observation) -> None:
        """Report to others a final verdict that cannot be written, or not in time."""
        if isinstance(self.verdict, Settled):
            self._telemetry.withheld(self.verdict.report, evidence(o, self._wall()))

    def _hidden(self, o: Observation) -> bool:
        """Return whether what the verdict rests on is not seen now."""
        if isinstance(o.pod, PodUnknown):
            return True
        resting = not isinstance(self.verdict, Pending) and self.verdict.report.row in CURRENT
        return resting and not _shown(o.pod)

    def _held_until(self, o: Observation) -> float:
        return Case(o, self._options.policy).held_until

    def _just_starting(self, o: Observation) -> bool:
        pod = pod_of(o.pod)
        if isinstance(self.verdict, Pending) or self.verdict.report.row != "A":
            return False
        running = pod is not None and isinstance(pod.adapter_state, Running)
        return not running and self.pace.starting(o)

    def _write(self, statement: Statement, o: Observation) -> Standing:
        timeout, left, began = self._looker.timeout(), self._looker.left(), self._clock()
        if self._timeouts:
            timeout = SLOW_WRITES[min(self._timeouts, len(SLOW_WRITES)) - 1]
            if left is not None:
                timeout = min(timeout, max(LEAST_TIMEOUT, left))
                if left - timeout < HAND_OVER:
                    self._withhold(o)
        try:
            return self._sink.write(statement, timeout=timeout)
        except Unavailable:
            self._timeouts += self._clock() - began >= timeout
            raise

    def _look_again(self) -> Observation:
        row = "" if isinstance(self.verdict, Pending) else self.verdict.report.row
        seen = self._looker.seen
        # An attempt that cannot name its Pod must not outrank one that can.
        unknown = seen is None or isinstance(seen.pod, PodUnknown)
        # With at-exit a result of an adapter that seems to run rests on its end not having come.
        ended = seen is not None and Case(seen, self._options.policy).ended_run is not None
        unended = row == "R" and self._options.policy.at_exit and not ended
        o = self._looker.observe(fresh=unknown or unended or row in FRESH)
        self.verdict = decide(o, self._options.policy)
        return o

    def _stands(self) -> LoopOutcome | None:
        """Return whether what stands on the Job ends our work."""
        standing = self._sink.standing
        if standing is None or standing.note is None:
            return None
        whose = owner(standing, self._looker.attempt())
        if whose is Owner.NEWER:
            return LoopOutcome.SUPERSEDED
        if whose is Owner.FAILED_INDEX:
            # Our own verdict is still needed: the classic form exits by it.
            known = isinstance(self.verdict, Settled)
            return LoopOutcome.OTHER_INDEX_FAILED if known else None
        return LoopOutcome.FINAL if whose is Owner.OURS and standing.note.final else None

    def _carried_out(self, standing: Standing) -> bool:
        """Return whether what was sent last stands, although its answer got lost."""
        sent, note = self._sent, standing.note
        if sent is None or note is None or owner(standing, sent.attempt) is not Owner.OURS:
            return False
        said = sent.report
        return (said.row, sent.final) == (note.row, note.final) and (
            (said.status, said.reason, said.message)
            == (standing.status, standing.reason, standing.message)
        )

    def _accepted(self, began: float) -> None:
        if self._sent is not None:
            self.pace.written(self._clock(), final=self._sent.final)
            self.statement = self._sent
            self._telemetry.published(self._sent, self._clock() - began)
            if self._sent.final:
                self._announce(self._sent)

    def _announce(self, statement: Statement, *, late: bool = False) -> None:
        left = self._looker.left()
        if left is not None and left < EVENT_LEAST:
            return
        timeout = EVENT_PATIENCE if left is None else min(EVENT_PATIENCE, left)
        try:
            self._sink.announce(statement, timeout=timeout, late=late)
        except Conflict:
            pass  # it is there: this is its second try
        except KubeError as error:
            self._telemetry.failed("event", error)

    def _job_missing(self, error: NotFound | Gone) -> LoopOutcome | None:
        seen = self._looker.seen
        pod = pod_of(seen.pod) if seen else None
        labelled = pod is not None and pod.job_uid and pod.job_name == self._options.job_name
        was_there = self._sink.standing is not None or labelled
        # An API server that starts may not know the path yet, and names nothing.
        sure = isinstance(error, Gone) or (was_there and error.name == self._options.job_name)
        now = self._clock()
        if self._job_missing_since is None:
            self._job_missing_since = now
        if sure or now >= self._job_missing_since + JOB_PATIENCE:
            return LoopOutcome.JOB_GONE if was_there else LoopOutcome.JOB_NEVER_SEEN
        self.pace.put_off(now, error, self._looker.left())
        return None


def _shown(look: PodLook) -> bool:
    if isinstance(look, PodRefused | PodNeverSeen | PodGone):
        return True
    return isinstance(look, PodSeen) and (look.current or look.pod.taken_away)
