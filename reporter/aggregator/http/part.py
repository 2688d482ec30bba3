"""Which part of the run's status a query asks for: all of it, its summary, or a page."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import Final
from urllib.parse import parse_qsl

from reporter.aggregator.http.encoded import Moment, encode_page, encode_run
from reporter.core.run.plan import Key
from reporter.core.run.snapshot import Snapshot

LARGEST: Final = 5_000  # entries of a page


@dataclass(frozen=True, slots=True)
class Part:
    """All entries; none of them; or at most `limit` of those that follow `after` in the plan."""

    summary: bool = False
    limit: int | None = None
    after: Key | None = None

    def encode(self, moment: Moment) -> bytes:
        """Write it. A page names the key after which the next one begins, null at the end."""
        if self.summary:
            return encode_run(moment)
        keys = iter(moment.snapshot.entries)
        if self.limit is None:
            return encode_page(moment, keys)
        if self.after is not None:
            while next(keys) != self.after:
                pass
        page = list(islice(keys, self.limit))
        more = next(keys, None) is not None
        return encode_page(moment, page, next=str(page[-1]) if more else None)


def read_part(query: str, snapshot: Snapshot) -> Part:
    """Read a query. ValueError, with what is wrong, for one that asks for no part of the run.

    Parameters of other names are ignored.
    """
    given = parse_qsl(query, keep_blank_values=True)
    found = {name: value for name, value in given if name in ("summary", "limit", "after")}
    if len(found) < sum(name in found for name, _ in given):
        raise ValueError("summary, limit and after may be given once each")
    if found.get("summary", "false") not in ("true", "false"):
        raise ValueError("summary must be true or false")
    summary, limit, after = found.get("summary") == "true", found.get("limit"), found.get("after")
    if limit is None:
        if after is not None:
            raise ValueError("after requires limit")
        return Part(summary)
    if summary:
        raise ValueError("summary=true cannot be combined with limit")
    digits = len(limit) <= 9 and limit.isascii() and limit.isdigit()
    if not (digits and 1 <= int(limit) <= LARGEST):
        raise ValueError(f"limit must be an integer from 1 to {LARGEST}")
    if after is None:
        return Part(limit=int(limit))
    plugin, _, node = after.partition("/")
    key = Key(plugin, node)
    if key not in snapshot.entries:
        raise ValueError("after must be the key of an entry, as PLUGIN/NODE or PLUGIN/global")
    return Part(limit=int(limit), after=key)
