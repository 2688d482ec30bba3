"""The document of `/status`, as far as the annotations on the aggregator's Pod tell it.

Tolerant: the annotation may be Sonobuoy's.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from reporter.common.objects import items, number, section, text
from reporter.run.annotation import MANY, RUN_ANNOTATION
from reporter.run.entry import State
from reporter.run.plan import GLOBAL
from reporter.run.pod_status import Reading, ReadOutcome, plain_json
from reporter.run.results import ResultStatus
from reporter.run.state import Status
from reporter.run.status import API_VERSION
from reporter.run.view import BAD, COUNTS, LAST, Look, counts

_UNSAID: Final[Mapping[str, None]] = dict.fromkeys(
    ("stale", "late", "retry_until", "attempts", "received_at", "digest", "bytes", "notes")
)


def of_reading(reading: Reading) -> Look:
    """Return what was read from the cluster, in the shape of `/status`.

    The aggregator's own annotation is the one that is believed: Sonobuoy's never shows an early
    failure. Fields that the annotations do not have are null or empty, and the document is marked
    `partial`.
    """
    if reading.status is None:
        return Look(reading.outcome, detail=reading.detail, warning=reading.warning)
    ours = _ours(reading.pod or {})
    why = section(ours, "why")
    plugins = list(_plugins(reading.status, why))
    status = text(ours, "status") or text(reading.status, "status")
    counted = _told_counts(ours, len(plugins)) or counts({"plugins": plugins})
    whole = counted["entries"]
    final = ours.get("final")
    tar = section(reading.status, "tar-info")
    document = {
        "status": status,
        "percent_complete": _share_of(ours, "percent_complete", counted["decided"], whole),
        "plugins_reported": _share_of(ours, "plugins_reported", counted["received"], whole),
        "counts": counted,
        "plugins": plugins,
        "api_version": API_VERSION,
        "run": text(ours, "run"),
        "revision": number(ours, "revision"),
        "time": "",
        "final": final if isinstance(final, bool) else status in LAST,
        "result_status": text(ours, "result_status") or _rolled_up(plugins),
        "result_counts": None,
        "error": None,
        "tar-info": dict(tar) if text(tar, "name") else None,
        "retrieved_at": text(ours, "retrieved_at") or None,
        "upload": section(ours, "upload") or None,
        "partial": True,
    }
    return Look(ReadOutcome.OK, document, warning=reading.warning)


def _ours(pod: Mapping[str, Any]) -> Mapping[str, Any]:
    value = text(section(pod, "metadata", "annotations"), RUN_ANNOTATION)
    try:
        found = plain_json(value)
    except (ValueError, RecursionError):
        return {}
    known = isinstance(found, dict) and found.get("status") in tuple(Status)
    return found if known else {}


def _told_counts(ours: Mapping[str, Any], rows: int) -> Mapping[str, int] | None:
    """Return the counts that our annotation tells; nothing where they make no sense."""
    told = section(ours, "counts")
    found = {name: many for name in COUNTS if (many := number(told, name)) is not None}
    whole = found.get("entries", -1)
    sane = rows <= whole and all(0 <= many <= whole for many in found.values())
    return found if sane and len(found) == len(COUNTS) else None


def _plugins(status: Mapping[str, Any], why: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the entries that are listed, and those of `why` that are not listed by name.

    These come before the one that stands for several of their kind, and instead of it where it
    stands for no others.
    """
    listed = [_plugin(found, why) for found in items(status, "plugins")]
    known = {entry["key"] for entry in listed}
    named = defaultdict[tuple[str, ...], list[dict[str, Any]]](list)
    for key in why:
        entry = _named(key, why)
        if entry is not None and key not in known:
            named[_kind(entry)].append(entry)
    for entry in listed:
        shown = named.pop(_kind(entry), []) if entry["node"] == MANY else []
        yield from shown
        if not any(number(section(why, each["key"]), "alike") == len(shown) for each in shown):
            yield entry
    for left in named.values():
        yield from left


def _named(key: str, why: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the entry as far as `why` tells of it."""
    plugin, _, node = key.partition("/")
    status, verdict = (text(section(why, key), name) for name in ("status", "result_status"))
    if not plugin or node in ("", MANY) or status not in tuple(State):
        return None
    found = {"plugin": plugin, "node": node, "status": status, "result-status": verdict}
    return _plugin(found, why)


def _kind(entry: Mapping[str, Any]) -> tuple[str, ...]:
    return entry["name"], entry["status"], entry["result_status"]


def _plugin(found: Mapping[str, Any], why: Mapping[str, Any]) -> dict[str, Any]:
    plugin, node, verdict = text(found, "plugin"), text(found, "node"), text(found, "result-status")
    timed_out = text(found, "status") == "failed" and verdict == "timeout"
    said = section(why, f"{plugin}/{node}")
    return {
        "name": plugin,
        "node": "" if node == GLOBAL else node,
        "status": "timed_out" if timed_out else text(found, "status"),
        "last-heartbeat": None,
        "key": f"{plugin}/{node}",
        "result_status": verdict,
        "result_counts": found.get("result-counts"),
        "reason": text(said, "reason"),
        "message": text(said, "message"),
        "error": None,
        "progress": found.get("progress"),
        **_UNSAID,
    }


def _share_of(ours: Mapping[str, Any], key: str, part: int, whole: int) -> float:
    """Return the share that our annotation tells, else the counted one."""
    told = ours.get(key)
    if isinstance(told, int | float) and not isinstance(told, bool):
        return told
    return round(part / whole, 4) if whole else 0.0


def _rolled_up(plugins: Sequence[Mapping[str, Any]]) -> str:
    """Return the verdict on a run whose aggregator tells none: failed where an entry is."""
    bad = any(
        plugin["status"] in BAD or plugin["result_status"] == ResultStatus.FAILED
        for plugin in plugins
    )
    return str(ResultStatus.FAILED) if bad else ""
