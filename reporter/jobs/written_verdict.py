"""The verdicts that are on a Job, and what each row of the contract asks people to do."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from reporter.common.objects import items, json_object, number, section, text
from reporter.jobs.finding import Finding, Object, Weight
from reporter.verdict.condition import ANNOTATION_PREFIX, RESERVED_TYPES, annotation_key
from reporter.verdict.rows import REASONS

ADVICE: Final = {
    "R": "The adapter reported this itself: see its log, or ask its author.",
    "T": "Check whether the adapter hangs (kubectl logs), or give it more time: "
    "MAX_WAIT_TIME_SECONDS on the reporter.",
    "O": "Raise the adapter's resources.limits.memory, or reduce its memory use.",
    "I": "The adapter needs a fix: `status-ctl validate FILE` lists every problem of such a file. "
    "To avoid half-written files, write a temporary file and rename it.",
    "X": "See the adapter's log: it ended before it wrote a result.",
    "contradicted": "See the adapter's log: it reported success and then failed, and with "
    "RESULT_TRUST=at-exit its exit code counts.",
    "missing": "The adapter exited successfully but wrote nothing to RESULTS_PATH on the shared "
    "volume: check the path and the mount, or set RESULT_REQUIRED=false if it is not "
    "meant to write a result.",
    "S": "",
    "W1": "Check the image's name and tag, that the registry can be reached from the node, and "
    "imagePullSecrets.",
    "W2": "Create the ConfigMap, Secret or key that the message names, or fix the reference.",
    "W3": "Check the container's command, working directory and hooks, or what the named init "
    "container needs.",
    "C": "See the log of the previous run (kubectl logs --previous); backoffLimit limits the "
    "retries.",
    "D": "Raise the activeDeadlineSeconds of the Job or the Pod, or make the work shorter.",
    "E": "Run the Job again; with a podFailurePolicy that ignores DisruptionTarget this is "
    "automatic.",
    "N": "The outcome is unknown: run the Job again.",
    "M": "Fix the reporter's settings as the message says; `status-reporter --check` validates "
    "them.",
    "A": "",
}


@dataclass(frozen=True, slots=True)
class WrittenVerdict:
    """One condition with its annotation. `row` is empty where there is no annotation.

    `evidence`, `after` and `late` are from the annotation; `final` is None where it is not known.
    """

    type: str
    status: str
    reason: str
    message: str
    since: str
    row: str = ""
    final: bool | None = None
    pod: str = ""
    evidence: Mapping[str, Any] | None = None
    after: Mapping[str, Any] | None = None
    late: Mapping[str, Any] | None = None

    @property
    def good(self) -> bool:
        """Whether the verdict is a success."""
        return self.status == "True"

    @property
    def running(self) -> bool:
        """Whether the verdict says that the work is still going on."""
        return self.row == "A" or (not self.row and self.reason == REASONS["A"])


def written_verdicts(job: Object, also: str = "") -> list[WrittenVerdict]:
    """Return what a reporter has written on the Job: conditions with our annotation.

    `also` is a type that counts without one, as an older reporter writes it.
    """
    notes = dict(_notes(job))
    found = []
    for condition in items(section(job, "status"), "conditions"):
        kind = text(condition, "type")
        note = notes.get(annotation_key(kind))
        if kind in RESERVED_TYPES or (note is None and (not also or kind != also)):
            continue
        note = note or {}
        final = note.get("final")
        found.append(
            WrittenVerdict(
                kind,
                text(condition, "status"),
                text(condition, "reason"),
                text(condition, "message"),
                text(condition, "lastTransitionTime"),
                text(note, "rule"),
                final if isinstance(final, bool) else None,
                text(section(note, "attempt"), "pod"),
                section(note, "evidence"),
                section(note, "after") or None,
                section(note, "late") or None,
            )
        )
    return found


def tell(verdict: WrittenVerdict) -> Finding:
    """Return what a verdict means and what to do."""
    row = verdict.row or _row(verdict.reason)
    weight = Weight.INFO if verdict.good or verdict.running else Weight.PROBLEM
    name = f"{verdict.type}={verdict.status} {verdict.reason}"
    how = {True: "final", False: "may still change", None: ""}[verdict.final]
    todo = ADVICE.get(_code(verdict, row), "")
    if row in {"T", "D"}:
        todo = _out_of_time(verdict.evidence or {}, todo)
    if row == "R" and verdict.good:
        todo = ""
    if verdict.after:
        weight = Weight.WARNING
        todo = "It reported success and then failed: see the adapter's log."
    if verdict.late:
        todo = "The adapter needs more time: raise MAX_WAIT_TIME_SECONDS on the reporter."
    what = f"{name}: {verdict.message}" + (f" ({how})" if how else "")
    return Finding("verdict", weight, what, todo, tuple(_evidence(verdict)))


def _code(verdict: WrittenVerdict, row: str) -> str:
    if verdict.reason == "AdapterMissingResults":
        return "missing"
    file = section(verdict.evidence or {}, "file")
    return "contradicted" if row == "X" and text(file, "state") == "valid" else row


def _out_of_time(shown: Mapping[str, Any], more_time: str) -> str:
    """Return what to do about T or D: time alone does not help an adapter that keeps failing."""
    adapter = section(shown, "adapter")
    run = section(adapter, "last") or section(shown, "lastEndedRun")
    if text(adapter, "state") == "terminated":
        run = adapter
    code, looping = number(run, "exitCode"), text(adapter, "reason") == "CrashLoopBackOff"
    if not (code or looping):
        return more_time
    if looping or (number(adapter, "restarts") or 0) >= 2:
        last = "" if code is None else f", last with exit code {code}"
        return f"The adapter fails again and again{last}. {ADVICE['C']}"
    return (
        f"A run of the adapter failed with exit code {code}: see its log (kubectl logs "
        f"--previous). {more_time}"
    )


def _notes(job: Object) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for key, value in section(job, "metadata", "annotations").items():
        if key.startswith(ANNOTATION_PREFIX) and isinstance(value, str):
            note = json_object(value)
            if note and section(note, "attempt"):
                yield key, note


def _row(reason: str) -> str:
    if reason in {"AdapterExitedWithError", "AdapterMissingResults"}:
        return "X"
    return next((row for row, known in REASONS.items() if known == reason), "R")


def _evidence(verdict: WrittenVerdict) -> Iterator[str]:
    """Yield the facts of the annotation in words, those that people ask for."""
    shown = verdict.evidence or {}
    if file := section(shown, "file"):
        cause = text(file, "cause") or text(file, "resultReason")
        yield f"result file: {text(file, 'state')}" + (f" ({cause})" if cause else "")
    if adapter := section(shown, "adapter"):
        yield f"adapter {text(adapter, 'container')!r}: {_container(adapter)}"
    if last := section(shown, "lastEndedRun"):
        yield f"its last run that ended: {_ended(last)}"
    pod = section(shown, "pod")
    if blocked := section(pod, "blockedBy"):
        yield f"init container {text(blocked, 'container')!r} blocks it: {_container(blocked)}"
    if text(pod, "disruption"):
        yield f"the Pod was disrupted: {text(pod, 'disruption')}"
    if text(pod, "look") not in {"", "seen"}:
        yield f"reading the Pod: {text(pod, 'look')}"
    if "reaper" in shown:
        yield "written by status-ctl reap, which cannot read the result file"
    if verdict.after:
        yield f"after that the adapter ended: {_ended(verdict.after)}"
    if late := verdict.late:
        said = ": ".join(filter(None, (text(late, "reason"), text(late, "message"))))
        seen = text(late, "observedAt")
        yield f"a result arrived after the verdict: {text(late, 'status')} {said} ({seen})"
    waited = shown.get("waitedSeconds")
    if isinstance(waited, int | float):
        yield f"waited {waited:.0f} s; seen at {text(shown, 'observedAt')} in Pod {verdict.pod}"


def _container(shown: Mapping[str, Any]) -> str:
    state = text(shown, "state")
    restarts = number(shown, "restarts") or 0
    again = f", restarted {restarts} times" if restarts else ""
    if state == "terminated":
        return _ended(shown) + again
    why = ": ".join(filter(None, (text(shown, "reason"), text(shown, "message"))))
    last = section(shown, "last")
    before = f"; previous run: {_ended(last)}" if last else ""
    return state + (f" ({why})" if why else "") + again + before


def _ended(run: Mapping[str, Any]) -> str:
    said = ": ".join(filter(None, (text(run, "reason"), text(run, "message"))))
    killed = ", killed, possibly out of memory" if run.get("maybeOutOfMemory") else ""
    return f"exit code {number(run, 'exitCode') or 0}" + (f" ({said})" if said else "") + killed
