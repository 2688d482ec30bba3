"""What is written on a Job whose reporter has not written a final condition and no longer can.

A reporter that lives, or may still start, keeps the word: what is written meanwhile is not final,
and it replaces that. The result file cannot be seen from here, so nothing is said that it could
have refuted: no verdict rests on an exit code.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from reporter.common.objects import section, stamp, text
from reporter.jobs.finding import Object
from reporter.jobs.job import written_verdicts
from reporter.reap.owed import Owed
from reporter.reap.situation import (
    NodeLook,
    Why,
    attempt_of,
    ended_at,
    job_keeps,
    may_write,
    pod_keeps,
    start_trouble,
)
from reporter.verdict import rows
from reporter.verdict.annotation import evidence, shown_container
from reporter.verdict.case import Case, Observation
from reporter.verdict.condition import Attempt, Note, Standing, details_key
from reporter.verdict.decide import Pending, decide
from reporter.verdict.facts import Pod, PodGone, PodLook, PodSeen
from reporter.verdict.interruption import interruption
from reporter.verdict.memory import Memory, remember
from reporter.verdict.not_starting import Trouble
from reporter.verdict.payloads import FileAbsent
from reporter.verdict.pod import read_container, read_pod
from reporter.verdict.rows import Report

UNKNOWN_POD = "(unknown)"
"""The Pod of a Job whose reporter has never written anything. It sorts before every UID."""
_SHOWN = frozenset({"O", "E", "W1", "W2", "W3"})
"""Rows that the API's own words prove."""
_LAST_WORDS = frozenset({"R", "E", "D", "N", "M"})
"""Rows that a reporter writes at the end, and perhaps had no time to make final."""
_TROUBLES = {
    "W1": "its image cannot be pulled",
    "W2": "its configuration is invalid",
    "W3": "it cannot be started",
}
_UNSEEN = ("file", "lastEndedRun", "waitedSeconds", "stoppedForSeconds")


@dataclass(frozen=True, slots=True)
class Scene:
    """One Job, what is owed on it, and what the API shows at `now` (its clock, epoch seconds).

    `pod` is the newest; `settle` is the time in seconds after which an end is taken for one.
    """

    job: Object
    owed: Owed
    standing: Standing
    pod: Object | None
    node: NodeLook
    now: float
    settle: float


@dataclass(frozen=True, slots=True)
class Reap:
    """What is to be written."""

    report: Report
    final: bool
    attempt: Attempt
    evidence: Mapping[str, Any]


def reap(scene: Scene) -> Reap | Why:
    """Return what is to be written on a Job, or why nothing is. Never raises."""
    owed, note = scene.owed, scene.standing.note
    over = ended_at(scene.job) is not None
    pod = scene.pod
    if pod and note and attempt_of(read_pod(pod, owed.names)).older_than(note.attempt):
        pod = None  # the one that counts is gone
    kept = job_keeps(scene.job, scene.standing, scene.now, scene.settle) or pod_keeps(
        pod, owed, scene.node, scene.now, scene.settle, over=over
    )
    if kept:
        return kept
    facts = read_pod(pod, owed.names) if pod else _last_seen(scene)
    if pod and note and not note.attempt.same(attempt_of(facts)):
        note = None  # of an earlier attempt
    o = _observed(PodSeen(facts) if pod else PodGone(facts), scene, note)
    report = _last_word(scene, note, facts, gone=pod is None)
    if report and report.from_file and not over:
        return Why.RESULT
    # A Pod that is there keeps its token valid: a reporter that was cut off may come back.
    cut_off = pod and scene.node is not NodeLook.ALIVE and may_write(pod, facts, owed)
    attempt = _attempt(note, facts, o)
    report = report or _judged(Case(o, owed.policy), scene, pod)
    return Reap(
        rows.of_index(report, attempt.index, completions=scene.standing.job.completions),
        final=over and not cut_off,
        attempt=attempt,
        evidence=_evidence(o, scene, pod),
    )


