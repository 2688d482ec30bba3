"""What the contract allows, said from outside: from the adapter's own log, its end and the faults.

A verdict is a pair of status and reason. Where two moments are so close that either may be first,
both verdicts are allowed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

from tests.blackbox.soak.draw import GRACE, Plan

Verdict = tuple[str, str]

ABSENT: Verdict = ("", "no file")
INVALID: Verdict = ("False", "InvalidResultFormat")
TIMEOUT: Verdict = ("False", "AdapterTimeout")
MEMORY: Verdict = ("False", "AdapterOOMKilled")
FAILED: Verdict = ("False", "AdapterExitedWithError")
MISSING: Verdict = ("False", "AdapterMissingResults")
SUCCEEDED: Verdict = ("True", "AdapterSucceeded")
INTERRUPTED: Verdict = ("Unknown", "AdapterInterrupted")
EVICTED: Verdict = ("Unknown", "AdapterEvicted")
OLD: Verdict = ("True", "Old")
TROUBLES: dict[str, Verdict] = {
    "image": ("False", "AdapterImagePullFailed"),
    "config": ("False", "AdapterConfigError"),
    "command": ("False", "AdapterStartFailed"),
}

NEAR = 3.0
"""Seconds. Between two moments that are closer either order is allowed: a look is due every second,
stamps of the API are whole seconds, and the node is busy."""
STARTED = 12.0
"""Seconds after its container's start in which a reporter may not be at work yet."""
UNHEARD = 2.0
"""Seconds at the end of the grace period in which nothing is written any more."""
NEEDED = 10.0
"""Seconds of the grace period, for a reporter that was held up, to write what it knows."""
NEVER = float("inf")


@dataclass(frozen=True)
class Written:
    """A result of the adapter: when it was about to write it, when it had, and what it says."""

    begun: float
    done: float | None
    verdict: Verdict


@dataclass(frozen=True)
class AdapterRun:
    """One run of the adapter. `ended` and `code` are absent where the API never showed its end."""

    began: float
    writes: tuple[Written, ...]
    ended: float | None
    code: int | None
    out_of_memory: bool
    stays: bool = False  # it ends when it is asked to, or killed


@dataclass(frozen=True)
class Attempt:
    """One Pod: the adapter's runs, when its removal was asked for, and what happened to it.

    `up`: when the reporter's container was first started; where it never was it owes nothing (a
    volume may come late). `deadline`: when the Job's is. `thrown`: the Job had failed by its
    backoffLimit. `downs`: when the reporter or what it needs was away. `delayed`: seconds
    for which the reporter, its API server or its kubelet may have stood still. `refused`: the API
    server has refused the Pod for a while; then any file counts, also one that was there before.
    `others`: results of other Pods and Jobs at its path that count.
    """

    created: float
    up: float
    runs: tuple[AdapterRun, ...]
    removed: float | None
    deadline: float
    evicted: bool
    deleted: bool
    thrown: bool
    downs: tuple[tuple[float, float], ...]
    delayed: float
    refused: bool = False
    others: frozenset[Verdict] = frozenset()


@dataclass(frozen=True)
class _File:
    """What was at the path between two moments; from `sure` on nothing older was."""

    says: Verdict
    begun: float
    sure: float
    until: float

    @property
    def valid(self) -> bool:
        return self.says not in (ABSENT, INVALID)


def finals(plan: Plan, attempt: Attempt) -> set[Verdict]:
    """The final verdicts that this attempt's reporter may write."""
    removals = _removals(attempt) | attempt.others
    if plan.trouble:
        early = attempt.delayed or plan.trouble == "command"
        return {TROUBLES[plan.trouble], *(removals if early else ())}
    if not attempt.runs:
        return removals or {INTERRUPTED, EVICTED, TIMEOUT}
    over = attempt.runs[0].began + plan.wait
    late = NEAR + attempt.delayed
    allowed = attempt.others
    # After a removal the run before the last counts, where the last did not end by itself.
    for run in attempt.runs[-2:] if attempt.removed is not None else attempt.runs[-1:]:
        allowed |= _of_run(plan, attempt, run, over)
    for run, following in pairwise(attempt.runs):
        if run.began <= over + late and following.began >= over - NEAR:
            allowed |= _when_over(_seen(run, over - NEAR, over + late))
        # The contract leaves open whose a file is that was written in the second of an end.
        surely = tuple(each for each in following.writes if each.begun >= int(run.ended or 0) + 1)
        if following is attempt.runs[-1] and surely != following.writes:
            allowed |= _of_run(plan, attempt, replace(following, writes=surely), over)
    return allowed


def owes(attempt: Attempt) -> bool:
    """Whether its reporter was there to see the end, and so had to write a final verdict."""
    removed = attempt.removed if attempt.removed is not None else NEVER
    if removed <= attempt.up + STARTED:
        return False
    # Of a Pod that its Job has thrown away the adapter might have run again until then.
    again = attempt.thrown and removed < NEVER
    ended = attempt.runs[-1].ended if attempt.runs and not again else None
    end = min(removed, ended if ended is not None else NEVER)
    if end == NEVER and not attempt.runs:
        return not any(until >= attempt.up for _, until in attempt.downs)
    if end in (NEVER, removed):
        # An adapter that is asked to end may be heard until it is killed, which may be late.
        kill = end if end == NEVER else max(end + GRACE, ended or 0.0)
        return not any(began <= kill and until >= end - NEAR for began, until in attempt.downs)
    if attempt.refused and any(
        began <= end + NEAR and until >= end for began, until in attempt.downs
    ):
        return False  # a refused Pod is not waited for
    # A calm moment at the end itself, or a longer one before its grace period is over.
    calm, needed = end - NEAR, 2 * NEAR
    for began, until in sorted(attempt.downs):
        if began > calm + needed:
            break
        if until > calm:
            calm, needed = until, NEEDED
    return calm + needed <= end + GRACE


