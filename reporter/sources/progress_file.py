"""The adapter's progress file, read again and again. Invalid progress only causes a remark."""

from collections.abc import Callable
from pathlib import Path

from reporter.core.payloads import Progress
from reporter.errors import InvalidPayload
from reporter.sources.files import Content, Unreadable, read_bounded
from reporter.wire.progress import MAX_BYTES, decode_progress


class ProgressFile:
    """The newest valid progress in one file; `on_malformed` is called for invalid progress, once.

    None instead of a file: progress is off.
    """

    def __init__(self, path: Path | None, on_malformed: Callable[[str], None]) -> None:
        self._path = path
        self._on_malformed = on_malformed
        self._told = False
        self._last: Progress | None = None
        self._data = b""

    def look(self) -> Progress | None:
        """Return the newest valid progress; None before the first. Never waits, never raises."""
        if self._path is None:
            return None
        match read_bounded(self._path, MAX_BYTES):
            case Content(data) if data != self._data:
                self._data = data
                try:
                    self._last = decode_progress(data)
                except InvalidPayload as error:
                    self._malformed(str(error))
            case Unreadable(cause):
                self._malformed(f"the file {cause}")
        return self._last

    def _malformed(self, cause: str) -> None:
        if not self._told:
            self._told = True
            self._on_malformed(cause)
