"""What the page shows of results beyond the status: their tests. Documents are small."""

import asyncio
import hashlib
from typing import Final

from aiohttp import web

from reporter.aggregator.api.encoded import encode
from reporter.aggregator.server import answers
from reporter.aggregator.server.answers import Answer
from reporter.ledger.documents import KeptDocuments
from reporter.ledger.layout import Layout
from reporter.results.items import from_record
from reporter.run.entry import Entry
from reporter.run.plan import Key
from reporter.run.record import Rank
from reporter.run.state import Snapshot, result_counts, result_status, why
from reporter.run.target import segment

_OPEN: Final = answers.text(404, "there is no result yet")
_UNJUDGED: Final = answers.text(409, "the result is still being read", (answers.retry_later(2),))


def asked_for(path: str) -> bool:
    """Whether a path is below those that are answered here."""
    return path.startswith("/results/") and path.count("/") > 3


class Shown:
    """Answers what is asked about the results of one run."""

    def __init__(self, layout: Layout) -> None:
        self._kept = KeptDocuments(layout)

    async def answer(self, request: web.BaseRequest, path: str, snapshot: Snapshot) -> Answer:
        """Answer the request; 404 where the path is none of these."""
        entry = None
        match path.split("/"):
            case ["", "results", plugin, node, "report"]:
                key = _key(plugin, node)
                entry = snapshot.entries.get(key) if key is not None else None
        if entry is None:
            return answers.NOT_FOUND
        if entry.record is None:
            return _OPEN
        if entry.record.rank is Rank.RESULT and not entry.record.verdict:
            return _UNJUDGED
        document = await asyncio.to_thread(self._tests, snapshot, entry)
        tag = f'"{hashlib.sha256(document).hexdigest()[:32]}"'
        if answers.matches(request, tag):
            return answers.not_modified(tag)
        return Answer(200, document, (*answers.JSON, ("ETag", tag), ("Cache-Control", "no-cache")))

    def _tests(self, snapshot: Snapshot, entry: Entry) -> bytes:
        """Put together what the row says, and the tests that were kept."""
        record, key = entry.record, entry.key
        assert record is not None
        tests = self._kept.read(str(key), record.digest) if record.digest else None
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


def _key(plugin: str, node: str) -> Key | None:
    names = segment(plugin), segment(node)
    return None if names[0] is None or names[1] is None else Key(names[0], names[1])