def _last_seen(scene: Scene) -> Pod:
    """Return a Pod that is gone: its template, and how its reporter has last described it."""
    template, note = section(scene.job, "spec", "template"), scene.standing.note
    created = note.attempt.created_at if note else None
    written = next((v for v in written_verdicts(scene.job) if v.type == scene.owed.type), None)
    adapter = section((written and written.evidence) or {}, "adapter")
    shown = {
        "name": text(adapter, "container"),
        "state": {text(adapter, "state"): dict(adapter)},
        "lastState": {"terminated": section(adapter, "last")},
        "restartCount": adapter.get("restarts"),
    }
    facts = read_pod(
        {
            "metadata": {
                "name": note.attempt.pod if note else UNKNOWN_POD,
                "uid": note.attempt.pod_uid if note else "",
                "creationTimestamp": "" if created is None else stamp(created),
                "annotations": section(template, "metadata", "annotations"),
            },
            "spec": section(template, "spec"),
            "status": {"containerStatuses": [shown]},
        },
        scene.owed.names,
    )
    return facts if adapter else replace(facts, adapter=None)


def _observed(look: PodLook, scene: Scene, note: Note | None) -> Observation:
    """Return the observation of a reporter that was stopped long ago and has found no file."""
    memory = remember(Memory(0.0, scene.now), 0.0, scene.now, look, FileAbsent())
    if note and note.row in _TROUBLES:
        memory = replace(memory, trouble=Trouble(note.row, scene.standing.message))
    return Observation(
        now=0.0,
        pod=look,
        file=FileAbsent(),
        memory=memory,
        job=scene.standing.job,
        stopping_since=float("-inf"),
    )


def _last_word(scene: Scene, note: Note | None, facts: Pod, *, gone: bool) -> Report | None:
    """Return what the reporter has written and nothing has outdated.

    A result is outdated by a later run of the adapter; what was said of a Pod's end by the Pod, as
    long as there is one.
    """
    if note is None or note.row not in _LAST_WORDS:
        return None
    later = facts.adapter is not None and facts.adapter.restarts > note.attempt.restarts
    if not (gone or note.row == "M" or (note.row == "R" and not later)):
        return None
    standing, details = scene.standing, None
    if note.row == "R":
        annotations = section(scene.job, "metadata", "annotations")
        details = text(annotations, details_key(scene.owed.type)) or None
    return Report(note.row, standing.status, standing.reason, standing.message, details)


def _judged(case: Case, scene: Scene, pod: Object | None) -> Report:
    """Return the core's verdict, as far as it does not rest on the result file."""
    verdict = decide(case.o, case.policy)
    assert not isinstance(verdict, Pending)  # the time of waiting is over
    report = verdict.report
    if report.row in _SHOWN:
        return report
    if pod and (trouble := start_trouble(pod, scene.owed)):
        return rows.interrupted(f"Reporter did not start ({_TROUBLES[trouble]})", case.state)
    ended = case.pod is not None and case.pod.ended_for_good
    if report.row == "D" or (report.row == "N" and (ended or interruption(case))):
        return report
    cause = "Reporter ended"
    if pod and scene.node is not NodeLook.ALIVE:
        name = text(section(pod, "spec"), "nodeName")
        cause = (
            f"Node {name} {'was deleted' if scene.node is NodeLook.GONE else 'became unreachable'}"
        )
    return rows.interrupted(cause, case.state)


def _attempt(note: Note | None, facts: Pod, o: Observation) -> Attempt:
    if note and isinstance(o.pod, PodGone):
        return note.attempt
    started = o.job.started_at if o.job else None
    since = facts.started_at or facts.created_at or started or o.memory.waiting_since_at
    return Attempt(
        pod=facts.name,
        pod_uid=facts.uid,
        created_at=facts.created_at,
        waiting_since_at=note.attempt.waiting_since_at if note else since,
        first_started_at=o.memory.first_started_at,
        restarts=facts.adapter.restarts if facts.adapter else 0,
        index=facts.index,
    )


def _evidence(o: Observation, scene: Scene, pod: Object | None) -> Mapping[str, Any]:
    shown = evidence(o, scene.now)
    kept = {key: value for key, value in shown.items() if key not in _UNSEEN}
    own: dict[str, Any] = {}
    if pod:
        own["reporter"] = shown_container(read_container(pod, scene.owed.names.reporter))
        if scene.node is not NodeLook.ALIVE:
            name = text(section(pod, "spec"), "nodeName")
            own["node"] = {"name": name, "state": scene.node.value}
    return kept | {"reaper": own}
