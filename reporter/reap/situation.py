"""Why a Job is left alone: its last word is there, its reporter may still speak, or a Pod comes."""

from enum import StrEnum

from reporter.common.objects import items, moment, section, text
from reporter.jobs.finding import Object
from reporter.reap.owed import Owed
from reporter.verdict.condition import Attempt, Standing
from reporter.verdict.facts import Pod, Running, Terminated, Waiting
from reporter.verdict.not_starting import waiting_row
from reporter.verdict.pod import read_container, read_pod

_CONTROLLER = "kubernetes.io/job-controller"
_OVER = frozenset({"Complete", "Failed"})


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


def ended_at(job: Object) -> float | None:
    """Return when the Job itself was over: epoch seconds, 0 where it does not say; None before."""
    for condition in items(section(job, "status"), "conditions"):
        if text(condition, "type") in _OVER and text(condition, "status") == "True":
            return moment(condition, "lastTransitionTime") or 0.0
    return None


def node_look(node: Object, now: float, settle: float) -> NodeLook:
    """Return whether a node's kubelet is heard of: its silence shows as Ready=Unknown."""
    for condition in items(section(node, "status"), "conditions"):
        if text(condition, "type") == "Ready" and text(condition, "status") == "Unknown":
            since = moment(condition, "lastTransitionTime") or 0.0
            return NodeLook.SILENT if now >= since + settle else NodeLook.ALIVE
    return NodeLook.ALIVE


def node_in_doubt(pod: Object | None, owed: Owed) -> str:
    """Return the node to look at: that of a Pod which is being taken away. Empty for others."""
    if pod is None:
        return ""
    facts = read_pod(pod, owed.names)
    doubtful = facts.taken_away or facts.phase == "Unknown"
    return text(section(pod, "spec"), "nodeName") if doubtful else ""


def job_keeps(job: Object, standing: Standing, now: float, settle: float) -> Why | None:
    """Return why nothing is to be written, as far as the Job itself shows it.

    `now` is the API server's clock in epoch seconds; `settle` the seconds that are left to a
    reporter after the end of its Job.
    """
    if standing.note is not None and standing.note.final:
        return Why.FINAL
    if standing.note is None and standing.status:
        return Why.FOREIGN
    if standing.job.deleting:
        return Why.DELETED
    if standing.note is None:
        spec = section(job, "spec")
        if spec.get("completions") == 0:
            return Why.NEEDLESS
        # Its Pods may be in another cluster.
        if text(spec, "managedBy") not in {"", _CONTROLLER}:
            return Why.MANAGED
    ended = ended_at(job)
    if ended is None:
        return Why.SUSPENDED if standing.job.suspended else None
    return Why.SETTLING if now < ended + settle else None


def pod_keeps(
    pod: Object | None,
    owed: Owed,
    node: NodeLook,
    now: float,
    settle: float,
    *,
    over: bool,
) -> Why | None:
    """Return why the newest Pod says that nothing is to be written; `over`: the Job has ended."""
    if pod is None:
        return None if over else Why.NO_POD
    facts = read_pod(pod, owed.names)
    if facts.finished:
        return None if over else Why.ENDING
    if node is not NodeLook.ALIVE:
        return None
    if over:
        return Why.ALIVE if may_write(pod, facts, owed) else None
    settled = now >= (facts.started_at or facts.created_at or now) + settle
    return None if settled and start_trouble(pod, owed) else Why.ALIVE


def may_write(pod: Object, facts: Pod, owed: Owed) -> bool:
    """Return whether the reporter in this Pod runs, as far as is known, or may be started."""
    match read_container(pod, owed.names.reporter).state:
        case Running():
            return True
        case Terminated(exit_code):
            return not facts.stopping and facts.own_restart.restarts_after(exit_code)
        case _:
            return not facts.stopping


def start_trouble(pod: Object, owed: Owed) -> str:
    """Return the row of what has kept the reporter from ever starting; empty for nothing."""
    container = read_container(pod, owed.names.reporter)
    if not isinstance(container.state, Waiting) or container.last or container.restarts:
        return ""
    return waiting_row(container.state)


def attempt_of(facts: Pod) -> Attempt:
    """Return the attempt of a Pod, for comparing it with another."""
    return Attempt(facts.name, facts.uid, facts.created_at, facts.created_at or 0.0)
