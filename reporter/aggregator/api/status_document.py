"""The run's status as JSON: which part of it a query asks for, and its text, of one snapshot.

For a thread, as thousands of entries take their time. By whom it is asked for is not known here.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from io import BytesIO
from itertools import islice
from typing import Final
from urllib.parse import parse_qsl

from reporter.run.heartbeats import heard_since
from reporter.run.plan import Key
from reporter.run.state import Snapshot
from reporter.run.status import entry_document, run_document

LARGEST: Final = 5_000  # entries of a page
LONGEST: Final = 20  # seconds to wait for something new
_NAMES: Final = ("summary", "limit", "after", "since", "wait")
_PIECE: Final = 32  # entries, about half a millisecond
_ENOUGH: Final = 768 * 1024  # bytes: what each of many slow readers may hold


@dataclass(frozen=True, slots=True)
class Moment:
    """What is shown and when: Unix time, and the clock and the interval of the heartbeats."""

    snapshot: Snapshot
    now: float
    mono: float
    interval: float

    def entry(self, key: Key, *, full: bool) -> bytes:
        """Write an entry."""
        document = entry_document(
            self.snapshot, key, now=self.now, mono=self.mono, full=full, interval=self.interval
        )
        return encode(document)

    def run(self, **more: object) -> bytes:
        """Write the run without its entries, and what else is known of the answer."""
        return encode(run_document(self.snapshot, now=self.now) | more)


def encode(document: object) -> bytes:
    """Write JSON."""
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


class _Writer:
    """Writes the run with some of its entries, one after the other."""

    def __init__(self, moment: Moment) -> None:
        self._moment, self._written, self._entries = moment, BytesIO(), 0
        self._written.write(b'{"plugins":[')

    @property
    def full(self) -> bool:
        """Whether a reader that can come again has enough for one time."""
        return self._written.tell() > _ENOUGH

    def add(self, key: Key) -> None:
        """Write an entry; the encoder would not let go of the interpreter before the end of all."""
        if self._entries % _PIECE == 0:
            time.sleep(0)  # the event loop goes first
        if self._entries:
            self._written.write(b",")
        self._entries += 1
        self._written.write(self._moment.entry(key, full=False))

    def end(self, **more: object) -> bytes:
        """Write the run itself, and what else is known of the answer; return all of it."""
        self._written.write(b"]," + self._moment.run(**more)[1:])
        return self._written.getvalue()  # not a copy, unlike a join


@dataclass(frozen=True, slots=True)
class Part:
    """All entries; none of them; at most `limit` of those that follow `after` in the plan; or those
    that have changed since a revision.

    `wait` is how many seconds its reader waits for a newer revision.
    """

    summary: bool = False
    limit: int | None = None
    after: Key | None = None
    since: int | None = None
    wait: int = field(default=0, compare=False)

    def encode(self, moment: Moment, changed: Mapping[Key, int], heard_after: float = 0.0) -> bytes:
        """Write it. A page names the key after which the next one begins, null at the end.

        `changed` has the revisions of the entries that have changed since ours, in their order.
        There may be too many for one answer: its revision is that of the last one in it. A reader
        to whom revisions of this run mean nothing begins anew, with the first page of all.

        Heartbeats are no changes: whose were heard after a moment is told beside the entries.
        """
        if self.summary:
            return moment.run()
        if self.since is None:
            return self._page(moment, self.limit)
        revision, beats = moment.snapshot.revision, moment.snapshot.beats
        if not 0 < self.since <= revision:
            return self._page(moment, LARGEST, reset=True, heard={})
        page, told = _Writer(moment), self.since
        for key, told in changed.items():
            if told > revision:
                break  # this moment is older
            page.add(key)
            if page.full:
                break
        else:
            told = revision
        heard = {
            str(key): int(max(0.0, moment.mono - (beats[key].heard_at or 0.0)))
            for key in heard_since(beats, heard_after)
        }
        told = min(told, revision)
        return page.end(reset=False, heard=heard, next=None, revision=told)

    def _page(self, moment: Moment, limit: int | None, **more: object) -> bytes:
        page, keys, last = _Writer(moment), iter(moment.snapshot.entries), None
        if self.after is not None:
            while next(keys) != self.after:
                pass
        for last in islice(keys, limit):
            page.add(last)
            if page.full and limit is not None:
                break
        if limit is not None:
            more["next"] = str(last) if next(keys, None) is not None else None
        return page.end(**more)


def read_part(query: str, snapshot: Snapshot) -> Part:
    """Read a query. ValueError, with what is wrong, for one that asks for no part of the run.

    Parameters of other names are ignored.
    """
    given = parse_qsl(query, keep_blank_values=True)
    found = {name: value for name, value in given if name in _NAMES}
    if len(found) < sum(name in found for name, _ in given):
        raise ValueError("summary, limit, after, since and wait may be given once each")
    if found.get("summary", "false") not in ("true", "false"):
        raise ValueError("summary must be true or false")
    summary = found.get("summary") == "true"
    if sum((summary, "limit" in found, "since" in found)) > 1:
        raise ValueError("summary=true, limit and since cannot be combined")
    for name, needs in (("after", "limit"), ("wait", "since")):
        if name in found and needs not in found:
            raise ValueError(f"{name} requires {needs}")
    if "since" in found:
        since = _integer(found, "since", 0, 2**63 - 1)
        return Part(since=since, wait=_integer(found, "wait", 0, LONGEST))
    if "limit" not in found:
        return Part(summary)
    limit = _integer(found, "limit", 1, LARGEST)
    if "after" not in found:
        return Part(limit=limit)
    plugin, _, node = found["after"].partition("/")
    key = Key(plugin, node)
    if key not in snapshot.entries:
        raise ValueError("after must be the key of an entry, as PLUGIN/NODE or PLUGIN/global")
    return Part(limit=limit, after=key)


def _integer(found: Mapping[str, str], name: str, low: int, high: int) -> int:
    text = found.get(name, "0")
    digits = len(text) <= len(str(high)) and text.isascii() and text.isdigit()
    if not (digits and low <= int(text) <= high):
        raise ValueError(f"{name} must be an integer from {low} to {high}")
    return int(text)
