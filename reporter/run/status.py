"""A run as `/status` shows it: plain values for JSON. Its words for people come from `view`.

Who may see it, caching and the HTTP side are not here, nor the annotation's other shape.
"""

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, Final

from reporter.common.objects import json_object
from reporter.run.entry import State
from reporter.run.heartbeats import INTERVAL, Beat, age, stale
from reporter.run.plan import GLOBAL, Key
from reporter.run.progress import StoredProgress, clip
from reporter.run.record import Rank, Record
from reporter.run.results import sum_of
from reporter.run.state import (
    LauncherState,
    PodState,
    Snapshot,
    Tar,
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
from reporter.run.view import entry_display, run_display

API_VERSION: Final = "v1"
FAILURES_SHOWN: Final = 20

_UNHEARD = Beat()


def run_fields(snapshot: Snapshot, *, now: float) -> dict[str, Any]:
    """Return the run without its entries. `now` is Unix seconds."""
    tests = snapshot.tests
    if tests is None:
        tests = sum_of(result_counts(entry) or {} for entry in snapshot.entries.values())
    retrieved_at = snapshot.retrieved_at
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
        "result_counts": tests or None,
        "error": snapshot.error,
        "tar-info": tar_info(snapshot) if snapshot.tar is not None else None,
        "retrieved_at": None if retrieved_at is None else rfc3339(retrieved_at),
        "upload": tar_upload(snapshot.upload, snapshot.skew),
        "launcher": _launcher(snapshot.launcher, snapshot.skew),
        "skipped": [
            {"name": plugin.name, "node": each.node, "reason": each.reason}
            for plugin in snapshot.plan.plugins
            for each in plugin.skipped
        ],
    }


def run_document(snapshot: Snapshot, *, now: float) -> dict[str, Any]:
    """Return the run without its entries, with its words for people."""
    fields = run_fields(snapshot, now=now)
    return fields | {"display": run_display(fields)}


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
    entry, stored, skew = snapshot.entries[key], snapshot.progress.get(key), snapshot.skew
    record, window = entry.record, entry.window
    beat = snapshot.beats.get(key, _UNHEARD)
    silent, running = age(beat, mono), entry.state is State.RUNNING
    received = record if record is not None and record.rank >= Rank.WORKER else None
    reason, message = why(entry)
    document: dict[str, Any] = {
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
        "retry_until": rfc3339(window.until - skew) if window else None,
        "attempts": entry.attempts,
        "received_at": rfc3339(received.at - skew) if received else None,
        "digest": received.digest if received else None,
        "bytes": received.size if received else None,
        "notes": len(record.notes) if record else 0,
        "metadata": json_object(received.metadata) if received else None,
        "error": _error(record),
        "progress": _progress(key, stored, skew, full=full) if stored else None,
        "pod": _pod(snapshot.pods.get(key), skew) if running else None,
    }
    document["display"] = entry_display(document)
    if full:
        about = {"run": snapshot.plan.run, "revision": snapshot.revision, "time": rfc3339(now)}
        document |= about
    return document


def progress_fields(key: Key, stored: StoredProgress, skew: int) -> dict[str, Any]:
    """Return the published fields of a progress, without its lists; whose it is comes from us."""
    return {
        "name": key.plugin,
        "node": key.node,
        "timestamp": rfc3339(stored.at - skew),
        "msg": stored.progress.msg,
        "total": stored.progress.total,
        "completed": stored.progress.completed,
    }


def tar_info(snapshot: Snapshot) -> dict[str, Any]:
    """Return what is known of the tarball; before there is one, Go's zero values."""
    return asdict(snapshot.tar or Tar("", "0001-01-01T00:00:00Z", "", 0))


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


def _pod(pod: PodState | None, skew: int) -> dict[str, Any] | None:
    if pod is None:
        return None
    since = None if pod.since is None else rfc3339(pod.since - skew)
    texts = {"reason": clip(pod.reason), "message": clip(pod.message)}
    return asdict(pod) | texts | {"since": since}


def _launcher(launcher: LauncherState | None, skew: int) -> dict[str, Any] | None:
    if launcher is None:
        return None
    trouble = launcher.degraded
    degraded = trouble and {
        "since": rfc3339(trouble.since - skew),
        "reason": clip(trouble.reason),
    }
    stays = [{"object": name, "reason": reason} for name, reason in launcher.stays.items()]
    return {"step": str(launcher.step), "degraded": degraded, "stays": stays}


def _error(record: Record | None) -> dict[str, Any] | None:
    if record is None or record.rank is Rank.RESULT:
        return None
    cause = str(record.cause or "")
    return {"cause": cause, "reason": clip(record.reason), "text": clip(record.text)}


def _progress(key: Key, stored: StoredProgress, skew: int, *, full: bool) -> dict[str, Any]:
    progress, document = stored.progress, progress_fields(key, stored, skew)
    for name, texts in (("errors", progress.errors), ("failures", progress.failures)):
        if texts:
            # Of a list that is cut, those that have not been shortened to nothing.
            document[name] = list(texts) if full else [*filter(None, texts)][:FAILURES_SHOWN]
    totals = {"errors_total": progress.errors_total, "failures_total": progress.failures_total}
    return document | totals
