"""Whose Pods wait for what they mount, and for longer than that usually takes."""

from collections.abc import Mapping
from typing import Final

from reporter.run.entry import Entry
from reporter.run.launcher_status import PodShown
from reporter.run.plan import Key

MOUNTED: Final = 10.0  # seconds after the launch in which a Pod usually has what it mounts
_NOT_MOUNTED: Final = frozenset({"ContainerCreating", "PodInitializing", ""})


def waiting_for_mounts(
    shown: Mapping[Key, PodShown], entries: Mapping[Key, Entry], *, now: float
) -> list[Key]:
    """List them. The kubelet says why in an Event only."""
    found = []
    for key, pod in shown.items():
        launched = entries[key].launched_at
        waits = pod.phase == "Pending" and pod.node and pod.reason in _NOT_MOUNTED
        if waits and launched is not None and now >= launched + MOUNTED:
            found.append(key)
    return found
