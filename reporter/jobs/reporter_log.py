"""What matters in a reporter's log, in words: refusals, warnings and errors."""

import re
from collections.abc import Mapping
from typing import Any, Final

from reporter.common.defaults import REACHED, UNREACHED
from reporter.common.objects import json_object, text
from reporter.common.text import clean
from reporter.errors import Denied, Forbidden

_REFUSED: Final = re.compile(r"\bforbidden\b", re.IGNORECASE)
_FAILED: Final = "Request failed"
_REASON: Final = 1024  # bytes
_WRITTEN: Final = frozenset(
    {
        "Verdict",
        "Condition written",
        "Final verdict is already on the Job",
        "The Job is gone: nothing is left to report on",
    }
)
_NOT_WRITTEN: Final = frozenset(
    {
        "No such Job: check JOB_NAME and JOB_NAMESPACE",
        "The verdict could not be written in time",
    }
)
_LOUD: Final = frozenset({"warning", "error", "critical"})


def not_written(log: str) -> Mapping[str, Any]:
    """Return the newest line that says why nothing is on the Job, or an empty one."""
    for found in map(_decode, reversed(_unsettled(log))):
        message = text(found, "message")
        if message in _NOT_WRITTEN or (message == _FAILED and text(found, "request") == "job"):
            return found
    return {}


def link_trouble(log: str) -> str:
    """Return the newest line about trouble with the link to an aggregator, or an empty string."""
    for found in map(_decode, reversed(log.splitlines())):
        if text(found, "message") in {"Delivered to the aggregator", REACHED}:
            break
        # The link's own lines carry its plugin.
        if text(found, "level") in _LOUD and (
            "aggregator" in text(found, "message") or "plugin" in found
        ):
            return words(found)
    return ""


def unreached(log: str) -> str:
    """Return why a container of ours has not reached its aggregator, or an empty string."""
    # By "\n" alone, and only what may be it is decoded: there may be much of it.
    for line in reversed(log.split("\n")):
        if UNREACHED in line or REACHED in line:
            found = _decode(line)
            if text(found, "message") in {UNREACHED, REACHED}:
                return clean(text(found, "error"), _REASON)
    return ""


def refused(log: str) -> str:
    """Return in words the newest line about a missing permission, or an empty string."""
    line = next(filter(_tells_refusal, reversed(_unsettled(log))), "")
    return words(json_object(line) or {}) or line


def complaints(log: str) -> tuple[str, ...]:
    """Return the warnings and errors in words, each once; of a log that is not JSON, the last line.

    The kubelet keeps the end of a log, so the first line may be cut.
    """
    lines = log.splitlines()
    decoded = [found for line in lines if (found := json_object(line) or {})]
    if lines and not decoded:
        return (lines[-1],)
    loud = (words(found) for found in decoded if text(found, "level") in _LOUD)
    return tuple(dict.fromkeys(filter(None, loud)))


def _unsettled(log: str) -> list[str]:
    """Return the lines after the last successful write: what was before it no longer matters."""
    lines = log.splitlines()
    written = [at for at, line in enumerate(lines) if text(_decode(line), "message") in _WRITTEN]
    return lines[written[-1] + 1 :] if written else lines


def _tells_refusal(line: str) -> bool:
    found = json_object(line)
    if found is None:
        return _REFUSED.search(line) is not None and f"failure={Denied.failure!r}" not in line
    # Every other event may carry the word in what the adapter, a registry or a proxy has said.
    return text(found, "message") == _FAILED and text(found, "failure") == Forbidden.failure


def _decode(line: str) -> Mapping[str, Any]:
    return json_object(line) or {}


def words(line: Mapping[str, Any]) -> str:
    """Return a line in the words that a person reads."""
    listed = line.get("problems")
    problems = "; ".join(map(str, listed)) if isinstance(listed, list) else ""
    keys = ("problem", "error", "text", "job")
    about = next(filter(None, (problems, *(text(line, key) for key in keys))), "")
    hint = text(line, "hint")
    said = ": ".join(filter(None, (text(line, "message"), about)))
    return f"{said} ({hint})" if said and hint else said
