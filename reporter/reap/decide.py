"""What is owed on a Job, why it is left alone, and what is written once its reporter cannot write.

A reporter that lives, or may still start, keeps the word: what is written meanwhile is not final,
and it replaces that. The result file cannot be seen from here, so nothing is said that it could
have refuted: no verdict rests on an exit code.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from reporter.common.objects import Object, View, items, moment, number, section, stamp, text
from reporter.jobs.job import ENDED, written_verdicts
from reporter.jobs.setting import LABEL, Setup, find_setups
from reporter.verdict import rows
from reporter.verdict.case import Case, Observation, Policy
from reporter.verdict.condition import DEFAULT_TYPE, Attempt, Note, Standing, details_key
from reporter.verdict.decide import Pending, decide, why_taken_away
from reporter.verdict.evidence import evidence, shown_container
from reporter.verdict.facts import (
    FileAbsent,
    Form,
    Pod,
    PodGone,
    PodLook,
    PodSeen,
    Running,
    Terminated,
    Waiting,
)
from reporter.verdict.history import History, remember
from reporter.verdict.not_starting import Trouble, waiting_row
from reporter.verdict.pod import Names, read_container, read_pod
from reporter.verdict.rows import Report, Row

UNKNOWN_POD = "(unknown)"
"""The Pod of a Job whose reporter has never written anything. It sorts before every UID."""
_CONTROLLER = "kubernetes.io/job-controller"
_SHOWN = frozenset({Row.OUT_OF_MEMORY, Row.EVICTED, Row.IMAGE, Row.CONFIG, Row.START})
"""Rows that the API's own words prove."""
_LAST_WORDS = frozenset({Row.RESULT, Row.EVICTED, Row.DEADLINE, Row.INTERRUPTED, Row.MISFIT})
"""Rows that a reporter writes at the end, and perhaps had no time to make final."""
_TROUBLES = {
    Row.IMAGE: "its image cannot be pulled",
    Row.CONFIG: "its configuration is invalid",
    Row.START: "it cannot be started",
}
_UNSEEN = ("file", "lastEndedRun", "waitedSeconds", "stoppedForSeconds")


class Why(StrEnum):
    """Why a Job is left alone."""

    FINAL = "its verdict is final"
    FOREIGN = "another writer has set its condition"
    DELETED = "it is being deleted"
    SUSPENDED = "it is suspended"
    SETTLING = "it ended a moment ago"
    NO_POD = "it has no Pod yet"
    ENDING = "its Pod has ended, the Job has not"
    ALIVE = "its reporter is running or may start"
    RESULT = "it has a result"
    SAID = "it says so already"
    NEEDLESS = "it needs no Pod"
    MANAGED = "a controller other than Kubernetes' own manages it"
    UNSELECTED = "its Pods cannot be selected by labels"


class NodeLook(StrEnum):
    """What the API shows of the node of a Pod."""

    ALIVE = "alive"
    SILENT = "unreachable"  # nothing was heard of its kubelet for longer than the settle time
    GONE = "deleted"


@dataclass(frozen=True, slots=True)
class Owed:
    """A condition that somebody waits for, and how its reporter would have judged."""

    type: str
    names: Names = field(default_factory=Names)
    policy: Policy = field(default_factory=Policy)


class NewestPod:
    """The newest Pod of a Job, as far as a condition of its reporter depends on it."""

    def __init__(self, pod: Object, owed: Owed) -> None:
        self.facts = facts = read_pod(pod, owed.names)
        self.reporter = read_container(pod, owed.names.reporter)
        self.node = text(section(pod, "spec"), "nodeName")
        self.attempt = Attempt(facts.name, facts.uid, facts.created_at, facts.created_at or 0.0)

    @property
    def doubtful_node(self) -> str:
        """The node to look at: that of a Pod which is being taken away. Empty for others."""
        return self.node if self.facts.taken_away or self.facts.phase == "Unknown" else ""

    @property
    def may_write(self) -> bool:
        """Whether the reporter runs, as far as is known, or may be started."""
        facts = self.facts
        match self.reporter.state:
            case Running():
                return True
            case Terminated(exit_code):
                return not facts.stopping and facts.own_restart.restarts_after(exit_code)
            case _:
                return not facts.stopping

    @property
    def trouble(self) -> Row | None:
        """The row of what has kept the reporter from ever starting, if anything has."""
        state = self.reporter.state
        if not isinstance(state, Waiting) or self.reporter.last or self.reporter.restarts:
            return None
        return waiting_row(state)


