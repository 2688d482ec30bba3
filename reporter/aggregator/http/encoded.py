"""A run as JSON text, made of one snapshot; for a thread, as thousands of entries take their time.

Which part of the run is asked for, and by whom, is not known here.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from reporter.core.run.plan import Key
from reporter.core.run.snapshot import Snapshot
from reporter.core.run.status import entry_document, run_fields

_PIECE: Final = 32  # entries, about half a millisecond


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


def encode_page(moment: Moment, keys: Iterable[Key], **more: object) -> bytes:
    """Write the run with these of its entries."""
    return with_entries(encode_run(moment, **more), encode_entries(moment, keys))


def with_entries(fields: bytes, entries: Iterable[bytes]) -> bytes:
    """Put entries into what was written without them."""
    return b"".join((fields[:-1], b',"plugins":[', b",".join(entries), b"]}"))


def encode_entries(moment: Moment, keys: Iterable[Key]) -> Iterator[bytes]:
    """Write entries one by one: the encoder would not let go of the interpreter before its end."""
    for index, key in enumerate(keys):
        if index % _PIECE == 0:
            time.sleep(0)  # the event loop goes first
        yield encode(
            entry_document(
                moment.snapshot,
                key,
                now=moment.now,
                mono=moment.mono,
                full=False,
                interval=moment.interval,
            )
        )
