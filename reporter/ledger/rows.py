"""Values to columns and back. Texts that came from outside travel as JSON.

A worker's text may hold what no UTF-8 can say (lone surrogates); JSON escapes it, a TEXT column
would refuse the whole transaction.
"""

from __future__ import annotations

import json
from typing import Any

from reporter.run.entry import Entry, Window, next_due
from reporter.run.plan import Key
from reporter.run.progress import Progress, StoredProgress, UpdateId
from reporter.run.record import Cause, Rank, Record
from reporter.run.state import Tar
from reporter.run.tar_upload import TarUpload, UploadState

Row = tuple[Any, ...]

_DETAILS = (
    *("blob", "filename", "content_type", "serial", "archive", "notes"),
    *("reason", "text", "document", "verdict", "message", "counts"),
)
_PROGRESS = ("msg", "total", "completed", "failures", "errors", "failures_total", "errors_total")


def dump(value: object) -> str:
    """Compact JSON."""
    return json.dumps(value, separators=(",", ":"))


def entry_row(entry: Entry, revision: int) -> Row:
    """Columns of `entry`: its key, state, window, attempts, four times, revision.

    State and due are there to be searched for; they follow from the rest.
    """
    window = entry.window
    return (
        *entry.key,
        str(entry.state),
        None if window is None else dump([window.first, window.until, window.text]),
        entry.attempts,
        entry.launched_at,
        entry.deadline,
        entry.started_at,
        next_due(entry),
        revision,
    )


def entry_of(key: Key, row: Row, records: dict[str, Record]) -> Entry:
    """Take an entry from window, attempts, three times, and its records by standing."""
    window, attempts, launched_at, deadline, started_at = row
    return Entry(
        key,
        records.get("held"),
        records.get("superseded"),
        None if window is None else Window(*json.loads(window)),
        attempts,
        launched_at,
        deadline,
        started_at,
    )


def record_row(key: Key, standing: str, record: Record) -> Row:
    """Columns of `record`: plugin, node, standing, rank, at, digest, size, details."""
    details = {name: getattr(record, name) for name in _DETAILS}
    details["counts"] = dict(record.counts)
    details["cause"] = record.cause
    return (
        *key,
        standing,
        int(record.rank),
        record.at,
        record.digest,
        record.size,
        dump(details),
    )


def record_of(row: Row) -> Record:
    """Take a record from rank, at, digest, size and details."""
    rank, at, digest, size, text = row
    details = json.loads(text)
    cause = details.pop("cause")
    details["notes"] = tuple(details["notes"])
    return Record(
        Rank(rank), at, digest, size, cause=None if cause is None else Cause(cause), **details
    )


def sent_text(sent: StoredProgress) -> str:
    """Column `sent` of `progress`."""
    values = {name: getattr(sent.progress, name) for name in _PROGRESS}
    return dump([values, sent.at, sent.id, sent.replaced])


def sent_of(text: str) -> StoredProgress:
    """Take what a key sent from its column."""
    values, at, id_, replaced = json.loads(text)
    values["failures"], values["errors"] = tuple(values["failures"]), tuple(values["errors"])
    return StoredProgress(
        Progress(**values), at, None if id_ is None else UpdateId(*id_), tuple(replaced)
    )


def tar_text(tar: Tar | None) -> str | None:
    """Column `tar` of `run`."""
    return None if tar is None else dump([tar.name, tar.created, tar.sha256, tar.size])


def tar_of(text: str | None) -> Tar | None:
    """Take the tarball's facts from their column."""
    return None if text is None else Tar(*json.loads(text))


def upload_text(upload: TarUpload | None) -> str | None:
    """Column `upload` of `run`."""
    if upload is None:
        return None
    return dump([upload.host, upload.state, upload.at, upload.error, upload.since])


def upload_of(text: str | None) -> TarUpload | None:
    """Take how the upload stands from its column."""
    if text is None:
        return None
    host, state, *others = json.loads(text)
    return TarUpload(host, UploadState(state), *others)
