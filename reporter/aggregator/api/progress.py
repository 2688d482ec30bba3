"""Progress updates: those of a key reach the store in the order in which they have arrived.

A large body is read when it has a slot and parsed in pieces, between which everybody else has a
turn: neither memory nor the loop is a single worker's.
"""

import asyncio
import math
import time
from collections import Counter
from collections.abc import Callable

from aiohttp import web
from multidict import istr

from reporter.aggregator import limits
from reporter.aggregator.context import Context
from reporter.aggregator.server import answers
from reporter.aggregator.server.answers import Answer
from reporter.aggregator.server.body import Body
from reporter.errors import InvalidPayload
from reporter.ledger import ProgressTaken, StoreError
from reporter.run.plan import Key
from reporter.run.progress import Progress, parse_update_id
from reporter.run.progress_body import parse_progress
from reporter.run.progress_pieces import AT_ONCE, parse_in_pieces
from reporter.run.state import Phase
from reporter.run.upload import UploadEnded, UploadOutcome

PROGRESS_BODY = 1024 * 1024  # bytes; the same bound as in Sonobuoy's relay
_FREE_SPACE = 1.0  # seconds between two looks at it: on a network file system they take a while
_LARGE_AT_ONCE = 8  # larger ones in memory
_PIECE = 0.002  # seconds between two turns of the others
_MOST_PIECES = 32_768  # of one body; twice as many as a mebibyte of long texts has
_TOO_LARGE = f"exceeds {PROGRESS_BODY} bytes"
_SOON = (answers.retry_later(1),)
_ID = istr("Progress-Id")


class _TooMuch(Exception):
    """A body that is too large, or has lists in lists or names without end: seconds of work."""


class ProgressUpdates:
    """Takes updates into the store; `free_for` says whether so many bytes fit on the disk."""

    def __init__(self, context: Context, free_for: Callable[[int], bool]) -> None:
        self._store, self._free_for = context.store, free_for
        self._clock, self._now = context.clock, context.now
        self._free, self._looked = True, -math.inf
        self._large = asyncio.Semaphore(_LARGE_AT_ONCE)
        self._parsing = asyncio.Lock()  # all of them have one turn together
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
            return answers.text(413, f"{subject} {_TOO_LARGE}")
        if not store.writable or self._present[key] > limits.PROGRESS_WAITING:
            return _later(subject, "not now")
        if not self._room():
            return answers.text(507, f"{subject}: not enough disk space")
        self._present[key] += 1
        try:
            if whole:
                update = await self._parse(content.read_nowait())
            elif (request.content_length or PROGRESS_BODY) <= AT_ONCE:
                update = await self._parse(await _read(request, heard))
            elif await self._turn(request, heard):
                try:
                    update = await self._parse(await _read(request, heard))
                finally:
                    self._large.release()
            else:
                return _later(subject, "too many large updates")
            header = request.headers.get(_ID)
            sender = None if header is None else parse_update_id(header)
            taken = await store.record_progress(key, update, sender, at=self._now())
        except _TooMuch as error:
            return answers.text(413, f"{subject} {error}")
        except InvalidPayload as error:
            return answers.text(400, f"invalid progress update: {error}")
        except UploadEnded as error:
            if error.ended.outcome is UploadOutcome.STALLED:
                return answers.text(503, f"{subject}: stalled", close=True)
            return answers.text(400, f"{subject}: incomplete", close=True)
        except StoreError as error:
            return _later(subject, str(error))
        finally:
            self._present[key] -= 1
        return _closed(subject) if taken is ProgressTaken.CLOSED else answers.EMPTY

    def _room(self) -> bool:
        now = self._clock()
        if now - self._looked >= _FREE_SPACE:
            self._free, self._looked = self._free_for(PROGRESS_BODY), now
        return self._free

    async def _turn(self, request: web.BaseRequest, heard: Callable[[], None]) -> bool:
        """Wait for a slot, the body left with its sender."""
        with Body(request, heard).waiting():
            try:
                # Longer than a silent body can hold a slot: whoever waits behind it has a turn.
                async with asyncio.timeout(2 * limits.BODY_SILENCE):
                    return await self._large.acquire()
            except TimeoutError:
                return False

    async def _parse(self, data: bytes) -> Progress:
        if len(data) <= AT_ONCE:
            return parse_progress(data)
        async with self._parsing:
            pieces, turn = parse_in_pieces(data), time.perf_counter() + _PIECE
            for _ in range(_MOST_PIECES):
                try:
                    next(pieces)
                except StopIteration as end:
                    update: Progress = end.value
                    return update
                if time.perf_counter() >= turn:
                    await asyncio.sleep(0)
                    turn = time.perf_counter() + _PIECE
            raise _TooMuch("has too many parts")


async def _read(request: web.BaseRequest, heard: Callable[[], None]) -> bytes:
    pieces, size = [], 0
    async for piece in Body(request, heard).sending():
        pieces.append(piece)
        size += len(piece)
        if size > PROGRESS_BODY:
            raise _TooMuch(_TOO_LARGE)
    return b"".join(pieces)


def _closed(subject: str) -> Answer:
    return answers.text(410, f"run is closed; {subject} not accepted")


def _later(subject: str, reason: str) -> Answer:
    return answers.text(503, f"{subject}: {reason}", _SOON)
