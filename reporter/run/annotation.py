"""The two annotations on the aggregator's Pod: Sonobuoy's status in its exact shape, and ours.

What they say and how it is made to fit; when and how they are written is not here.
"""

import json
from collections import Counter
from collections.abc import Iterator
from enum import IntEnum
from itertools import islice
from typing import Any, Final, NamedTuple

from reporter.run.entry import State
from reporter.run.plan import Key
from reporter.run.progress import TEXT_BYTES, StoredProgress, clip
from reporter.run.results import NOT_PASSED
from reporter.run.state import Phase, Snapshot, result_counts, result_status, run_status, stage, why
from reporter.run.status import progress_fields, run_fields, tar_info

STATUS_ANNOTATION: Final = "sonobuoy.hept.io/status"
RUN_ANNOTATION: Final = "status-reporter.io/run-status"
BUDGET: Final = 192 * 1024  # the API server allows 256 KiB for all annotations together
FAILED_SHOWN: Final = 10
FAILED_BYTES: Final = 256  # of the reason, and of the message, of one that failed
NAMES_SHOWN: Final = 10
MESSAGE_BYTES: Final = 128
MANY: Final = "*"  # the node of several entries shown as one

_OURS: Final = (
    "run",
    "status",
    "result_status",
    "percent_complete",
    "plugins_reported",
    "counts",
    "final",
    "retrieved_at",
    "upload",
    "revision",
)
"""Fields of `/status` in our own annotation."""


class Annotations(NamedTuple):
    """The values of the two annotations."""

    status: str
    run: str


class _Cut(IntEnum):
    """What is left out, each with those before it."""

    NOTHING = 0
    DETAILS = 1  # names after the tenth, the ends of messages
    PROGRESS = 2
    NODES = 3  # equal entries of a plugin are one


def annotations(snapshot: Snapshot, *, strict: bool, budget: int = BUDGET) -> Annotations:
    """Return both values; the first is at most `budget` bytes of UTF-8, whatever the run holds.

    Sonobuoy's tools read `failed` as "there are no results", so a run with failed plugins ends
    `complete` there, or `failed` with `strict`; before the end it is never shown as failed.
    """
    tail = _json({"status": _status(snapshot, strict), "tar-info": tar_info(snapshot)})
    room = budget - len('{"plugins":[],') - len(tail.encode()) + 1
    texts, cut = _fitting(snapshot, room)
    plugins = f"[{','.join(texts)}]" if texts else "null"
    return Annotations(f'{{"plugins":{plugins},{tail[1:]}', _run(snapshot, truncated=cut))


def _fitting(snapshot: Snapshot, room: int) -> tuple[list[str], bool]:
    """Return the entries, cut as little as the room allows, and whether anything was cut.

    Where there are too many even so, those are left out that come last.
    """
    texts: list[str] = []
    for cut in _Cut:
        texts, left = [], room
        for row in _rows(snapshot, cut):
            progress = snapshot.progress.get(row.key) if cut < _Cut.PROGRESS else None
            # The lists take at least three bytes for each place, with a text or not.
            if progress is not None and 3 * _places(progress) > left:
                break
            text = _entry(snapshot, row, progress, cut)
            left -= len(text.encode()) + 1  # with its comma
            if left < -1:
                break
            texts.append(text)
        else:
            return texts, cut > _Cut.NOTHING
    return texts, True


class _Row(NamedTuple):
    """A key, or the first of equal ones, its node, and how many entries it stands for."""

    key: Key
    node: str
    many: int = 1


def _rows(snapshot: Snapshot, cut: _Cut) -> Iterator[_Row]:
    """Return the rows to list, in the order of the plan."""
    if cut < _Cut.NODES:
        yield from (_Row(key, key.node) for key in snapshot.entries)
        return
    kinds = {key: _kind(snapshot, key) for key in snapshot.entries}
    first = {kind: key for key, kind in reversed(kinds.items())}
    for kind, many in Counter(kinds.values()).items():
        yield _Row(first[kind], first[kind].node if many == 1 else MANY, many)


def _places(stored: StoredProgress) -> int:
    return stored.progress.failures_total + stored.progress.errors_total


def _entry(snapshot: Snapshot, row: _Row, stored: StoredProgress | None, cut: _Cut) -> str:
    key, node, many = row
    _, status, verdict = _kind(snapshot, key)
    tests = result_counts(snapshot.entries[key])
    document: dict[str, Any] = {
        "plugin": key.plugin,
        "node": node,
        "status": status,
        "result-status": verdict,
        "result-counts": tests and {word: each * many for word, each in tests.items()},
    }
    if stored is not None:
        document["progress"] = _progress(key, stored, snapshot.skew, whole=cut is _Cut.NOTHING)
    return _json(document)


def _kind(snapshot: Snapshot, key: Key) -> tuple[str, str, str]:
    entry = snapshot.entries[key]
    state = State.FAILED if entry.state is State.TIMED_OUT else entry.state
    return key.plugin, str(state), result_status(snapshot, entry)


def _progress(key: Key, stored: StoredProgress, skew: int, *, whole: bool) -> dict[str, Any]:
    progress, document = stored.progress, progress_fields(key, stored, skew)
    document["msg"] = clip(progress.msg, TEXT_BYTES if whole else MESSAGE_BYTES)
    for name, texts, total in (
        ("errors", progress.errors, progress.errors_total),
        ("failures", progress.failures, progress.failures_total),
    ):
        if total:
            kept = texts if whole else texts[:NAMES_SHOWN]
            document[name] = [*kept, *[""] * (total - len(kept))]  # readers count them
    return document


def _status(snapshot: Snapshot, strict: bool) -> str:
    if snapshot.phase is Phase.CLOSED and (strict or snapshot.error is not None):
        return run_status(snapshot)
    return stage(snapshot)


def _run(snapshot: Snapshot, *, truncated: bool) -> str:
    kinds = ((key, _kind(snapshot, key)) for key in snapshot.entries)
    failed = {
        key: (plugin, status, verdict)
        for key, (plugin, status, verdict) in kinds
        if status == State.FAILED or verdict in NOT_PASSED
    }
    alike = Counter(failed.values())
    reasons = {
        str(key): _why(snapshot, key) | {"alike": alike[kind]}
        for key, kind in islice(failed.items(), FAILED_SHOWN)
    }
    fields = run_fields(snapshot, now=0.0)
    document = {name: fields[name] for name in _OURS}
    return _json(document | {"failed": list(reasons), "why": reasons, "truncated": truncated})


def _why(snapshot: Snapshot, key: Key) -> dict[str, Any]:
    """Return how an entry failed, and why: in the worker's words or else the aggregator's own."""
    entry = snapshot.entries[key]
    reason, message = why(entry)
    record = entry.record
    assert record is not None, "an entry without a record has not failed"
    return {
        "status": str(entry.state),
        "result_status": result_status(snapshot, entry),
        "reason": clip(reason or str(record.cause or ""), FAILED_BYTES),
        "message": clip(message or record.text, FAILED_BYTES),
    }


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
