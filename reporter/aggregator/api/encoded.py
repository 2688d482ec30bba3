"""A run as JSON text, made of one snapshot; for a thread, as thousands of entries take their time.

Which part of the run is asked for, and by whom, is not known here.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from io import BytesIO
from typing import Final

from reporter.run.plan import Key
from reporter.run.state import Snapshot
from reporter.run.status import entry_document, run_fields

_PIECE: Final = 32  # entries, about half a millisecond
_ENOUGH: Final = 768 * 1024  # bytes: what each of many slow readers may hold


@dataclass(frozen=True, slots=True)
class Moment:
    """What is shown and when: Unix time, and the clock and the interval of the heartbeats."""

    snapshot: Snapshot
    now: float
    mono: float
    interval: float


def encode(document: object) -> bytes:
    """Write JSON."""
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def encode_run(moment: Moment, **more: object) -> bytes:
    """Write the run without its entries, and what else is known of the answer."""
    return encode(run_fields(moment.snapshot, now=moment.now) | more)


class PageWriter:
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
        moment = self._moment
        document = entry_document(
            moment.snapshot,
            key,
            now=moment.now,
            mono=moment.mono,
            full=False,
            interval=moment.interval,
        )
        self._written.write(encode(document))

    def end(self, **more: object) -> bytes:
        """Write the run itself, and what else is known of the answer; return all of it."""
        self._written.write(b"]," + encode_run(self._moment, **more)[1:])
        return self._written.getvalue()  # not a copy, unlike a join
