"""What was seen of a run's objects, as small values: made when an object arrives, which then goes.

`verdict.pod` reads the Pods, `jobs` and `verdict.not_starting` have the words.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from reporter.common.objects import Object, items, moment, section, text
from reporter.common.text import clean
from reporter.jobs.check_pod import PodView, check_pod
from reporter.jobs.finding import event_time, last_event
from reporter.jobs.job import WrittenVerdict, written_verdicts
from reporter.jobs.job import ended as is_over
from reporter.launch.added_container import SIDECAR, WORKER
from reporter.launch.job import plugin_container
from reporter.launch.situation import DELETED, SETTLE, Row, Situation, hindered
from reporter.run.definition import Definition
from reporter.run.launch_file import Launch
from reporter.run.names import PLUGIN_LABEL, entry_name, key_of
from reporter.run.plan import Key
from reporter.run.record import Cause
from reporter.verdict.condition import read_job as read_facts
from reporter.verdict.decide import ended_by_itself
from reporter.verdict.facts import Container, Pod, Running, Terminated, Waiting
from reporter.verdict.not_starting import trouble_of
from reporter.verdict.pod import EVICTING, Names, read_container
from reporter.verdict.pod import read_pod as read_facts_of_pod

LATE: Final = 10.0  # how long the end of a container may take to be seen

_UPLOADS: Final = {"result-file": SIDECAR, "done-file": WORKER}
_TEXT: Final = 1024  # bytes
_NAMED: Final = EVICTING | {"DeadlineExceeded"}
_REFUSED: Final = "FailedCreate"


@dataclass(frozen=True, slots=True)
class SeenJob:
    """A Job. `owner` is the UID of its ConfigMap.

    `failed` is the reason of its failure, `verdict` the final word of our sidecar on it.
    """

    name: str
    uid: str = ""
    key: Key | None = None
    owner: str = ""
    deleting: bool = False
    over: bool = False
    failed: str = ""
    verdict: WrittenVerdict | None = None

    def made_for(self, key: Key, run: str, owner: str) -> bool:
        """Whether that run has made it for that entry, whatever its labels say."""
        return (self.name, self.key, self.owner) == (entry_name(run, key), key, owner)


@dataclass(frozen=True, slots=True)
class SeenPod:
    """A plugin's Pod, `job` and `job_uid` tell whose; times are the API's.

    `started_at` and `ended` are of the plugin's container, `trouble` is what keeps it from
    starting; `by_itself` says that it ended before anybody asked for it. `ours_running`: the
    container that uploads still runs, ours or, under the contract `link`, the plugin's.
    `taken_away` says why the Pod is, if it is. `containers` are those that have a log.
    """

    name: str
    uid: str = ""
    job: str = ""
    job_uid: str = ""
    node: str = ""
    phase: str = ""
    created_at: float | None = None
    container: str = ""
    waiting: str = ""
    started_at: float | None = None
    trouble: Situation | None = None
    ended: Terminated | None = None
    by_itself: bool = False
    ours_running: bool = False
    taken_away: Situation | None = None
    restarts: int = 0
    unready_at: float | None = None
    containers: tuple[str, ...] = ()

    @property
    def over(self) -> bool:
        """Whether no container of it runs or will."""
        return self.phase in {"Succeeded", "Failed"}


@dataclass(frozen=True, slots=True)
class Refusal:
    """That a Pod was refused, in the API's words. `job_uid` tells whose."""

    job_uid: str
    reason: str
    message: str
    at: float


def owner_of(found: Object) -> str:
    """Return the UID of the ConfigMap that owns an object, empty without one."""
    owners = items(section(found, "metadata"), "ownerReferences")
    return next((text(each, "uid") for each in owners if text(each, "kind") == "ConfigMap"), "")


