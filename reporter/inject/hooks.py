"""Helm hooks: when Helm creates an object, and what it must create before that.

Helm creates an object without such annotations between the events pre-install and post-install.
At one event the object with the lowest weight comes first, at one weight rights come before Jobs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from reporter.common.objects import Object, section, text

_HOOK: Final = "helm.sh/hook"
_WEIGHT: Final = "helm.sh/hook-weight"
_POLICY: Final = "helm.sh/hook-delete-policy"
_FIRST: Final = "pre-install"
_INSTALLS: Final = frozenset({_FIRST, "post-install"})


@dataclass(frozen=True, slots=True)
class Hook:
    """The events at which Helm creates an object; none where it is not a hook."""

    events: tuple[str, ...] = ()
    weight: int = 0
    policy: str = ""

    def __str__(self) -> str:
        return ",".join(self.events)


def hook_of(value: Object) -> Hook:
    """Return when Helm creates an object."""
    annotations = section(value, "metadata", "annotations")
    events = (each.strip().lower() for each in text(annotations, _HOOK).split(","))
    try:
        weight = int(text(annotations, _WEIGHT))
    except ValueError:
        weight = 0
    return Hook(tuple(filter(None, events)), weight, text(annotations, _POLICY))


def annotations_before(jobs: Sequence[Hook]) -> dict[str, str]:
    """Return the annotations of what Helm must create before all of these Jobs."""
    hooks = [each for each in jobs if each.events]
    events = dict.fromkeys(event for each in hooks for event in each.events)
    policies = {each.policy for each in jobs}
    if len(hooks) < len(jobs):
        # A Job that is no hook needs it too, from each installation and upgrade on.
        if _FIRST not in events:
            return {}
        events |= {"pre-upgrade": None}
        policies = {""}
    found = {_HOOK: ",".join(events), _WEIGHT: str(min(each.weight for each in hooks) - 1)}
    policy = policies.pop() if len(policies) == 1 else ""
    return found | ({_POLICY: policy} if policy else {})


def comes_later(other: Hook, job: Hook) -> bool:
    """Return whether, at one of a Job's events, Helm has not created the other object yet."""
    return any(_comes_later(other, event, job.weight) for event in job.events)


def _comes_later(other: Hook, event: str, weight: int) -> bool:
    if not other.events:
        return event == _FIRST
    if event in other.events:
        return other.weight > weight
    # What an installation has created stays for the events after it.
    earlier = {_FIRST: frozenset[str](), "post-install": {_FIRST}}.get(event, _INSTALLS)
    return earlier.isdisjoint(other.events)
