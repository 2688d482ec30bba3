"""A run's status from the aggregator's Pod: which Pod, what it says, and that as `/status` does.

Typed outcomes for every way that can go wrong; asking the API server is not done here.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, NamedTuple

from reporter.common.objects import items, number, section, text
from reporter.common.text import clean
from reporter.run.annotation import MANY, RUN_ANNOTATION, STATUS_ANNOTATION
from reporter.run.entry import State
from reporter.run.plan import GLOBAL
from reporter.run.results import ResultStatus
from reporter.run.state import share
from reporter.run.status import API_VERSION
from reporter.run.view import (
    BAD,
    COUNTS,
    LAST,
    Look,
    ReadOutcome,
    counts,
    known_status,
    plain_json,
    plain_object,
)
from reporter.verdict.not_starting import IMAGE

LABELS: Final = (("sonobuoy-component", "aggregator"), ("run", "sonobuoy-master"))
"""How the Pod of an aggregator is labelled, newest way first."""
_ENDED = frozenset({"Succeeded", "Failed"})
NAMED: Final = 5
"""Of several aggregators, so many are named."""


class Picked(NamedTuple):
    """The Pod to read, if there is one, and a remark on the choice."""

    pod: Mapping[str, Any] | None
    warning: str = ""


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read: `status` is the annotation's object, only when the outcome is ok.

    The Pod comes with every outcome that has one. `detail` says in words what is in the way.
    """

    outcome: ReadOutcome
    pod: Mapping[str, Any] | None = None
    status: Mapping[str, Any] | None = None
    warning: str = ""
    detail: str = ""


def pick_pod(pods: Sequence[Mapping[str, Any]]) -> Picked:
    """Choose the aggregator's Pod by its label: the new label wins, then the first in the list."""
    for name, value in LABELS:
        labelled = [pod for pod in pods if section(pod, "metadata", "labels").get(name) == value]
        if labelled:
            return Picked(labelled[0], _several(labelled) if len(labelled) > 1 else "")
    return Picked(None)


def read_status(pod: Mapping[str, Any], warning: str = "") -> Reading:
    """Return what the aggregator's Pod says of its run."""

    def reading(
        outcome: ReadOutcome, detail: str = "", status: Mapping[str, Any] | None = None
    ) -> Reading:
        return Reading(outcome, pod, status, warning, detail)

    phase = text(section(pod, "status"), "phase")
    if phase != "Running" and not (phase in _ENDED and _ours(pod).get("final") is True):
        return reading(
            ReadOutcome.POD_NOT_RUNNING, f"the pod is {phase or 'without a phase'}{_why(pod)}"
        )
    value = section(pod, "metadata", "annotations").get(STATUS_ANNOTATION)
    if not isinstance(value, str):
        return reading(ReadOutcome.NO_STATUS, f"the pod has no annotation {STATUS_ANNOTATION}")
    try:
        status = plain_json(value)
    except (ValueError, RecursionError):
        return reading(ReadOutcome.BAD_STATUS, f"the annotation {STATUS_ANNOTATION} is not JSON")
    if not isinstance(status, dict) or not known_status(status):
        return reading(
            ReadOutcome.BAD_STATUS, f"the annotation {STATUS_ANNOTATION} has no known status"
        )
    return reading(ReadOutcome.OK, status=status)


