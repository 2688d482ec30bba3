"""How the reporter ends: which exit code tells what. Pure."""

from dataclasses import replace

from reporter.sidecar.publish import LoopOutcome
from reporter.verdict.case import (
    GRACE_MARGIN,
    LEAST_BUDGET,
    LONGEST_GRACE,
    WRITE_BUDGET,
    Case,
    Observation,
    Policy,
)
from reporter.verdict.condition import Standing
from reporter.verdict.decide import Settled, Verdict, restartable
from reporter.verdict.facts import Form
from reporter.verdict.rows import Row

GOOD, BAD, BAD_SETTINGS = 0, 1, 2
DELIVERY = 30.0  # seconds after the verdict in which a try may begin that holds up a classic Pod
LAST_TRY = 1.0  # seconds that the last try may take: the least that the link begins one for
LATE_TRY = 0.5  # seconds for a verdict that is handed over when little or nothing is left
LAST_WORD = 0.25  # seconds for the courier to tell that it has failed
LEAVE = 0.25  # seconds for an orderly end
SPARE = 0.1  # seconds before the kubelet kills that even the latest try leaves


def exit_code(
    outcome: LoopOutcome, standing: Standing | None, exit_policy: str, verdict: Verdict | None
) -> int:
    """Return the classic form's exit code; `standing` is what is on the Job.

    A Job that has gone or belongs to a newer attempt is a quiet end. Where the Job keeps the
    verdict of another index, our own `verdict` decides.
    """
    if outcome in {LoopOutcome.SUPERSEDED, LoopOutcome.JOB_GONE}:
        return GOOD
    if outcome in {LoopOutcome.GAVE_UP, LoopOutcome.JOB_NEVER_SEEN}:
        return BAD
    if standing is None or standing.note is None:
        return BAD
    if exit_policy == "never":
        return GOOD
    row, status = standing.note.row, standing.status
    if outcome is LoopOutcome.OTHER_INDEX_FAILED and isinstance(verdict, Settled):
        row, status = verdict.report.row, verdict.report.status
    if row not in {Row.RESULT, Row.SUCCEEDED}:
        return BAD
    return BAD if exit_policy == "failure" and status != "True" else GOOD


def code_after_crash(case: Case | None, *, began: float, now: float, last: bool) -> int | None:
    """Return the exit code after an exception that nobody caught; None: begin again.

    `case` is what was known last, `began` when the process was started, `last` says that no other
    try follows. Any end but that of a container that is never restarted could fail the Job, and
    only that one is waited for by its Pod.
    """
    never = case is not None and case.form is Form.CLASSIC and not restartable(case.o)
    over = never and case is not None and now >= max(began, case.wait_end) + WRITE_BUDGET
    if not (last or over):
        return None
    return BAD if never else GOOD


def delivery_end(
    o: Observation | None,
    policy: Policy,
    *,
    stopped: float | None,
    concluded: float | None,
    waiting: float | None,
) -> float:
    """Return when the last try to deliver to an aggregator has to be over, in monotonic seconds.

    `stopped` is when SIGTERM came, `concluded` when the delivery was handed over, `waiting` since
    when nothing else keeps the process alive: only then does the delivery hold up the end.

    Trying to write can take the time until a verdict is handed over: its delivery gets some of what
    is kept free before the kill, or else it would not be tried at all.
    """
    case = Case(replace(o, stopping_since=stopped), policy) if o else None
    form = case.form if case else policy.form or Form.CLASSIC
    ends = [float("inf")]
    if form is Form.CLASSIC and waiting is not None:
        ends.append(max((concluded or 0.0) + DELIVERY, waiting) + LAST_TRY)
    if stopped is not None and case is not None:
        killed, handed_over = case.alive_until, concluded or 0.0
        if case.pod is None and handed_over > killed - GRACE_MARGIN:
            killed = stopped + LONGEST_GRACE  # the Job, too, is written until then
        least = stopped + LEAST_BUDGET - LAST_WORD
        late = min(handed_over + LATE_TRY, killed - SPARE - LAST_WORD)
        ends.append(max(least, late, killed - GRACE_MARGIN + LAST_TRY))
    return min(ends)


def linger_end(o: Observation, policy: Policy, seconds: float, stopped: float) -> float:
    """Return until when the native form may stay for a scrape, in monotonic seconds.

    `stopped` is when SIGTERM came. That is within its time for writing. Nobody is kept waiting who
    deletes the Pod, or may be doing so without our knowing it.
    """
    known = Case(o, policy).pod
    if known is None or known.deleting:
        return stopped
    return stopped + min(seconds, known.grace - GRACE_MARGIN)