@dataclass(frozen=True, slots=True)
class Scene:
    """One Job, what is owed on it, and what the API shows at `now` (its clock, epoch seconds).

    `settle` is the time in seconds after which an end is taken for one.
    """

    job: Object
    owed: Owed
    standing: Standing
    pod: NewestPod | None
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


def conditions_owed(job: Object) -> list[Owed]:
    """Return the conditions that are to be on a Job; none where it has no reporter of ours.

    A type that the template does not show, because it comes from a ConfigMap for instance, is known
    once it is on the Job.
    """
    setups = find_setups(section(job, "spec", "template", "spec"))
    own = [each for each in setups if not any(each.elsewhere(job))]
    unnamed = [each for each in own if _hides_type(each.container)]
    known = {each.condition: _owed(each.condition, each) for each in own if each not in unnamed}
    for written in written_verdicts(job):
        if written.type not in known:
            known[written.type] = _owed(written.type, unnamed[0] if unnamed else None)
    labelled = text(View(job).labels, LABEL) in set(Form)
    if labelled and not setups and not known:
        known[DEFAULT_TYPE] = Owed(DEFAULT_TYPE)
    return list(known.values())


def _owed(kind: str, setup: Setup | None) -> Owed:
    return Owed(kind) if setup is None else Owed(kind, setup.names, Policy(form=setup.form))


def _hides_type(container: Object) -> bool:
    """Return whether the value of the container's CONDITION_TYPE is not in the template."""
    own = [each for each in items(container, "env") if text(each, "name") == "CONDITION_TYPE"]
    if not own:
        return any(True for _ in items(container, "envFrom"))
    return any("valueFrom" in each or "$(" in text(each, "value") for each in own)


def ended_at(job: Object) -> float | None:
    """Return when the Job itself was over: epoch seconds, 0 where it does not say; None before."""
    if over := View(job).condition(*ENDED, status="True"):
        return moment(over, "lastTransitionTime") or 0.0
    # After an outage its controller may count the last failure and never look at the Job again.
    status, limit = section(job, "status"), number(section(job, "spec"), "backoffLimit")
    active = number(status, "active") or number(status, "terminating")
    spent = limit is not None and (number(status, "failed") or 0) > limit
    return 0.0 if spent and not active else None


def node_look(node: Object, now: float, settle: float) -> NodeLook:
    """Return whether a node's kubelet is heard of: its silence shows as Ready=Unknown."""
    unknown = View(node).condition("Ready", status="Unknown")
    since = moment(unknown, "lastTransitionTime") or 0.0
    return NodeLook.SILENT if unknown and now >= since + settle else NodeLook.ALIVE


def job_keeps(job: Object, standing: Standing, now: float, settle: float) -> Why | None:
    """Return why nothing is to be written, as far as the Job itself shows it.

    `now` is the API server's clock in epoch seconds; `settle` the seconds that are left to a
    reporter after the end of its Job.
    """
    note, spec, ended = standing.note, section(job, "spec"), ended_at(job)
    if note and standing.final:
        return Why.FINAL
    if not note and standing.status:
        return Why.FOREIGN
    if standing.job.deleting:
        return Why.DELETED
    if not note and spec.get("completions") == 0:
        return Why.NEEDLESS
    # Its Pods may be in another cluster.
    if not note and text(spec, "managedBy") not in {"", _CONTROLLER}:
        return Why.MANAGED
    if ended is None:
        return Why.SUSPENDED if standing.job.suspended else None
    return Why.SETTLING if now < ended + settle else None


def pod_keeps(
    pod: NewestPod | None, node: NodeLook, now: float, settle: float, *, over: bool
) -> Why | None:
    """Return why the newest Pod says that nothing is to be written; `over`: the Job has ended."""
    if pod is None:
        return None if over else Why.NO_POD
    facts = pod.facts
    if facts.finished:
        return None if over else Why.ENDING
    if node is not NodeLook.ALIVE:
        return None
    if over:
        return Why.ALIVE if pod.may_write else None
    settled = now >= (facts.started_at or facts.created_at or now) + settle
    return None if settled and pod.trouble else Why.ALIVE