def read_job(job: Object) -> SeenJob:
    """Read an API Job. Never raises."""
    facts = read_facts(job)
    verdicts = [found for found in written_verdicts(job) if found.final]
    return SeenJob(
        name=text(section(job, "metadata"), "name"),
        uid=facts.uid,
        key=key_of(job),
        owner=owner_of(job),
        deleting=facts.deleting,
        over=is_over(job),
        failed=facts.failure,
        verdict=verdicts[-1] if verdicts else None,
    )


def read_pod(pod: Object, launch: Launch) -> SeenPod | None:
    """Read an API Pod; nothing where its plugin is none of the run's. Never raises."""
    try:
        definition = launch.definition(text(section(pod, "metadata", "labels"), PLUGIN_LABEL))
    except KeyError:
        return None
    name, status = plugin_container(definition), section(pod, "status")
    # Our sidecar is read like any other: it, too, can be what a plugin waits for.
    facts = read_facts_of_pod(pod, Names("", name))
    own = read_container(pod, name)
    uploads = read_container(pod, _UPLOADS.get(definition.contract, name))
    run = own.state if isinstance(own.state, Terminated) else None
    ours_running = isinstance(uploads.state, Running) and not facts.finished
    return SeenPod(
        name=facts.name,
        uid=facts.uid,
        job=facts.job_name,
        job_uid=facts.job_uid,
        node=text(section(pod, "spec"), "nodeName"),
        phase=facts.phase,
        created_at=facts.created_at,
        container=name,
        waiting=own.state.reason if isinstance(own.state, Waiting) else "",
        started_at=_started_at(own),
        trouble=_trouble(pod, facts, definition),
        ended=run,
        by_itself=run is not None and ended_by_itself(facts, run),
        ours_running=ours_running,
        taken_away=_taken_away(pod, facts, ours_running=ours_running),
        restarts=own.restarts,
        unready_at=_unready_at(status),
        containers=tuple(_logged(status)),
    )


def read_event(event: Object) -> Refusal | None:
    """Read an API Event; nothing where it does not tell that a plugin's Pod was refused."""
    about = section(event, "involvedObject")
    said = last_event((event,), _REFUSED)
    if text(about, "kind") != "Job" or not said:
        return None
    message = clean(said, _TEXT).removeprefix(_REFUSED).removeprefix(":").lstrip()
    return Refusal(text(about, "uid"), _REFUSED, message, event_time(event))


def newest_pods(pods: Iterable[SeenPod]) -> dict[tuple[str, str], SeenPod]:
    """Return the Pod whose word counts: of two of one second that with the greater UID.

    It is by its Job's name and UID: anybody can give a Pod the labels of another.

    One that is taken away counts last: a Job controller that had not seen its Pod yet makes another
    one, and then deletes that.
    """
    found: dict[tuple[str, str], SeenPod] = {}
    for pod in sorted(pods, key=lambda one: (not one.taken_away, one.created_at or 0.0, one.uid)):
        found[pod.job, pod.job_uid] = pod
    return found


def newest_refusals(refusals: Iterable[Refusal]) -> dict[str, Refusal]:
    """Return the last of each object, by its UID.

    Names do not tell them apart: that of an earlier run may be the same.
    """
    return {each.job_uid: each for each in sorted(refusals, key=lambda each: each.at)}


def _started_at(container: Container) -> float | None:
    """Return when its first run began, as far as the API still shows it."""
    for run in (container.last, container.state):
        if isinstance(run, Running | Terminated) and run.started_at is not None:
            return run.started_at
    return None


def _trouble(pod: Object, facts: Pod, definition: Definition) -> Situation | None:
    if facts.phase == "Pending" and not text(section(pod, "spec"), "nodeName"):
        return _unscheduled(pod, facts)
    found = trouble_of(facts)
    if found is None and definition.contract == "done-file":
        # Its plugin runs, but without our worker nobody sends what it writes.
        found = trouble_of(read_facts_of_pod(pod, Names("", WORKER)))
    if found is None:
        return None
    return hindered(
        Row.SETUP if found.row != "W1" or found.at_once else Row.IMAGE,
        found.reason or "InitContainerFailed",
        clean(found.message, _TEXT),
        clean(found.text, _TEXT),
        repeated=found.back_off,
    )


