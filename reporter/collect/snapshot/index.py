"""What a snapshot says of itself: `resources/index.json`."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from reporter.collect.snapshot.options import Choice
from reporter.common.objects import stamp
from reporter.common.text import clean
from reporter.errors import KubeError
from reporter.kube.resources import DiscoveryTrouble, Resource

_VERSION: Final = 1
_WORDS: Final = 1024


class Truncated(Exception):
    """There is to be no more of it; the text says why."""


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

    @contextmanager
    def noting(self, whose: str = "") -> Iterator[None]:
        """Note what goes wrong, and go on behind: what came before is kept."""
        try:
            yield
        except Truncated as why:
            self.truncated = str(why)
        except KubeError as error:
            self.error = f"{whose}{error}"
        except (OSError, ValueError, RecursionError) as error:
            self.error = f"{whose}{type(error).__name__}: {error}"

    def add(self, part: "Collected") -> None:
        """Add what became of a part; the first reason of each sort stays."""
        self.count += part.count
        self.size += part.size
        self.redacted += part.redacted
        self.truncated = self.truncated or part.truncated
        self.error = self.error or part.error

    def document(self) -> dict[str, Any]:
        """Write it; what did not happen is left out."""
        found = {
            "truncated": self.truncated,
            "inconsistent": self.inconsistent,
            "error": clean(self.error, _WORDS),
        }
        return {
            "count": self.count,
            "bytes": self.size,
            "seconds": round(self.seconds, 3),
            "redacted": self.redacted,
            **{name: value for name, value in found.items() if value},
        }


@dataclass(slots=True, kw_only=True)
class Index:
    """Everything the index tells; filled while the snapshot goes on. Times are Unix seconds.

    `namespaces` None means all; `gone` has those that went away, and why that is thought. `parts`
    has what is no list: `hosts` and `podlogs`, where asked for. `stopped` says why not everything
    was tried.
    """

    began: float
    server_version: str = ""
    choice: Choice = field(default_factory=Choice)
    found: dict[Resource, Collected] = field(default_factory=dict)
    troubles: Sequence[DiscoveryTrouble] = ()
    namespaces: Sequence[str] | None = None
    gone: Mapping[str, str] = field(default_factory=dict)
    parts: dict[str, Collected] = field(default_factory=dict)
    stopped: str = ""
    error: str = ""

    def document(self, ended: float) -> dict[str, Any]:
        """Write it."""
        missing = Collected(truncated=self.stopped or "not tried")
        resources = [(each, self.found.get(each, missing)) for each in self.choice.chosen]
        parts = (*(found for _, found in resources), *self.parts.values())
        incomplete = self.stopped or self.error or self.troubles or self.gone
        return {
            "version": _VERSION,
            "startedAt": stamp(self.began),
            "endedAt": stamp(ended),
            "serverVersion": self.server_version,
            "complete": not incomplete and all(each.complete for each in parts),
            "resources": [
                {**_named(resource), **found.document()} for resource, found in resources
            ],
            "leftOut": [
                {**_named(resource), "reason": reason} for resource, reason in self.choice.left_out
            ],
            "groupErrors": [
                {"group": each.group, "version": each.version, "error": clean(each.text, _WORDS)}
                for each in self.troubles
            ],
            "namespaceErrors": [
                {"namespace": name, "error": clean(why, _WORDS)}
                for name, why in sorted(self.gone.items())
            ],
            **{name: found.document() for name, found in self.parts.items()},
            **({} if self.namespaces is None else {"namespaces": list(self.namespaces)}),
            **({"stopped": self.stopped} if self.stopped else {}),
            **({"error": clean(self.error, _WORDS)} if self.error else {}),
        }


def _named(resource: Resource) -> dict[str, Any]:
    return {
        "group": resource.group,
        "version": resource.version,
        "resource": resource.plural,
        "kind": resource.kind,
        "namespaced": resource.namespaced,
    }
