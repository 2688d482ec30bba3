"""Which part of the run's status a query asks for: all, the summary, a page, or what is new."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Final
from urllib.parse import parse_qsl

from reporter.aggregator.api.encoded import Moment, PageWriter, encode_run
from reporter.run.heartbeats import heard_since
from reporter.run.plan import Key
from reporter.run.state import Snapshot

LARGEST: Final = 5_000  # entries of a page
LONGEST: Final = 20  # seconds to wait for something new
_NAMES: Final = ("summary", "limit", "after", "since", "wait")


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
            return encode_run(moment)
        if self.since is None:
            return self._page(moment, self.limit)
        revision, beats = moment.snapshot.revision, moment.snapshot.beats
        if not 0 < self.since <= revision:
            return self._page(moment, LARGEST, reset=True, heard={})
        page, told = PageWriter(moment), self.since
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
        page, keys, last = PageWriter(moment), iter(moment.snapshot.entries), None
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
