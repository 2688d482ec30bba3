"""A run as `/status` shows it: plain values for JSON.

Who may see it, caching and the HTTP side are not here, nor the annotation's other shape.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from reporter.run.entry import Entry, State
from reporter.run.heartbeats import INTERVAL, Beat, age, stale
from reporter.run.plan import GLOBAL, Key
from reporter.run.progress import Sent, clip
from reporter.run.record import Rank
from reporter.run.results import sum_of
from reporter.run.state import (
    LauncherState,
    PodState,
    Snapshot,
    counts,
    final,
    percent_complete,
    plugins_reported,
    result_counts,
    result_status,
    run_result_status,
    run_status,
    why,
)
from reporter.run.tar_upload import TarUpload

API_VERSION: Final = "v1"
FAILURES_SHOWN: Final = 20

_UNHEARD = Beat()


def run_fields(snapshot: Snapshot, *, now: float) -> dict[str, Any]:
    """Return the run without its entries. `now` is Unix seconds."""
    return {
        "status": str(run_status(snapshot)),
        "percent_complete": percent_complete(snapshot),
        "plugins_reported": plugins_reported(snapshot),
        "counts": counts(snapshot),
        "api_version": API_VERSION,
        "run": snapshot.plan.run,
        "revision": snapshot.revision,
        "time": rfc3339(now),
        "final": final(snapshot),
        "result_status": run_result_status(snapshot),
        "result_counts": _result_counts(snapshot),
        "error": snapshot.error,
        "tar-info": tar_info(snapshot) if snapshot.tar is not None else None,
        "retrieved_at": retrieved_at(snapshot),
        "upload": tar_upload(snapshot.upload, snapshot.skew),
        "launcher": _launcher(snapshot.launcher, snapshot.skew),
        "skipped": [
            {"name": plugin.name, "node": each.node, "reason": each.reason}
            for plugin in snapshot.plan.plugins
            for each in plugin.skipped
        ],
    }


def entry_document(
    snapshot: Snapshot,
    key: Key,
    *,
    now: float,
    mono: float,
    full: bool = True,
    interval: float = INTERVAL,
) -> dict[str, Any]:
    """Return one entry; KeyError if the plan has no such key. `mono` is the heartbeats' clock.

    Full: with all failures and errors that are kept, and with the revision and time it is true
    for; else as the run's document lists it.
    """
    if not full:
        return _entry(snapshot, key, mono, interval)
    about = {"run": snapshot.plan.run, "revision": snapshot.revision, "time": rfc3339(now)}
    return _entry(snapshot, key, mono, interval, shown=None) | about


def progress_fields(key: Key, sent: Sent, skew: int) -> dict[str, Any]:
    """Return the published fields of a progress, without its lists; whose it is comes from us."""
    return {
        "name": key.plugin,
        "node": key.node,
        "timestamp": rfc3339(sent.at - skew),
        "msg": sent.progress.msg,
        "total": sent.progress.total,
        "completed": sent.progress.completed,
    }


def tar_info(snapshot: Snapshot) -> dict[str, Any]:
    """Return what is known of the tarball; before there is one, Go's zero values."""
    tar = snapshot.tar
    if tar is None:
        return {"name": "", "created": "0001-01-01T00:00:00Z", "sha256": "", "size": 0}
    return {"name": tar.name, "created": tar.created, "sha256": tar.sha256, "size": tar.size}


def retrieved_at(snapshot: Snapshot) -> str | None:
    """Return when a client first confirmed that it has the tarball, if one did."""
    return None if snapshot.retrieved_at is None else rfc3339(snapshot.retrieved_at)


def tar_upload(upload: TarUpload | None, skew: int = 0) -> dict[str, Any] | None:
    """Return how the upload of the tarball stands; nothing where none was asked for."""
    if upload is None:
        return None
    return {
        "host": upload.host,
        "state": str(upload.state),
        "error": clip(upload.error) or None,
        "at": rfc3339(upload.at - skew),
    }


def rfc3339(seconds: float) -> str:
    """Write Unix seconds as RFC 3339 in UTC with microseconds."""
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"


def _entry(
    snapshot: Snapshot, key: Key, mono: float, interval: float, shown: int | None = FAILURES_SHOWN
) -> dict[str, Any]:
    entry, sent, skew = snapshot.entries[key], snapshot.progress.get(key), snapshot.skew
    record, window = entry.record, entry.window
    beat = snapshot.beats.get(key, _UNHEARD)
    silent = age(beat, mono)
    running = entry.state is State.RUNNING
    received = record is not None and record.rank >= Rank.WORKER
    reason, message = why(entry)
    return {
        "name": key.plugin,
        "node": "" if key.node == GLOBAL else key.node,
        "status": str(entry.state),
        "last-heartbeat": None if silent is None else int(silent),
        "key": str(key),
        "result_status": result_status(snapshot, entry),
        "result_counts": result_counts(entry),
        "reason": clip(reason),
        "message": clip(message),
        "stale": running and stale(beat, mono, interval),
        "late": entry.late,
        "retry_until": rfc3339(window.until - skew) if window is not None else None,
        "attempts": entry.attempts,
        "received_at": rfc3339(record.at - skew) if record is not None and received else None,
        "digest": record.digest if record is not None and received else None,
        "bytes": record.size if record is not None and received else None,
        "notes": len(record.notes) if record is not None else 0,
        "error": _error(entry),
        "progress": None if sent is None else _progress(key, sent, shown, skew),
        "pod": _pod(snapshot.pods.get(key), skew) if running else None,
    }


def _result_counts(snapshot: Snapshot) -> Mapping[str, int] | None:
    counts = snapshot.tests
    if counts is None:
        counts = sum_of(result_counts(entry) or {} for entry in snapshot.entries.values())
    return counts or None


def _pod(pod: PodState | None, skew: int) -> dict[str, Any] | None:
    if pod is None:
        return None
    return {
        "name": pod.name,
        "node": pod.node,
        "phase": pod.phase,
        "reason": clip(pod.reason),
        "message": clip(pod.message),
        "since": None if pod.since is None else rfc3339(pod.since - skew),
        "restarts": pod.restarts,
    }


def _launcher(launcher: LauncherState | None, skew: int) -> dict[str, Any] | None:
    if launcher is None:
        return None
    trouble = launcher.degraded
    return {
        "step": str(launcher.step),
        "degraded": None
        if trouble is None
        else {"since": rfc3339(trouble.since - skew), "reason": clip(trouble.reason)},
        "stays": [{"object": name, "reason": reason} for name, reason in launcher.stays.items()],
    }


def _error(entry: Entry) -> dict[str, Any] | None:
    record = entry.record
    if record is None or record.rank is Rank.RESULT:
        return None
    cause = str(record.cause) if record.cause is not None else ""
    return {"cause": cause, "reason": clip(record.reason), "text": clip(record.text)}


def _progress(key: Key, sent: Sent, shown: int | None, skew: int) -> dict[str, Any]:
    progress = sent.progress
    lists: dict[str, Sequence[str]] = {"errors": progress.errors, "failures": progress.failures}
    return (
        progress_fields(key, sent, skew)
        | {name: _listed(texts, shown) for name, texts in lists.items() if texts}
        | {"errors_total": progress.errors_total, "failures_total": progress.failures_total}
    )


def _listed(texts: Sequence[str], shown: int | None) -> list[str]:
    """All of them, or the first that have not been shortened to nothing."""
    return list(texts) if shown is None else [text for text in texts if text][:shown]
