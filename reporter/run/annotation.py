"""The two annotations on the aggregator's Pod: Sonobuoy's status in its exact shape, and ours.

What they say and how it is made to fit; when and how they are written is not here.
"""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, NamedTuple

from reporter.run.entry import State
from reporter.run.plan import Key
from reporter.run.progress import TEXT_BYTES, Sent, clip
from reporter.run.results import NOT_PASSED
from reporter.run.state import (
    Phase,
    Snapshot,
    counts,
    final,
    percent_complete,
    plugins_reported,
    result_counts,
    result_status,
    run_result_status,
    run_status,
    stage,
    why,
)
from reporter.run.status import progress_fields, retrieved_at, tar_info, tar_upload

STATUS_ANNOTATION: Final = "sonobuoy.hept.io/status"
RUN_ANNOTATION: Final = "status-reporter.io/run-status"
BUDGET: Final = 192 * 1024  # the API server allows 256 KiB for all annotations together
FAILED_SHOWN: Final = 10
FAILED_BYTES: Final = 256  # of the reason, and of the message, of one that failed
MANY: Final = "*"  # the node of several entries shown as one


class Annotations(NamedTuple):
    """The values of the two annotations."""

    status: str
    run: str


@dataclass(frozen=True, slots=True)
class _Cut:
    """How much of a run is left out: names after so many, long messages, progress, equal entries.

    `progress` and `merged` are the states of entries that show progress, or are shown as one.
    """

    names: int | None = None
    message: int = TEXT_BYTES
    progress: frozenset[State] = frozenset(State)
    merged: frozenset[State] = frozenset()


_COMPLETE = frozenset({State.COMPLETE})
_NONE: frozenset[State] = frozenset()
_CUTS: Final = (
    _Cut(),
    _Cut(names=10),
    _Cut(names=10, message=128),
    _Cut(names=10, message=128, progress=frozenset(State) - _COMPLETE),
    _Cut(progress=_NONE),
    _Cut(progress=_NONE, merged=_COMPLETE),
    _Cut(progress=_NONE, merged=frozenset(State)),
)


def annotations(snapshot: Snapshot, *, strict: bool, budget: int = BUDGET) -> Annotations:
    """Return both values; the first is at most `budget` bytes of UTF-8, whatever the run holds.

    Sonobuoy's tools read `failed` as "there are no results", so a run with failed plugins ends
    `complete` there, or `failed` with `strict`; before the end it is never shown as failed.
    """
    tail = _json({"status": _status(snapshot, strict), "tar-info": tar_info(snapshot)})
    room = budget - len('{"plugins":[],') - len(tail.encode()) + 1
    texts, truncated = _fitting(snapshot, room)
    plugins = f"[{','.join(texts)}]" if texts else "null"
    return Annotations(f'{{"plugins":{plugins},{tail[1:]}', _run(snapshot, truncated))


def _fitting(snapshot: Snapshot, room: int) -> tuple[list[str], bool]:
    """Return the entries, cut as little as the room allows, and whether anything was cut."""
    for cut in _CUTS:
        texts, whole = _within(snapshot, cut, room)
        if whole:
            return texts, cut is not _CUTS[0]
    return texts, True  # more plugins than fit even so: the first of them


def _within(snapshot: Snapshot, cut: _Cut, room: int) -> tuple[list[str], bool]:
    """Return the entries up to the first that does not fit; none beyond it is made."""
    texts: list[str] = []
    for row in _rows(snapshot, cut):
        entry = snapshot.entries[row.key]
        sent = snapshot.progress.get(row.key) if entry.state in cut.progress else None
        if sent is not None and _least(sent) > room:
            return texts, False
        text = _entry(snapshot, row, sent, cut)
        room -= len(text.encode()) + 1  # with its comma
        if room < -1:
            return texts, False
        texts.append(text)
    return texts, True


class _Row(NamedTuple):
    """A key, or the first of equal ones, its node, and how many entries it stands for."""

    key: Key
    node: str
    many: int = 1


def _rows(snapshot: Snapshot, cut: _Cut) -> Iterator[_Row]:
    """Return the rows to list, in the order of the plan."""
    kinds = {key: _kind(snapshot, key) for key in snapshot.entries} if cut.merged else {}
    alike = Counter(kinds.values())
    merged = set()
    for key, entry in snapshot.entries.items():
        if entry.state not in cut.merged or alike[kinds[key]] == 1:
            yield _Row(key, key.node)
        elif kinds[key] not in merged:
            merged.add(kinds[key])
            yield _Row(key, MANY, alike[kinds[key]])


def _least(sent: Sent) -> int:
    """Return how many bytes the lists take at least: three for each place, with a text or not."""
    return 3 * (sent.progress.failures_total + sent.progress.errors_total)


def _entry(snapshot: Snapshot, row: _Row, sent: Sent | None, cut: _Cut) -> str:
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
    if sent is not None:
        document["progress"] = _progress(key, sent, cut, snapshot.skew)
    return _json(document)


def _kind(snapshot: Snapshot, key: Key) -> tuple[str, str, str]:
    entry = snapshot.entries[key]
    state = State.FAILED if entry.state is State.TIMED_OUT else entry.state
    return key.plugin, str(state), result_status(snapshot, entry)


def _progress(key: Key, sent: Sent, cut: _Cut, skew: int) -> dict[str, Any]:
    progress = sent.progress
    document = progress_fields(key, sent, skew) | {"msg": clip(progress.msg, cut.message)}
    for name, texts, total in (
        ("errors", progress.errors, progress.errors_total),
        ("failures", progress.failures, progress.failures_total),
    ):
        if total:
            kept = texts[: cut.names]
            document[name] = [*kept, *[""] * (total - len(kept))]  # readers count them
    return document


def _status(snapshot: Snapshot, strict: bool) -> str:
    over = snapshot.phase is Phase.CLOSED
    told = over and (strict or snapshot.error is not None)
    return run_status(snapshot) if told else stage(snapshot)


def _run(snapshot: Snapshot, truncated: bool) -> str:
    kinds = ((key, _kind(snapshot, key)) for key in snapshot.entries)
    failed = {
        key: (plugin, status, verdict)
        for key, (plugin, status, verdict) in kinds
        if status == State.FAILED or verdict in NOT_PASSED
    }
    alike = Counter(failed.values())
    shown = {
        str(key): _why(snapshot, key) | {"alike": alike[kind]}
        for key, kind in islice(failed.items(), FAILED_SHOWN)
    }
    return _json(
        {
            "run": clip(snapshot.plan.run, FAILED_BYTES),
            "status": run_status(snapshot),
            "result_status": run_result_status(snapshot),
            "percent_complete": percent_complete(snapshot),
            "plugins_reported": plugins_reported(snapshot),
            "counts": counts(snapshot),
            "final": final(snapshot),
            "retrieved_at": retrieved_at(snapshot),
            "upload": tar_upload(snapshot.upload, snapshot.skew),
            "revision": snapshot.revision,
            "failed": list(shown),
            "why": shown,
            "truncated": truncated,
        }
    )


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
