"""What stands on a Job whose reporter was put in: which form, and what was not there before."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

ANNOTATION: Final = "status-reporter.io/injected"


@dataclass(frozen=True, slots=True)
class InjectionRecord:
    """`added` names the lists and objects that were made for what was put in."""

    added: tuple[str, ...] = field(default=())

    def text(self) -> str:
        """Return it as the value of the annotation."""
        return json.dumps({"added": list(self.added)}, separators=(",", ":"))


def read(annotations: Mapping[str, Any]) -> InjectionRecord | None:
    """Read it; None if there is none. One that somebody has changed names nothing."""
    value = annotations.get(ANNOTATION)
    if not isinstance(value, str):
        return None
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        return InjectionRecord()
    added = found.get("added") if isinstance(found, dict) else None
    listed = added if isinstance(added, list) else []
    return InjectionRecord(tuple(each for each in listed if isinstance(each, str)))
