"""What was seen of a run's objects, as small values: made when an object arrives, which then goes.

`verdict.pod` reads the Pods, `jobs` and `verdict.not_starting` have the words.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from reporter.common.objects import Object, items, moment, section, text
from reporter.common.text import clean
from reporter.jobs.check_pod import PodView, check_pod
from reporter.jobs.finding import event_time, last_event
from reporter.jobs.job import WrittenVerdict, written_verdicts
from reporter.jobs.job import ended as is_over
from reporter.launch.added_container import SIDECAR, WORKER
from reporter.launch.plugin_pod import plugin_container
from reporter.launch.scheduling import node_is_away
from reporter.run.definition import Definition
from reporter.run.names import PLUGIN_LABEL, key_of
from reporter.run.plan import Key
from reporter.run.spec import Launch
from reporter.verdict.condition import read_job as read_facts
from reporter.verdict.decide import ended_by_itself
from reporter.verdict.facts import Container, Pod, Running, Terminated, Waiting
from reporter.verdict.not_starting import trouble_of
from reporter.verdict.pod import EVICTING, Names, read_container
from reporter.verdict.pod import read_pod as read_facts_of_pod

_UPLOADS: Final = {"result-file": SIDECAR, "done-file": WORKER}
_TEXT: Final = 1024  # bytes
_NAMED: Final = EVICTING | {"DeadlineExceeded"}
DELETED: Final = "PodDeleted"


class Hindrance(StrEnum):
    """What keeps a plugin's container from starting."""

    NODE = "node"  # the only node that may run it is gone or cordoned
    SCHEDULING = "scheduling"
    IMAGE = "image"
    SETUP = "setup"  # what waiting seldom resolves


@dataclass(frozen=True, slots=True)
class PluginTrouble:
    """What keeps a plugin's container from starting.

    `reason` and `message` are the cluster's, `text` is both as a sentence. `repeated` says that the
    kubelet only repeats that it waits: the cause was shown before.
    """

    kind: Hindrance
    reason: str
    message: str
    text: str
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class Taken:
    """Why a Pod is taken away, and how long its containers may take to end, in seconds."""

    reason: str
    text: str
    grace: float


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


@dataclass(frozen=True, slots=True)
class SeenPod:
    """A plugin's Pod, `job` and `job_uid` tell whose; times are the API's.

    `started_at` and `ended` are of the plugin's container; `by_itself` says that it ended before
    anybody asked for it. `ours_running`: the container that uploads still runs, ours or, under the
    contract `link`, the plugin's. `containers` are those that have a log.
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
    trouble: PluginTrouble | None = None
    ended: Terminated | None = None
    by_itself: bool = False
    ours_running: bool = False
    taken: Taken | None = None
    restarts: int = 0
    unready_at: float | None = None
    containers: tuple[str, ...] = ()

    @property
    def over(self) -> bool:
        """Whether no container of it runs or will."""
        return self.phase in {"Succeeded", "Failed"}


@dataclass(frozen=True, slots=True)
class Refusal:
    """That a Pod was refused. `job_uid` tells whose, `text` has the API's words."""

    job_uid: str
    text: str
    at: float


def read_job(job: Object) -> SeenJob:
    """Read an API Job. Never raises."""
    metadata, facts = section(job, "metadata"), read_facts(job)
    owners = items(metadata, "ownerReferences")
    verdicts = [found for found in written_verdicts(job) if found.final]
    return SeenJob(
        name=text(metadata, "name"),
        uid=facts.uid,
        key=key_of(job),
        owner=next((text(each, "uid") for each in owners if text(each, "kind") == "ConfigMap"), ""),
        deleting=facts.deleting,
        over=is_over(job),
        failed=facts.failure,
        verdict=verdicts[-1] if verdicts else None,
    )


def read_pod(pod: Object, launch: Launch) -> SeenPod | None:
    """Read an API Pod; nothing where its plugin is none of the run's. Never raises."""
    metadata, spec = section(pod, "metadata"), section(pod, "spec")
    try:
        definition = launch.definition(text(section(metadata, "labels"), PLUGIN_LABEL))
    except KeyError:
        return None
    name = plugin_container(definition)
    # Our sidecar is read like any other: it, too, can be what a plugin waits for.
    facts = read_facts_of_pod(pod, Names("", name))
    own = read_container(pod, name)
    uploads = read_container(pod, _UPLOADS.get(definition.contract, name))
    run = own.state if isinstance(own.state, Terminated) else None
    return SeenPod(
        name=facts.name,
        uid=facts.uid,
        job=facts.job_name,
        job_uid=facts.job_uid,
        node=text(spec, "nodeName"),
        phase=facts.phase,
        created_at=facts.created_at,
        container=name,
        waiting=own.state.reason if isinstance(own.state, Waiting) else "",
        started_at=_started_at(own),
        trouble=_trouble(pod, facts, definition),
        ended=run,
        by_itself=run is not None and ended_by_itself(facts, run),
        ours_running=isinstance(uploads.state, Running) and not facts.finished,
        taken=_taken(pod, facts),
        restarts=own.restarts,
        unready_at=_unready_at(section(pod, "status")),
        containers=tuple(_logged(section(pod, "status"))),
    )


