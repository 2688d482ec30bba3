"""Progress updates: one at a time per key, in the order in which they have arrived."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable

from aiohttp import web
from multidict import istr

from reporter.aggregator.http import answers
from reporter.aggregator.http.answers import Answer
from reporter.aggregator.http.body import Body
from reporter.aggregator.http.limits import PROGRESS_BODY, Limits
from reporter.aggregator.intake import UploadCut, UploadStalled
from reporter.aggregator.store import ProgressTaken, Store, StoreError
from reporter.core.run.plan import Key
from reporter.core.run.progress import Progress, parse_progress, parse_update_id
from reporter.core.run.snapshot import Phase
from reporter.errors import InvalidPayload

_SOON = (answers.retry_later(1),)
_ID = istr("Progress-Id")


class ProgressUpdates:
    """Takes updates into the store. `wall` gives Unix time."""

    def __init__(self, store: Store, limits: Limits, wall: Callable[[], float]) -> None:
        self._store, self._limits, self._wall = store, limits, wall
        self._turns: defaultdict[Key, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._present: Counter[Key] = Counter()

    async def post(
        self, request: web.BaseRequest, key: Key, subject: str, heard: Callable[[], None]
    ) -> Answer:
        """Take one update; `subject` names it in answers."""
        store, content = self._store, request.content
        if store.phase is not Phase.RUNNING:
            return _closed(subject)
        whole = content.is_eof()  # most updates have come with their head
        if not whole and (request.content_length or 0) > PROGRESS_BODY:
            return _too_large(subject)
        if not store.writable or self._present[key] > self._limits.progress_waiting:
            return _later(subject, "not now")
        self._present[key] += 1
        try:
            data = content.read_nowait() if whole else await self._read(request, heard)
            if data is None:
                return _too_large(subject)
            return await self._take(request, key, subject, parse_progress(data))
        except InvalidPayload as error:
            return answers.text(400, f"invalid progress update: {error}")
        except UploadStalled:
            return answers.text(503, f"{subject}: stalled", close=True)
        except UploadCut:
            return answers.text(400, f"{subject}: incomplete", close=True)
        finally:
            self._present[key] -= 1

    async def _read(self, request: web.BaseRequest, heard: Callable[[], None]) -> bytes | None:
        """Return the body, or nothing when it is too large."""
        pieces, size = [], 0
        with Body(request, self._limits, heard) as body:
            async for piece in body:
                pieces.append(piece)
                size += len(piece)
                if size > PROGRESS_BODY:
                    return None
        return b"".join(pieces)

    async def _take(
        self, request: web.BaseRequest, key: Key, subject: str, update: Progress
    ) -> Answer:
        header = request.headers.get(_ID)
        sender = None if header is None else parse_update_id(header)
        async with self._turns[key]:
            try:
                taken = await self._store.record_progress(key, update, sender, at=self._wall())
            except StoreError as error:
                return _later(subject, str(error))
        return _closed(subject) if taken is ProgressTaken.CLOSED else answers.EMPTY


def _closed(subject: str) -> Answer:
    return answers.text(410, f"run is closed; {subject} not accepted")


def _too_large(subject: str) -> Answer:
    return answers.text(413, f"{subject} exceeds {PROGRESS_BODY} bytes")


def _later(subject: str, reason: str) -> Answer:
    return answers.text(503, f"{subject}: {reason}", _SOON)
