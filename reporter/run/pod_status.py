"""Reading a run's status from the aggregator's Pod: which Pod, and what it says.

Typed outcomes for every way that can go wrong; asking the API server is not done here.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import isfinite
from typing import Any, Final, NamedTuple, NoReturn

from reporter.common.objects import items, section, text
from reporter.common.text import clean
from reporter.run.annotation import RUN_ANNOTATION, STATUS_ANNOTATION
from reporter.run.state import Status
from reporter.verdict.not_starting import IMAGE

LABELS: Final = (("sonobuoy-component", "aggregator"), ("run", "sonobuoy-master"))
"""How the Pod of an aggregator is labelled, newest way first."""
_ENDED = frozenset({"Succeeded", "Failed"})
NAMED: Final = 5
"""Of several aggregators, so many are named."""


class ReadOutcome(StrEnum):
    """How reading the status ended."""

    OK = "ok"
    UNREACHABLE = "unreachable"
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not_found"
    POD_NOT_RUNNING = "pod_not_running"
    NO_STATUS = "no_status"
    BAD_STATUS = "bad_status"


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
        labelled = [pod for pod in pods if _labels(pod).get(name) == value]
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
    if phase != "Running" and not (phase in _ENDED and _told_its_end(pod)):
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
    if not isinstance(status, dict) or status.get("status") not in tuple(Status):
        return reading(
            ReadOutcome.BAD_STATUS, f"the annotation {STATUS_ANNOTATION} has no known status"
        )
    return reading(ReadOutcome.OK, status=status)


def newest_first(pods: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Sort the Pods of one run: a Job's Pod may have been replaced."""

    def created(pod: Mapping[str, Any]) -> str:
        return text(section(pod, "metadata"), "creationTimestamp")

    return sorted(pods, key=created, reverse=True)


def _told_its_end(pod: Mapping[str, Any]) -> bool:
    """Return whether the last that an aggregator has said of its run is final."""
    try:
        found = plain_json(text(section(pod, "metadata", "annotations"), RUN_ANNOTATION))
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and found.get("final") is True


def plain_json(written: str) -> Any:
    """Decode JSON. Raises ValueError for anything else, and for numbers without a value.

    NaN and infinity are no JSON, though Python reads and writes them.
    """
    return json.loads(written, parse_constant=_no_number, parse_float=_finite)


def _no_number(written: str) -> NoReturn:
    raise ValueError(f"not a number: {written}")


def _finite(written: str) -> float:
    found = float(written)
    return found if isfinite(found) else _no_number(written)


def _several(pods: Sequence[Mapping[str, Any]]) -> str:
    found = [section(pod, "metadata") for pod in pods]
    names = [f"{text(each, 'namespace')}/{text(each, 'name')}" for each in found]
    shown = ", ".join(names[:NAMED])
    if len(names) > NAMED:
        shown += f" and {len(names) - NAMED} more"
    elsewhere = len({text(each, "namespace") for each in found}) > 1
    hint = "; choose another with -n NAMESPACE" if elsewhere else ""
    return f"found {len(names)} aggregators: {shown}; showing {names[0]}{hint}"


def _labels(pod: Mapping[str, Any]) -> Mapping[str, Any]:
    return section(pod, "metadata", "labels")


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
