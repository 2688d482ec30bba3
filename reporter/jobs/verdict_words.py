"""A verdict on a Job in words: what it is based on, and what each row of the contract advises."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from reporter.common.objects import number, section, text
from reporter.common.text import clean
from reporter.jobs.check_pod import IDLE, TROUBLES
from reporter.jobs.finding import Finding, Weight, advice, exit_words, joined
from reporter.jobs.job import WrittenVerdict
from reporter.verdict.rows import FORBIDDEN, TRUE, UNWRITTEN, Row


def verdict_finding(
    verdict: WrittenVerdict, log: str, *causes: str, printed: Sequence[str] = ()
) -> Finding:
    """Return what a verdict means and what to do; `causes` are what Events know besides.

    `log` is the command that shows the adapter's log, `printed` are its last lines.
    """
    row, evidence = verdict.row or _row(verdict.reason), verdict.evidence or {}
    weight = Weight.PROBLEM if verdict.failed else Weight.INFO
    todo = advice().get(row, "")
    if row == Row.RESULT and verdict.good:
        todo = ""
    elif row in {Row.TIMEOUT, Row.DEADLINE}:
        todo = _out_of_time(evidence, todo)
    elif verdict.reason == "AdapterMissingResults":
        todo = advice()["missing"]
    elif row == Row.NO_RESULT and text(section(evidence, "file"), "state") == "valid":
        todo = advice()["contradicted"]
    elif row == Row.INTERRUPTED and UNWRITTEN in verdict.message:
        todo = advice()["forbidden" if FORBIDDEN in verdict.message else "unwritten"]
        todo += advice()["passed"] if f"{UNWRITTEN}{TRUE} " in verdict.message else ""
    if verdict.after:
        weight = Weight.WARNING
        todo = advice()["after"]
    if verdict.late:
        todo = advice()["late"]
    how = {True: " (final)", False: " (may still change)", None: ""}[verdict.final]
    said = (*_evidence(verdict, row, " ".join(printed)), *(f"log: {each}" for each in printed))
    return Finding("verdict", weight, f"{verdict}{how}", todo.format(log=log), (*said, *causes))


def _row(reason: str) -> str:
    """Return the row of a verdict without an annotation."""
    if reason in {"AdapterExitedWithError", "AdapterMissingResults"}:
        return Row.NO_RESULT
    return next((row for row in Row if row.reason == reason), Row.RESULT)


def _out_of_time(shown: Mapping[str, Any], more_time: str) -> str:
    """Return what to do about T or D: time alone does not help an adapter that keeps failing."""
    adapter = section(shown, "adapter")
    run = section(adapter, "last") or section(shown, "lastEndedRun")
    if text(adapter, "state") == "terminated":
        run = adapter
    code, looping = number(run, "exitCode"), text(adapter, "reason") == "CrashLoopBackOff"
    if looping or (code and (number(adapter, "restarts") or 0) >= 2):
        last = "" if code is None else f", last with exit code {code}"
        return advice()["looping"].replace("{last}", last)
    failed = advice()["failed"].replace("{code}", str(code))
    return failed.replace("{more_time}", more_time) if code else more_time


def _evidence(verdict: WrittenVerdict, row: str, printed: str) -> Iterator[str]:
    """Yield the facts of the annotation in words, those that people ask for.

    Not what the verdict's message, or what was `printed`, says as well.
    """
    shown = verdict.evidence or {}
    if file := section(shown, "file"):
        cause = text(file, "cause") or text(file, "resultReason")
        yield f"result file: {text(file, 'state')}" + (f" ({cause})" if cause else "")
    adapter = dict(section(shown, "adapter"))
    if text(adapter, "message") and clean(text(adapter, "message"), 64) in clean(printed, 1 << 16):
        del adapter["message"]
    waits = text(adapter, "state") == "waiting"
    # The file was there before the kubelet had told of the container's start.
    late = row == Row.RESULT and waits and text(adapter, "reason") in IDLE
    if adapter and not late and not (row in TROUBLES and waits):
        yield f"adapter {text(adapter, 'container')!r}: {_container(adapter)}"
    if last := section(shown, "lastEndedRun"):
        yield f"its last run that ended: {_ended(last)}"
    pod = section(shown, "pod")
    if (blocked := section(pod, "blockedBy")) and row not in TROUBLES:
        yield f"init container {text(blocked, 'container')!r} blocks it: {_container(blocked)}"
    if text(pod, "disruption"):
        yield f"the Pod was disrupted: {text(pod, 'disruption')}"
    if text(pod, "look") not in {"", "seen"}:
        yield f"reading the Pod: {text(pod, 'look')}"
    if "reaper" in shown:
        yield "written by status-ctl reap, which cannot read the result file"
    if verdict.after:
        yield f"after that the adapter ended: {_ended(verdict.after)}"
    if result := verdict.late:
        said = f"{text(result, 'status')} {joined(text(result, 'reason'), text(result, 'message'))}"
        yield f"a result arrived after the verdict: {said} ({text(result, 'observedAt')})"
    waited = shown.get("waitedSeconds")
    if isinstance(waited, int | float):
        yield f"waited {waited:.0f} s; seen at {text(shown, 'observedAt')} in Pod {verdict.pod}"


def _container(shown: Mapping[str, Any]) -> str:
    state, last = text(shown, "state"), section(shown, "last")
    restarts = number(shown, "restarts") or 0
    again = f", restarted {restarts} times" if restarts else ""
    if state == "terminated":
        return _ended(shown) + again
    why = joined(text(shown, "reason"), text(shown, "message"))
    before = f"; previous run: {_ended(last)}" if last else ""
    return state + (f" ({why})" if why else "") + again + before


def _ended(run: Mapping[str, Any]) -> str:
    killed = ", killed, possibly out of memory" if run.get("maybeOutOfMemory") else ""
    return exit_words(number(run, "exitCode"), text(run, "reason"), text(run, "message")) + killed
