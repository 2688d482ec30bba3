"""What the page shows of results beyond the status: their tests, facts that differ, a snapshot.

Documents are made in threads, or by a process, and small.
"""

import asyncio
import hashlib
from typing import Final

from aiohttp import web

from reporter.aggregator.http import answers
from reporter.aggregator.http.answers import Answer
from reporter.aggregator.http.encoded import encode
from reporter.aggregator.judging.process import JudgingStopped
from reporter.aggregator.store.kept import KeptDocuments
from reporter.aggregator.store.layout import Layout
from reporter.aggregator.uploads.contents import Contents, Missing
from reporter.aggregator.uploads.judging import NOT_PASSED
from reporter.core.judge.not_passed import from_record
from reporter.core.run.entry import Entry
from reporter.core.run.plan import GLOBAL, Key
from reporter.core.run.record import Rank
from reporter.core.run.results import result_counts, result_status, why
from reporter.core.run.snapshot import Snapshot
from reporter.core.run.target import segment

_OPEN: Final = answers.text(404, "there is no result yet")
_UNJUDGED: Final = answers.text(409, "the result is still being read", (answers.retry_later(2),))
_UNREADABLE: Final = answers.text(503, "the results cannot be read", (answers.retry_later(15),))
_CODES: Final = {Missing.NOT_YET: 404, Missing.NOTHING: 404, Missing.GONE: 410}
_MISSING: Final = {
    **{why: answers.text(code, why.value) for why, code in _CODES.items()},
    Missing.UNREADABLE: _UNREADABLE,
    Missing.JUDGING: answers.text(409, Missing.JUDGING.value, (answers.retry_later(5),)),
}


def asked_for(path: str) -> bool:
    """Whether a path is below those that are answered here."""
    return path.startswith("/facts/") or (path.startswith("/results/") and path.count("/") > 3)


class Shown:
    """Answers what is asked about the results of one run."""

    def __init__(self, layout: Layout, contents: Contents) -> None:
        self._kept, self._contents = KeptDocuments(layout), contents

    async def answer(self, request: web.BaseRequest, path: str, snapshot: Snapshot) -> Answer:
        """Answer the request; 404 where the path is none of these."""
        try:
            found = await self._document(path, snapshot)
        except (JudgingStopped, OSError, MemoryError, RuntimeError):  # the last one: no new thread
            return _UNREADABLE
        if isinstance(found, Missing):
            return _MISSING[found]
        if isinstance(found, Answer):
            return found
        return await asyncio.to_thread(_tagged, request, found)

    async def _document(self, path: str, snapshot: Snapshot) -> bytes | Missing | Answer:
        match path.split("/"):
            case ["", "results", plugin, node, "report"]:
                return await self._report(snapshot, _key(plugin, node))
            case ["", "results", plugin, node, "snapshot"]:
                key = _key(plugin, node)
                if key is not None and key in snapshot.entries and key.node == GLOBAL:
                    return await self._contents.contents(snapshot, key.plugin)
            case ["", "facts", plugin, "differences"]:
                name = segment(plugin)
                if name is not None and snapshot.plan.plugin(name) is not None:
                    return await self._contents.differences(snapshot, name)
        return answers.NOT_FOUND

    async def _report(self, snapshot: Snapshot, key: Key | None) -> bytes | Answer:
        entry = snapshot.entries.get(key) if key is not None else None
        if entry is None:
            return answers.NOT_FOUND
        if entry.record is None:
            return _OPEN
        if entry.record.rank is Rank.RESULT and not entry.record.verdict:
            return _UNJUDGED
        return await asyncio.to_thread(self._tests, snapshot, entry)

    def _tests(self, snapshot: Snapshot, entry: Entry) -> bytes:
        """Put together what the row says, and the tests that were kept."""
        record, key = entry.record, entry.key
        assert record is not None
        tests = self._kept.read(NOT_PASSED, str(key), record.digest) if record.digest else None
        reason, message = why(entry)
        head = {
            "run": snapshot.plan.run,
            "key": str(key),
            "result_status": result_status(snapshot, entry),
            "result_counts": result_counts(entry),
            "reason": reason,
            "message": message,
        }
        return encode(head)[:-1] + b"," + (tests or from_record(record))[1:]


def _tagged(request: web.BaseRequest, document: bytes) -> Answer:
    tag = f'"{hashlib.sha256(document).hexdigest()[:32]}"'
    if answers.matches(request, tag):
        return answers.not_modified(tag)
    return Answer(200, document, (*answers.JSON, ("ETag", tag), ("Cache-Control", "no-cache")))


def _key(plugin: str, node: str) -> Key | None:
    names = segment(plugin), segment(node)
    return None if names[0] is None or names[1] is None else Key(names[0], names[1])
