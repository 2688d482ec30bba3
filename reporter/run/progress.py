"""Progress of a plugin: one update, combining updates, which of two is the newer.

One implementation for both sides of the wire. How one is read, and where it is written down, is not
here.
"""

import math
import re
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from reporter.errors import InvalidPayload

INT64_MAX: Final = 2**63 - 1
INT64_MIN: Final = -(2**63)

KEPT: Final = 1_000  # failures and errors of one key; the true counts go on
TEXT_BYTES: Final = 1_024
KEY_BYTES: Final = 16 * 1_024  # all texts of one key
_EMPTY_TEXT, _ONE_TEXT, _WIDEST = 8, 64, 4  # bytes of memory: a place, an object, a character
EPOCHS_KEPT: Final = 16  # replaced senders of one key: a worker restarts rarely

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_UPDATE_ID = re.compile(r"([!-.0-~]{1,64})/([0-9]{1,18})")  # as docs/openapi.yaml has it


@dataclass(frozen=True, slots=True)
class Progress:
    """One update, or what updates added up to (then without the three append fields).

    The totals are the true counts where the lists hold only the first of many.
    """

    msg: str = ""
    total: int = 0
    completed: int = 0
    failures: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    appendtotals: bool = False
    appendcompleted: int = 0
    appendfailing: tuple[str, ...] = ()
    failures_total: int = 0
    errors_total: int = 0
    appendfailing_total: int = 0

    def __post_init__(self) -> None:
        # Nobody can list more than there are, and who gives only the list means its length.
        if self.failures_total < len(self.failures):
            object.__setattr__(self, "failures_total", len(self.failures))
        if self.errors_total < len(self.errors):
            object.__setattr__(self, "errors_total", len(self.errors))
        if self.appendfailing_total < len(self.appendfailing):
            object.__setattr__(self, "appendfailing_total", len(self.appendfailing))

    @property
    def appending(self) -> bool:
        """Whether it adds to what is stored instead of replacing it."""
        return self.appendtotals or self.appendcompleted > 0 or bool(self.appendfailing)


def combine(stored: Progress | None, new: Progress) -> Progress:
    """Return what is stored after an update; never raises, and is bounded whatever comes in.

    A replacing update is taken as it is. An appending one brings its message, adds to the counts
    and lists, and its own `total`, `completed` and `failures` do not count.
    """
    if not new.appending:
        replaced = Progress(
            msg=clip(new.msg),
            total=_int64(new.total),
            completed=_int64(new.completed),
            failures=_clipped(new.failures[:KEPT]),
            errors=_clipped(new.errors[:KEPT]),
            failures_total=_int64(new.failures_total),
            errors_total=_int64(new.errors_total),
        )
        return _bounded(replaced)
    before = stored or Progress()
    completed = max(0, new.appendcompleted)
    added = completed + new.appendfailing_total if new.appendtotals else 0
    appended = Progress(
        msg=clip(new.msg),
        total=_int64(before.total + added),
        completed=_int64(before.completed + completed),
        failures=_longer(before.failures, new.appendfailing),
        errors=_longer(before.errors, new.errors),
        failures_total=_int64(before.failures_total + new.appendfailing_total),
        errors_total=_int64(before.errors_total + new.errors_total),
    )
    return _bounded(appended)


def clip(text: str, limit: int = TEXT_BYTES) -> str:
    """Cut to so many bytes of UTF-8 on a code-point boundary.

    What databases refuse becomes U+FFFD: lone surrogates and NUL.
    """
    if text.isascii() and "\0" not in text:
        return text[:limit]
    text = text[:limit].replace("\0", "\ufffd")
    try:
        whole = text.encode()
    except UnicodeEncodeError:  # looking for them in every text would take most of the time
        whole = _LONE_SURROGATE.sub("\ufffd", text).encode()
    return whole[:limit].decode(errors="ignore")


