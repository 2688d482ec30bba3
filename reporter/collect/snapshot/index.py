"""What a snapshot says of itself: `resources/index.json`."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from reporter.collect.snapshot.choice import LeftOut
from reporter.common.objects import stamp
from reporter.common.text import clean
from reporter.kube.resources import DiscoveryTrouble, Resource

VERSION: Final = 1
_WORDS: Final = 1024


@dataclass(slots=True)
class Collected:
    """What became of one thing that was asked for. Bytes are those of its files.

    `truncated` says why something is missing; `inconsistent` that its pages are not all of one
    moment; `error` what went wrong last. `redacted` counts blanked values.
    """

    count: int = 0
    size: int = 0
    seconds: float = 0.0
    truncated: str = ""
    inconsistent: bool = False
    redacted: int = 0
    error: str = ""

    @property
    def complete(self) -> bool:
        """Whether all of it is there."""
        return not self.truncated and not self.error

    def document(self) -> dict[str, Any]:
        """Write it; what did not happen is left out."""
        found: dict[str, Any] = {
            "count": self.count,
            "bytes": self.size,
            "seconds": round(self.seconds, 3),
            "redacted": self.redacted,
        }
        if self.truncated:
            found["truncated"] = self.truncated
        if self.inconsistent:
            found["inconsistent"] = True
        if self.error:
            found["error"] = clean(self.error, _WORDS)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """Everything the index tells. Times are Unix seconds.

    `namespaces` None means all; `gone` has those that went away, and why that is thought. `parts`
    has what is no list: `hosts` and `podlogs`, where asked for. `stopped` says why not everything
    was tried.
    """

    began: float
    ended: float
    server_version: str
    resources: Sequence[tuple[Resource, Collected]]
    left_out: Iterable[LeftOut]
    troubles: Iterable[DiscoveryTrouble]
    namespaces: Sequence[str] | None
    gone: Mapping[str, str]
    parts: dict[str, Collected]
    stopped: str = ""
    error: str = ""


def index_document(told: Told) -> dict[str, Any]:
    """Write the index."""
    troubles = [
        {"group": each.group, "version": each.version, "error": clean(each.text, _WORDS)}
        for each in told.troubles
    ]
    gone = [
        {"namespace": name, "error": clean(why, _WORDS)} for name, why in sorted(told.gone.items())
    ]
    parts = (*(found for _, found in told.resources), *told.parts.values())
    said = told.stopped or told.error
    document: dict[str, Any] = {
        "version": VERSION,
        "startedAt": stamp(told.began),
        "endedAt": stamp(told.ended),
        "serverVersion": told.server_version,
        "complete": not (said or troubles or gone) and all(each.complete for each in parts),
        "resources": [
            {**_named(resource), **found.document()} for resource, found in told.resources
        ],
        "leftOut": [{**_named(each.resource), "reason": each.reason} for each in told.left_out],
        "groupErrors": troubles,
        "namespaceErrors": gone,
        **{name: found.document() for name, found in told.parts.items()},
    }
    if told.namespaces is not None:
        document["namespaces"] = list(told.namespaces)
    if told.stopped:
        document["stopped"] = told.stopped
    if told.error:
        document["error"] = clean(told.error, _WORDS)
    return document


def _named(resource: Resource) -> dict[str, Any]:
    return {
        "group": resource.group,
        "version": resource.version,
        "resource": resource.plural,
        "kind": resource.kind,
        "namespaced": resource.namespaced,
    }