def reap(scene: Scene) -> Reap | Why:
    """Return what is to be written on a Job, or why nothing is. Never raises."""
    note, pod = scene.standing.note, scene.pod
    over = ended_at(scene.job) is not None
    if pod and note and pod.attempt.older_than(note.attempt):
        pod = None  # the one that counts is gone
    kept = job_keeps(scene.job, scene.standing, scene.now, scene.settle) or pod_keeps(
        pod, scene.node, scene.now, scene.settle, over=over
    )
    if kept:
        return kept
    facts = pod.facts if pod else _last_seen(scene)
    if pod and note and not note.attempt.same(pod.attempt):
        note = None  # of an earlier attempt
    o = _observed(PodSeen(facts) if pod else PodGone(facts), scene, note)
    report = _last_word(scene, note, facts, gone=pod is None)
    if report and report.from_file and not over:
        return Why.RESULT
    # A Pod that is there keeps its token valid: a reporter that was cut off may come back.
    cut_off = pod and scene.node is not NodeLook.ALIVE and pod.may_write
    attempt = note.attempt if note and not pod else _attempt(note, facts, o)
    report = report or _judged(Case(o, scene.owed.policy), scene.node, pod)
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
                "annotations": View(template).annotations,
            },
            "spec": section(template, "spec"),
            "status": {"containerStatuses": [shown]},
        },
        scene.owed.names,
    )
    return facts if adapter else replace(facts, adapter=None)


def _observed(look: PodLook, scene: Scene, note: Note | None) -> Observation:
    """Return the observation of a reporter that was stopped long ago and has found no file."""
    history = remember(History(0.0, scene.now), 0.0, scene.now, look, FileAbsent())
    if note and note.row in _TROUBLES:
        history = replace(history, trouble=Trouble(Row(note.row), scene.standing.message))
    return Observation(
        now=0.0,
        pod=look,
        file=FileAbsent(),
        history=history,
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
    if not (gone or note.row == Row.MISFIT or (note.row == Row.RESULT and not later)):
        return None
    standing, details = scene.standing, None
    if note.row == Row.RESULT:
        annotations = View(scene.job).annotations
        details = text(annotations, details_key(scene.owed.type)) or None
    return Report(note.row, standing.status, standing.reason, standing.message, details)


def _judged(case: Case, node: NodeLook, pod: NewestPod | None) -> Report:
    """Return the core's verdict, as far as it does not rest on the result file."""
    verdict = decide(case.o, case.policy)
    assert not isinstance(verdict, Pending)  # the time of waiting is over
    report = verdict.report
    if report.row in _SHOWN:
        return report
    if pod and (said := rows.words_left(pod.reporter)):
        return rows.unwritten(said)
    if pod and pod.trouble:
        return rows.interrupted(f"Reporter did not start ({_TROUBLES[pod.trouble]})", case.state)
    ended = case.pod is not None and case.pod.ended_for_good
    stopped = report.row == Row.INTERRUPTED and (ended or why_taken_away(case))
    if report.row == Row.DEADLINE or stopped:
        return report
    cause = "Reporter ended"
    if pod and node is not NodeLook.ALIVE:
        became = "was deleted" if node is NodeLook.GONE else "became unreachable"
        cause = f"Node {pod.node} {became}"
    return rows.interrupted(cause, case.state)


def _attempt(note: Note | None, facts: Pod, o: Observation) -> Attempt:
    started = o.job.started_at if o.job else None
    since = facts.started_at or facts.created_at or started or o.history.waiting_since_at
    return Attempt(
        pod=facts.name,
        pod_uid=facts.uid,
        created_at=facts.created_at,
        waiting_since_at=note.attempt.waiting_since_at if note else since,
        first_started_at=o.history.first_started_at,
        restarts=facts.adapter.restarts if facts.adapter else 0,
        index=facts.index,
    )


def _evidence(o: Observation, scene: Scene, pod: NewestPod | None) -> Mapping[str, Any]:
    shown = evidence(o, scene.now)
    kept = {key: value for key, value in shown.items() if key not in _UNSEEN}
    own: dict[str, Any] = {}
    if pod:
        own["reporter"] = shown_container(pod.reporter)
        if scene.node is not NodeLook.ALIVE:
            own["node"] = {"name": pod.node, "state": scene.node.value}
    return kept | {"reaper": own}