class UpdateId(NamedTuple):
    """Which update of which sender: `epoch` is random per process, `seq` counts up."""

    epoch: str
    seq: int


def parse_update_id(header: str) -> UpdateId:
    """Read `EPOCH/SEQ`. Raises `InvalidPayload`: without its id an update might count twice."""
    found = _UPDATE_ID.fullmatch(header)
    if found is None:
        raise InvalidPayload("Progress-Id: not EPOCH/SEQ")
    return UpdateId(found[1], int(found[2]))


@dataclass(frozen=True, slots=True)
class StoredProgress:
    """What is stored for a key: the progress, when it came, and whose update it was.

    `at` is by the run's clock; for one key it only grows: of two the newest stands.
    `replaced` are the epochs that others have replaced, newest last.
    """

    progress: Progress
    at: float
    id: UpdateId | None = None
    replaced: tuple[str, ...] = ()


def take(
    stored: StoredProgress | None, update: Progress, update_id: UpdateId | None, at: float
) -> StoredProgress | None:
    """Return what is stored then; nothing if its id says that it came before or was overtaken.

    So an append that is sent twice counts once. An update without an id leaves the last id in
    force.
    """
    if stored is None:
        return StoredProgress(combine(None, update), at, update_id)
    if at <= stored.at:
        at = math.nextafter(stored.at, math.inf)
    last, replaced = stored.id, stored.replaced
    if update_id is not None and last is not None:
        if update_id.epoch in replaced:
            return None
        if update_id.epoch != last.epoch:
            replaced = (*replaced, last.epoch)[-EPOCHS_KEPT:]
        elif update_id.seq <= last.seq:
            return None
    return StoredProgress(combine(stored.progress, update), at, update_id or last, replaced)


def newest(one: StoredProgress | None, other: StoredProgress | None) -> StoredProgress | None:
    """Return the newer of two, which stands."""
    return other if one is None or (other is not None and other.at > one.at) else one


def footprint(sent: StoredProgress) -> int:
    """Return about how many bytes of memory the texts of a key take."""
    progress, size = sent.progress, 0
    for text in (progress.msg, *progress.failures, *progress.errors, *sent.replaced):
        size += _EMPTY_TEXT
        if text:
            size += _ONE_TEXT + len(text) * (1 if text.isascii() else _WIDEST)
    return size


def fitting(sent: StoredProgress, room: int) -> StoredProgress:
    """Return what can be kept of it in so many bytes: at least its counts."""
    if footprint(sent) <= room:
        return sent
    return replace(sent, progress=replace(sent.progress, msg="", failures=(), errors=()))


def _int64(number: int) -> int:
    return min(max(number, INT64_MIN), INT64_MAX)


def _clipped(texts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(clip(text) for text in texts)


def _bounded(progress: Progress) -> Progress:
    """Return the texts in `KEY_BYTES`: the oldest are shortened first, the newest stay readable.

    None is left out: readers count them. Errors have half of the room, and what failures leave.
    """
    failures, errors = sum(map(_size, progress.failures)), sum(map(_size, progress.errors))
    room = KEY_BYTES - _size(progress.msg)
    if failures + errors <= room:
        return progress
    for_errors = min(errors, max(room // 2, room - failures))
    return replace(
        progress,
        failures=_shortened(progress.failures, room - for_errors),
        errors=_shortened(progress.errors, for_errors),
    )


def _shortened(texts: tuple[str, ...], room: int) -> tuple[str, ...]:
    kept = []
    for text in reversed(texts):
        short = clip(text, room)
        kept.append(short)
        # A cut at a character can leave some bytes, of which no older text gets any.
        room = room - _size(text) if short == text else 0
    return tuple(reversed(kept))


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def _longer(kept: tuple[str, ...], new: tuple[str, ...]) -> tuple[str, ...]:
    room = KEPT - len(kept)
    return kept + _clipped(new[:room]) if room > 0 else kept