def reaped(plan: Plan, attempt: Attempt, shown: set[Verdict]) -> set[Verdict]:
    """The final verdicts that the reaper may write for it, where others were shown before."""
    written = {each.verdict for run in attempt.runs for each in run.writes} | attempt.others
    proven = {MEMORY} if any(run.out_of_memory for run in attempt.runs) else set()
    if plan.trouble:
        proven = {TROUBLES[plan.trouble]}
    if attempt.deadline < NEVER:
        proven |= {TIMEOUT}
    return {INTERRUPTED} | proven | (_removals(attempt) & {EVICTED}) | (shown & written - {INVALID})


def exit_code(plan: Plan, rule: str, status: str) -> int:
    """How a classic reporter ends after its own final verdict."""
    if plan.policy == "OnFailure" or plan.exit_policy == "never":
        return 0
    if rule == "R" and plan.exit_policy == "failure":
        return int(status != "True")
    return int(rule not in {"R", "S"})


def _of_run(plan: Plan, attempt: Attempt, run: AdapterRun, over: float) -> set[Verdict]:
    late = NEAR + attempt.delayed
    again = plan.policy == "OnFailure" and run.code not in (0, None)
    end = run.ended if run.ended is not None else NEVER
    removed = attempt.removed if attempt.removed is not None else NEVER
    over = max(over, run.began)
    first = min(NEVER if again else end, removed, over)
    allowed: set[Verdict] = set()
    if plan.policy == "Never" and not plan.at_exit:
        for file in _files(run):
            if file.valid and file.begun <= first + late:
                allowed.add(file.says)
                if file.sure <= first - NEAR and file.until - file.sure >= late:
                    return allowed
    if not run.stays and (end <= first + late or (again and removed <= first + late)):
        allowed |= _when_ended(plan, run)
        if attempt.delayed and attempt.thrown:
            # Its file may have been replaced by the next run's before it was seen.
            allowed |= _by_code(plan, run)
    if over <= first + late:
        allowed |= _when_over(_seen(run, over - NEAR, over + late))
    if removed <= first + late:
        allowed |= {file.says for file in _seen(run, removed - NEAR, NEVER) if file.valid}
        # An adapter that still writes while it is asked to end is heard.
        settled = min(end, removed + GRACE - UNHEARD)
        if not all(file.valid for file in _seen(run, settled - late, NEVER)):
            allowed |= _removals(attempt)
        if run.out_of_memory:
            allowed.add(MEMORY)
    return allowed


def _files(run: AdapterRun) -> list[_File]:
    """What was at the path, in order; the times of two neighbours overlap by that of the write."""
    found = [_File(ABSENT, -NEVER, -NEVER, NEVER)]
    for each in run.writes:
        done = each.done if each.done is not None else NEVER
        last = found.pop()
        found.append(_File(last.says, last.begun, last.sure, done))
        if each.done is None:
            # What was interrupted may have left a part.
            found.append(_File(INVALID, each.begun, NEVER, NEVER))
        found.append(_File(each.verdict, each.begun, done, NEVER))
    return found


def _seen(run: AdapterRun, since: float, until: float) -> list[_File]:
    return [file for file in _files(run) if file.begun <= until and file.until >= since]


def _when_ended(plan: Plan, run: AdapterRun) -> set[Verdict]:
    allowed: set[Verdict] = set()
    for file in _seen(run, NEVER, NEVER):
        contradicted = plan.at_exit and file.says[0] == "True" and (run.out_of_memory or run.code)
        if file.valid and not contradicted:
            allowed.add(file.says)
        elif run.out_of_memory:
            allowed.add(MEMORY)
        elif file.says == INVALID:
            allowed.add(INVALID)
        else:
            allowed |= _by_code(plan, run)
    return allowed


def _by_code(plan: Plan, run: AdapterRun) -> set[Verdict]:
    if run.code:
        return {FAILED}
    return {MISSING} if plan.required else {SUCCEEDED}


def _when_over(seen: list[_File]) -> set[Verdict]:
    return {TIMEOUT if file.says == ABSENT else file.says for file in seen}


def _removals(attempt: Attempt) -> set[Verdict]:
    """What the removal itself says."""
    if attempt.removed is None:
        return set()
    allowed: set[Verdict] = set()
    timely = attempt.deadline <= attempt.removed + NEAR
    # Of a removed Pod the API shows no end before all containers have ended.
    if attempt.deadline <= attempt.removed + GRACE + NEAR:
        allowed.add(TIMEOUT)
    if attempt.evicted:
        allowed.add(EVICTED)
    # Where the Job has failed already, what the removed run before says counts, if it was seen.
    said = attempt.evicted or (attempt.thrown and not attempt.delayed)
    if attempt.deleted or not (said or (timely and not attempt.thrown)):
        allowed.add(INTERRUPTED)
    return allowed
