"""Whether a Job changes, when it may have a reporter of an earlier call already."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from reporter.inject.edits import Edit, apply, get
from reporter.inject.jobs import FoundJob, jobs
from reporter.inject.options import Wishes
from reporter.inject.transform import AUTOMOUNT, Injected, Refused, Skipped, inject, uninject

_SOMETIMES: Final = frozenset(
    {"ports", "restartPolicy", "runAsUser", "runAsGroup", "subPath", "subPathExpr", AUTOMOUNT}
)
"""Keys of our parts that no API server adds: one that is not wanted any more is an old one."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What is said of a Job, and its changes: `out` first, then `put_in` on what that gives."""

    found: FoundJob
    said: Injected | Skipped | Refused
    out: tuple[Edit, ...] = ()
    put_in: tuple[Edit, ...] = ()

    @property
    def changes(self) -> bool:
        """Whether anything changes."""
        return bool(self.out or self.put_in)


def decide(value: Any, found: FoundJob, wishes: Wishes) -> Decision:
    """Decide about one Job of an object: as if it had never had a reporter of `inject`."""
    out = uninject(value, found)
    if not out:
        said = inject(value, found, wishes)
        return Decision(found, said, (), said.edits if isinstance(said, Injected) else ())
    before = apply(value, out)
    bare = next(each for each in jobs(before, found.at) if each.job == found.job)
    said = inject(before, bare, wishes)
    if isinstance(said, Refused):
        return Decision(found, said)
    if isinstance(said, Skipped):
        return Decision(found, said, out)
    wanted = apply(before, said.edits)
    if covers(get(value, found.job), get(wanted, found.job)):
        return Decision(found, said)
    return Decision(found, said, out, said.edits)


def covers(shown: Any, wanted: Any) -> bool:
    """Say whether all that is wanted is there: an API server adds its defaults to an object."""
    if isinstance(shown, Mapping) and isinstance(wanted, Mapping):
        if _SOMETIMES & (shown.keys() - wanted.keys()):
            return False
        return all(key in shown and covers(shown[key], part) for key, part in wanted.items())
    if isinstance(shown, list) and isinstance(wanted, list):
        return len(shown) == len(wanted) and all(map(covers, shown, wanted))
    return bool(shown == wanted)