def read_event(event: Object) -> Refusal | None:
    """Read an API Event; nothing where it does not tell that a plugin's Pod was refused."""
    about = section(event, "involvedObject")
    said = last_event((event,), "FailedCreate")
    if text(about, "kind") != "Job" or not said:
        return None
    return Refusal(text(about, "uid"), clean(said, _TEXT), event_time(event))


def newest_pods(pods: Iterable[SeenPod]) -> dict[tuple[str, str], SeenPod]:
    """Return the Pod whose word counts: of two of one second that with the greater UID.

    It is by its Job's name and UID: anybody can give a Pod the labels of another.

    One that is taken away counts last: a Job controller that had not seen its Pod yet makes another
    one, and then deletes that.
    """
    found: dict[tuple[str, str], SeenPod] = {}
    for pod in sorted(pods, key=lambda pod: (pod.taken is None, pod.created_at or 0.0, pod.uid)):
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


def _trouble(pod: Object, facts: Pod, definition: Definition) -> PluginTrouble | None:
    if facts.phase == "Pending" and not text(section(pod, "spec"), "nodeName"):
        return _unscheduled(pod, facts)
    found = trouble_of(facts)
    if found is None and definition.contract == "done-file":
        # Its plugin runs, but without our worker nobody sends what it writes.
        found = trouble_of(read_facts_of_pod(pod, Names("", WORKER)))
    if found is None:
        return None
    kind = Hindrance.SETUP if found.row != "W1" or found.at_once else Hindrance.IMAGE
    said = found.text.partition(": ")[2]
    reason, _, message = said.partition(": ")
    if not reason.isalpha():
        reason, message = "InitContainerFailed", said
    return PluginTrouble(
        kind, reason, clean(message, _TEXT), clean(found.text, _TEXT), found.back_off
    )


def _unscheduled(pod: Object, facts: Pod) -> PluginTrouble | None:
    """What the scheduler says; nothing before it has said anything."""
    said: Sequence[Object] = [
        each
        for each in items(section(pod, "status"), "conditions")
        if text(each, "type") == "PodScheduled" and text(each, "status") != "True"
    ]
    if not said:
        return None
    reason, message = text(said[0], "reason"), text(said[0], "message")
    away = reason == "Unschedulable" and node_is_away(message)
    words = check_pod(PodView(pod, facts.created_at or 0.0))
    sentence = next(each.what for each in words if each.code in {"unschedulable", "gated"})
    kind = Hindrance.NODE if away else Hindrance.SCHEDULING
    return PluginTrouble(kind, reason, clean(message, _TEXT), clean(sentence, _TEXT).rstrip("."))


def _taken(pod: Object, facts: Pod) -> Taken | None:
    """Say why the Pod is taken away; what the platform only means to do is no reason."""
    if not (facts.deleting or facts.disrupted or facts.reason in _NAMED):
        return None
    sentence = next((each.what for each in check_pod(PodView(pod, 0.0))), "")
    reason = facts.reason if facts.reason in _NAMED else ""
    if not reason and facts.disruption is not None:
        reason = facts.disruption.reason
    if not reason:
        reason, sentence = DELETED, f"Pod {facts.name} was deleted before its result arrived"
    grace = facts.grace if facts.deletion_grace is None else facts.deletion_grace
    return Taken(reason, clean(sentence, _TEXT).rstrip("."), grace)


def _unready_at(status: Object) -> float | None:
    """Return since when the Pod's node is not Ready: its own containers are, the Pod is not."""
    shown = {text(each, "type"): each for each in items(status, "conditions")}
    ready, containers = shown.get("Ready", {}), shown.get("ContainersReady", {})
    if text(ready, "status") != "False" or text(containers, "status") != "True":
        return None
    return moment(ready, "lastTransitionTime")


def _logged(status: Object) -> Iterable[str]:
    for kind in ("initContainerStatuses", "containerStatuses"):
        for each in items(status, kind):
            if "waiting" not in section(each, "state") or section(each, "lastState"):
                yield text(each, "name")
