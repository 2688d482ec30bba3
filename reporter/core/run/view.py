"""A run as somebody outside reads it: the document of `/status`, also made from the annotations.

Tolerant: the document may come from a newer aggregator, the annotation from Sonobuoy. Asking for
either, and showing it, is not done here.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from reporter.core.objects import items, number, section, text
from reporter.core.run.annotation import RUN_ANNOTATION
from reporter.core.run.plan import GLOBAL
from reporter.core.run.reading import Found, Reading, plain_json
from reporter.core.run.snapshot import Status
from reporter.core.run.status import API_VERSION

DECIDED: Final = frozenset({"complete", "failed", "timed_out"})
BAD: Final = frozenset({"failed", "timed_out"})
LAST: Final = frozenset({"complete", "failed"})
"""What a run's status is in the end."""

_UNSAID: Final[Mapping[str, None]] = dict.fromkeys(
    ("stale", "late", "retry_until", "attempts", "received_at", "digest", "bytes", "notes")
)

Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Look:
    """One look at a run: its document, only when the outcome is ok, else what is in the way."""

    outcome: Found
    document: Document | None = None
    detail: str = ""
    warning: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """One entry, ready to be shown. `heard` is the age of the last heartbeat in seconds.

    `share` is the progress from 0 to 1 where both numbers are known.
    """

    key: str
    plugin: str
    node: str
    status: str
    result: str
    progress: str
    share: float | None
    heard: int | None
    stale: bool
    detail: str
    attempts: int | None
    size: int | None
    received: str

    @property
    def decided(self) -> bool:
        """Whether it needs no more waiting."""
        return self.status in DECIDED

    @property
    def bad(self) -> bool:
        """Whether its results are missing."""
        return self.status in BAD


def read_document(data: bytes) -> Document | None:
    """The document of `/status`; nothing for anything else."""
    try:
        found = plain_json(data.decode())
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or found.get("status") not in tuple(Status):
        return None
    plugins = found.get("plugins")
    whole = isinstance(plugins, list) and all(isinstance(entry, dict) for entry in plugins)
    return found if whole else None


def of_reading(reading: Reading) -> Look:
    """What was read from the cluster, in the shape of `/status`.

    The aggregator's own annotation is the one that is believed: Sonobuoy's never shows an early
    failure. What the annotations do not say is null or empty, and the document is marked `partial`.
    """
    if reading.status is None:
        return Look(reading.outcome, detail=reading.detail, warning=reading.warning)
    ours = _ours(reading.pod or {})
    plugins = [_plugin(found) for found in items(reading.status, "plugins")]
    status = text(ours, "status") or text(reading.status, "status")
    decided = sum(plugin["status"] in DECIDED for plugin in plugins)
    share = ours.get("percent_complete")
    final = ours.get("final")
    tar = section(reading.status, "tar-info")
    document = {
        "status": status,
        "percent_complete": share
        if isinstance(share, int | float) and not isinstance(share, bool)
        else round(decided / len(plugins), 4)
        if plugins
        else 0.0,
        "plugins": plugins,
        "api_version": API_VERSION,
        "run": "",
        "revision": number(ours, "revision"),
        "time": "",
        "final": final if isinstance(final, bool) else status in LAST,
        "result_status": "",
        "error": None,
        "tar-info": dict(tar) if text(tar, "name") else None,
        "partial": True,
    }
    return Look(Found.OK, document, warning=reading.warning)


def rows(document: Document) -> Iterator[Row]:
    """The entries in the order they come."""
    for entry in items(document, "plugins"):
        progress = section(entry, "progress")
        total, completed = number(progress, "total"), number(progress, "completed")
        plugin, node = text(entry, "name"), text(entry, "node")
        error = section(entry, "error")
        yield Row(
            key=text(entry, "key") or f"{plugin}/{node or GLOBAL}",
            plugin=plugin,
            node=node,
            status=text(entry, "status"),
            result=text(entry, "result_status"),
            progress=_counted(completed, total, _failures(progress)),
            share=_share(completed, total),
            heard=number(entry, "last-heartbeat"),
            stale=entry.get("stale") is True,
            detail=text(error, "text") or text(error, "reason") or text(progress, "msg"),
            attempts=number(entry, "attempts"),
            size=number(entry, "bytes"),
            received=text(entry, "received_at"),
        )


def failed(document: Document) -> bool:
    """Whether the run has failed, be it early."""
    return text(document, "status") == Status.FAILED


def over(document: Document) -> bool:
    """Whether nothing will change any more.

    Who says nothing of that, as the proposal's own fields do not, ends with its last word.
    """
    said = document.get("final")
    return said if isinstance(said, bool) else text(document, "status") in LAST


def percent(document: Document) -> int:
    """How much is decided, from 0 to 100, whatever is written there; 100 only when all is."""
    share = document.get("percent_complete")
    if not isinstance(share, int | float):
        return 0
    return round(min(max(share, 0), 1) * 10_000) // 100


def _ours(pod: Mapping[str, Any]) -> Mapping[str, Any]:
    value = text(section(pod, "metadata", "annotations"), RUN_ANNOTATION)
    try:
        found = plain_json(value)
    except (ValueError, RecursionError):
        return {}
    known = isinstance(found, dict) and found.get("status") in tuple(Status)
    return found if known else {}


def _plugin(found: Mapping[str, Any]) -> dict[str, Any]:
    plugin, node, verdict = text(found, "plugin"), text(found, "node"), text(found, "result-status")
    timed_out = text(found, "status") == "failed" and verdict == "timeout"
    return {
        "name": plugin,
        "node": "" if node == GLOBAL else node,
        "status": "timed_out" if timed_out else text(found, "status"),
        "last-heartbeat": None,
        "key": f"{plugin}/{node}",
        "result_status": verdict,
        "result_counts": found.get("result-counts"),
        "error": None,
        "progress": found.get("progress"),
        **_UNSAID,
    }


def _failures(progress: Mapping[str, Any]) -> int:
    listed = progress.get("failures")
    return number(progress, "failures_total") or (len(listed) if isinstance(listed, list) else 0)


def _counted(completed: int | None, total: int | None, failures: int) -> str:
    if completed is None and total is None:
        return ""
    of = "" if total is None else f"/{total}"
    bad = f" ({failures} failed)" if failures else ""
    return f"{completed or 0}{of}{bad}"


def _share(completed: int | None, total: int | None) -> float | None:
    if completed is None or not total or total < 0:
        return None
    return min(max(completed / total, 0.0), 1.0)
