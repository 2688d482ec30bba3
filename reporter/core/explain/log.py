"""What matters of a reporter's log, in words: refusals, warnings and errors."""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from reporter.core.objects import text

_REFUSED: Final = re.compile(r"\bforbidden\b", re.IGNORECASE)
_LOUD: Final = frozenset({"warning", "error", "critical"})


def refused(log: str) -> str:
    """Return the newest line that says what the reporter may not do, in words, or nothing."""
    line = next((line for line in reversed(log.splitlines()) if _REFUSED.search(line)), "")
    return _words(_decode(line)) or line


def complaints(log: str) -> tuple[str, ...]:
    """Return the warnings and errors in words, each once; of a log that is no JSON the last line.

    The kubelet keeps the end of a log, so the first line may be cut.
    """
    lines = log.splitlines()
    decoded = [found for line in lines if (found := _decode(line))]
    if lines and not decoded:
        return (lines[-1],)
    loud = (_words(found) for found in decoded if text(found, "level") in _LOUD)
    return tuple(dict.fromkeys(filter(None, loud)))


def _decode(line: str) -> Mapping[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _words(line: Mapping[str, Any]) -> str:
    about = next(filter(None, (text(line, key) for key in ("problem", "error", "job"))), "")
    hint = text(line, "hint")
    said = ": ".join(filter(None, (text(line, "message"), about)))
    return f"{said} ({hint})" if said and hint else said
