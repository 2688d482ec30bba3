"""Helm hooks: when Helm creates an object, and what it must create before that.

Helm creates an object without such annotations between the events pre-install and post-install.
At one event the object with the lowest weight comes first, at one weight that with the first name.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from reporter.common.objects import Object, section, text

_HOOK: Final = "helm.sh/hook"
_WEIGHT: Final = "helm.sh/hook-weight"


@dataclass(frozen=True, slots=True)
class Hook:
    """The events at which Helm creates an object; none where it is not a hook."""

    name: str
    events: tuple[str, ...] = ()
    weight: int = 0

    def __str__(self) -> str:
        return ",".join(self.events)


def hook_of(value: Object) -> Hook:
    """Return when Helm creates an object."""
    metadata = section(value, "metadata")
    annotations = section(metadata, "annotations")
    events = (each.strip().lower() for each in text(annotations, _HOOK).split(","))
    try:
        weight = int(text(annotations, _WEIGHT))
    except ValueError:
        weight = 0
    return Hook(text(metadata, "name"), tuple(filter(None, events)), weight)


def annotations_before(hooks: Sequence[Hook]) -> dict[str, str]:
    """Return the annotations of what Helm must create before all of these; none without a hook.

    There is no policy: with that of a Job, Helm deletes the rights of a reporter that still runs.
    """
    events = dict.fromkeys(event for each in hooks for event in each.events)
    weight = min(each.weight for each in hooks) - 1
    return {_HOOK: ",".join(events), _WEIGHT: str(weight)} if events else {}


def comes_later(other: Hook, job: Hook) -> bool:
    """Return whether, at one of a Job's events, Helm has surely not created the object yet."""
    return any(_comes_later(other, job, event) for event in job.events)


def _comes_later(other: Hook, job: Hook, event: str) -> bool:
    if event in other.events:
        return (other.weight, other.name) > (job.weight, job.name)
    # Nothing comes before the first event.
    return event == "pre-install" or other.events == (event.replace("pre-", "post-"),)
