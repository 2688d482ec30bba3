"""The adapter's result file, looked at again and again. Whether it counts is decided elsewhere."""

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Literal

from reporter.core.payloads import (
    FileAbsent,
    FileIdentity,
    FileInvalid,
    FileValid,
    ResultLook,
    ResultPayload,
    Searched,
)
from reporter.core.text import clean
from reporter.errors import InvalidPayload
from reporter.sources.files import (
    Absent,
    Content,
    Torn,
    Unchanged,
    Unreadable,
    names_in,
    read_bounded,
)
from reporter.wire.result import MAX_BYTES, decode_result

LookOutcome = Literal["absent", "unreadable", "torn", "invalid", "valid"]

# The kernel stamps files with its tick (up to 10 ms): a younger file can change and keep its times.
SETTLED_NS = 50_000_000

MOST_ENTRIES = 1000  # of a directory that may be huge
MOST_NAMES = 3
NAME_BYTES, PATH_BYTES = 64, 256  # of them in a message


class ResultFile:
    """The newest state of one result file.

    `others` are files that may lie beside it. With `details` the details of a result are kept.
    `on_read` is given the outcome of every look, unless the file is known and has not changed.
    `clock` is the wall clock in nanoseconds that also stamps the file.
    """

    def __init__(
        self,
        path: Path,
        *,
        others: Iterable[Path] = (),
        details: bool = False,
        on_read: Callable[[LookOutcome], None] = lambda _: None,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self._path, self._details = path, details
        self._others = {other.name for other in others if other.parent == path.parent}
        self._on_read = on_read
        self._clock = clock
        self._last: ResultLook = FileAbsent()
        self._known: FileIdentity | None = None

    def look(self) -> ResultLook:
        """Return what is there now. Never waits; a file that has not changed is not read again."""
        started = self._clock()
        found = read_bounded(self._path, MAX_BYTES, self._known)
        if isinstance(found, Unchanged):
            return self._last
        outcome, self._last = _judge(found, details=self._details)
        self._on_read(outcome)
        self._known = None
        if isinstance(found, Content) and started - found.identity.ctime_ns > SETTLED_NS:
            self._known = found.identity
        return self._last

    def look_around(self) -> Searched:
        """Return where the file is looked for, and which names there may be meant for it."""
        names = set(names_in(self._path.parent, MOST_ENTRIES)) - self._others
        found = sorted(names, key=lambda name: (not _resembles(name, self._path), name))
        cleaned = (clean(name, NAME_BYTES, "?") for name in found[:MOST_NAMES])
        return Searched(clean(str(self._path), PATH_BYTES), tuple(cleaned))


def _resembles(name: str, path: Path) -> bool:
    return name.endswith(path.suffix) or name.startswith(path.stem)


def content_of(path: Path, payload: ResultPayload) -> bytes | None:
    """Return the bytes of the result file if they still say the same as `payload`."""
    found = read_bounded(path, MAX_BYTES)
    if not isinstance(found, Content):
        return None
    try:
        now = decode_result(found.data)
    except InvalidPayload:
        return None
    same = (now.success, now.reason, now.message) == (
        payload.success,
        payload.reason,
        payload.message,
    )
    return found.data if same else None


def _judge(
    found: Absent | Content | Unreadable | Torn, *, details: bool
) -> tuple[LookOutcome, ResultLook]:
    match found:
        case Absent():
            return "absent", FileAbsent()
        case Unreadable(cause, identity):
            return "unreadable", FileInvalid(f"the file {cause}", identity)
        case Torn(identity):
            return "torn", FileInvalid("the file was changed while it was read", identity)
        case Content(data, identity):
            try:
                return "valid", FileValid(decode_result(data, details=details), identity)
            except InvalidPayload as error:
                return "invalid", FileInvalid(str(error), identity)