def _unscheduled(pod: Object, facts: Pod) -> Situation | None:
    """What the scheduler says; nothing before it has said anything."""
    for each in items(section(pod, "status"), "conditions"):
        if text(each, "type") == "PodScheduled" and text(each, "status") != "True":
            reason, message = text(each, "reason"), text(each, "message")
            away = reason == "Unschedulable" and node_is_away(message)
            found = check_pod(PodView(pod, facts.created_at or 0.0))
            words = next(each.what for each in found if each.code in {"unschedulable", "gated"})
            return hindered(
                Row.NODE if away else Row.SCHEDULING,
                reason,
                clean(message, _TEXT),
                clean(words, _TEXT).rstrip("."),
            )
    return None


def _taken_away(pod: Object, facts: Pod, *, ours_running: bool) -> Situation | None:
    """Say why the Pod is taken away; what the platform only means to do is no reason.

    It fails at once, but for the grace period in which our container may still send what it has.
    """
    if not (facts.deleting or facts.disrupted or facts.reason in _NAMED):
        return None
    said = next((each.what for each in check_pod(PodView(pod, 0.0))), "")
    reason = facts.reason if facts.reason in _NAMED else ""
    if not reason and facts.disruption is not None:
        reason = facts.disruption.reason
    if not reason:
        reason, said = DELETED, f"Pod {facts.name} was deleted before its result arrived"
    grace = facts.grace if facts.deletion_grace is None else facts.deletion_grace
    said, patience = clean(said, _TEXT).rstrip("."), grace + LATE if ours_running else SETTLE
    return Situation(Row.TAKEN_AWAY, reason, said, said, patience, Cause.POD_FAILED)


def _unready_at(status: Object) -> float | None:
    """Return since when the Pod's node is not Ready: its own containers are, the Pod is not."""
    conditions = {text(each, "type"): each for each in items(status, "conditions")}
    ready, containers = conditions.get("Ready", {}), conditions.get("ContainersReady", {})
    if text(ready, "status") != "False" or text(containers, "status") != "True":
        return None
    return moment(ready, "lastTransitionTime")


def _logged(status: Object) -> Iterable[str]:
    for kind in ("initContainerStatuses", "containerStatuses"):
        for each in items(status, kind):
            if "waiting" not in section(each, "state") or section(each, "lastState"):
                yield text(each, "name")


# The launcher has no permission to read nodes, but kube-scheduler counts the reasons of all nodes,
# sorted as text: `0/3 nodes are available: 1 node(s) were unschedulable, 2 node(s) didn't satisfy
# plugin(s) [NodeAffinity]. ...`. It sets aside those that the Pod does not name before it looks at
# one.
_COUNTED = re.compile(r"0/(\d+) nodes are available: (.*?)\.(?: |$)", re.DOTALL)
_ASIDE: Final = frozenset(
    {
        "node(s) didn't satisfy plugin(s) [NodeAffinity]",  # since 1.31
        "node is filtered out by the prefilter result",  # 1.29 and 1.30
    }
)
_CORDONED: Final = "node(s) were unschedulable"
_NO_NODES: Final = "no nodes available to schedule pods"


def node_is_away(message: str) -> bool:
    """Return whether the only node that a Pod may run on is gone or cordoned."""
    if message.startswith(_NO_NODES):
        return True
    found = _COUNTED.match(message)
    if found is None:
        return False
    aside = 0
    for part in found[2].split(", "):
        count, _, reason = part.partition(" ")
        if reason in _ASIDE and count.isdecimal():
            aside += int(count)
        elif reason != _CORDONED:
            return False
    # Where others were looked at too, nobody knows which of them is the cordoned one.
    return aside >= int(found[1]) - 1