def newest_first(pods: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Sort the Pods of one run: a Job's Pod may have been replaced."""

    def created(pod: Mapping[str, Any]) -> str:
        return text(section(pod, "metadata"), "creationTimestamp")

    return sorted(pods, key=created, reverse=True)


def _several(pods: Sequence[Mapping[str, Any]]) -> str:
    found = [section(pod, "metadata") for pod in pods]
    names = [f"{text(each, 'namespace')}/{text(each, 'name')}" for each in found]
    listed = ", ".join(names[:NAMED])
    if len(names) > NAMED:
        listed += f" and {len(names) - NAMED} more"
    elsewhere = len({text(each, "namespace") for each in found}) > 1
    hint = "; choose another with -n NAMESPACE" if elsewhere else ""
    return f"found {len(names)} aggregators: {listed}; showing {names[0]}{hint}"


def _why(pod: Mapping[str, Any]) -> str:
    status = section(pod, "status")
    for kind in ("initContainerStatuses", "containerStatuses"):
        for container in items(status, kind):
            reason = text(section(container, "state", "waiting"), "reason")
            if reason in IMAGE:
                return f": {reason} (container {text(container, 'name')})"
    for condition in items(status, "conditions"):
        refused = text(condition, "type") == "PodScheduled" and text(condition, "status") == "False"
        if refused and (message := clean(text(condition, "message"), 512)):
            return f": {message}"
    return ""


# -- what its annotations tell, as `/status` does --------------------------------------------------

_UNSAID: Final[Mapping[str, None]] = dict.fromkeys(
    ("stale", "late", "retry_until", "attempts", "received_at", "digest", "bytes", "notes")
)


def of_reading(reading: Reading) -> Look:
    """Return what was read from the cluster, in the shape of `/status`.

    The aggregator's own annotation is the one that is believed: Sonobuoy's never shows an early
    failure. Fields that the annotations do not have are null or empty, and the document is marked
    `partial`.
    """
    if reading.status is None:
        return Look(reading.outcome, detail=reading.detail, warning=reading.warning)
    ours = _ours(reading.pod or {})
    ours = ours if known_status(ours) else {}
    why = section(ours, "why")
    plugins = list(_plugins(reading.status, why))
    status = text(ours, "status") or text(reading.status, "status")
    counted = _told_counts(ours, len(plugins)) or counts({"plugins": plugins})
    whole = counted["entries"]
    final = ours.get("final")
    tar = section(reading.status, "tar-info")
    document = {
        "status": status,
        "percent_complete": _share_of(ours, "percent_complete", counted["decided"], whole),
        "plugins_reported": _share_of(ours, "plugins_reported", counted["received"], whole),
        "counts": counted,
        "plugins": plugins,
        "api_version": API_VERSION,
        "run": text(ours, "run"),
        "revision": number(ours, "revision"),
        "time": "",
        "final": final if isinstance(final, bool) else status in LAST,
        "result_status": text(ours, "result_status") or _rolled_up(plugins),
        "result_counts": None,
        "error": None,
        "tar-info": dict(tar) if text(tar, "name") else None,
        "retrieved_at": text(ours, "retrieved_at") or None,
        "upload": section(ours, "upload") or None,
        "partial": True,
    }
    return Look(ReadOutcome.OK, document, warning=reading.warning)


def _ours(pod: Mapping[str, Any]) -> Mapping[str, Any]:
    return plain_object(text(section(pod, "metadata", "annotations"), RUN_ANNOTATION))


def _told_counts(ours: Mapping[str, Any], rows: int) -> Mapping[str, int] | None:
    """Return the counts that our annotation tells; nothing where they make no sense."""
    stated = section(ours, "counts")
    found = {name: many for name in COUNTS if (many := number(stated, name)) is not None}
    whole = found.get("entries", -1)
    sane = rows <= whole and all(0 <= many <= whole for many in found.values())
    return found if sane and len(found) == len(COUNTS) else None


def _plugins(status: Mapping[str, Any], why: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the entries that are listed, and those of `why` that are not listed by name.

    These come before the one that stands for several of their kind, and instead of it where it
    stands for no others.
    """
    listed = [_plugin(found, why) for found in items(status, "plugins")]
    known = {entry["key"] for entry in listed}
    named: defaultdict[tuple[str, ...], list[dict[str, Any]]] = defaultdict(list)
    for key in why:
        if key not in known and (entry := _named(key, why)):
            named[_kind(entry)].append(entry)
    for entry in listed:
        same = named.pop(_kind(entry), []) if entry["node"] == MANY else []
        yield from same
        if not any(number(section(why, each["key"]), "alike") == len(same) for each in same):
            yield entry
    yield from chain(*named.values())


def _named(key: str, why: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the entry as far as `why` tells of it."""
    plugin, _, node = key.partition("/")
    status, verdict = (text(section(why, key), name) for name in ("status", "result_status"))
    if not plugin or node in ("", MANY) or status not in tuple(State):
        return None
    found = {"plugin": plugin, "node": node, "status": status, "result-status": verdict}
    return _plugin(found, why)


def _kind(entry: Mapping[str, Any]) -> tuple[str, ...]:
    return entry["name"], entry["status"], entry["result_status"]


def _plugin(found: Mapping[str, Any], why: Mapping[str, Any]) -> dict[str, Any]:
    plugin, node, verdict = text(found, "plugin"), text(found, "node"), text(found, "result-status")
    timed_out = text(found, "status") == "failed" and verdict == "timeout"
    said = section(why, f"{plugin}/{node}")
    return {
        "name": plugin,
        "node": "" if node == GLOBAL else node,
        "status": "timed_out" if timed_out else text(found, "status"),
        "last-heartbeat": None,
        "key": f"{plugin}/{node}",
        "result_status": verdict,
        "result_counts": found.get("result-counts"),
        "reason": text(said, "reason"),
        "message": text(said, "message"),
        "error": None,
        "progress": found.get("progress"),
        **_UNSAID,
    }


def _share_of(ours: Mapping[str, Any], key: str, part: int, whole: int) -> float:
    """Return the share that our annotation tells, else the counted one."""
    stated = ours.get(key)
    if isinstance(stated, int | float) and not isinstance(stated, bool):
        return stated
    return share(part, whole) if whole else 0.0


def _rolled_up(plugins: Sequence[Mapping[str, Any]]) -> str:
    """Return the verdict on a run whose aggregator tells none: failed where an entry is."""
    bad = any(
        plugin["status"] in BAD or plugin["result_status"] == ResultStatus.FAILED
        for plugin in plugins
    )
    return str(ResultStatus.FAILED) if bad else ""
