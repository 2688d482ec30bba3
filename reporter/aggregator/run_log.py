"""What the log says of a run, kept in a file of the state directory for `meta/run.log`.

A thread of its own writes it: a disk may be slow, and nobody waits for a line of a log. A line that
does not fit, in memory or on the disk, is left out and counted.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from queue import SimpleQueue
from typing import Final

from reporter.collect.snapshot.redact import redact

_LARGEST: Final = 16 * 2**20  # bytes
_WAITING: Final = 10_000  # lines
_VERDICTS: Final = frozenset(
    {
        "Result stored",
        "Result judged",
        "Result given up",
        "Result lost",
        "Worker reported an error",
        "Run closed: the set of results is final",
        "Run finished",
    }
)
"""For these a tenth of the file is kept."""
_LAST: Final = 64 * 1024  # bytes in which a line that was cut off by a kill begins


class RunLog:
    """A file that every line is added to, once it is known which one.

    Its content survives the process. `write` may be called by any thread, also in the middle of
    another `write` (by the garbage collector); it neither waits nor raises.
    """

    def __init__(self, *, largest: int = _LARGEST, waiting: int = _WAITING) -> None:
        self._largest, self._waiting = largest, waiting
        # Not a Queue: its lock must not be taken twice by one thread.
        self._lines: SimpleQueue[str | Callable[[], None] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._missing = 0
        self._fd, self._size = -1, 0
        self._truncated = False

    def write(self, line: str) -> None:
        """Add a line, a JSON object without its newline."""
        if self._lines.qsize() < self._waiting:
            self._lines.put(line)
        else:
            self._missing += 1

    def open(self, path: Path, check_room: Callable[[int], None] = lambda _: None) -> None:
        """Begin to write to this file, with what was said before.

        `check_room` raises OSError where that many bytes are not to be written.
        """
        self._check_room = check_room
        self._thread = threading.Thread(target=self._run, args=(path,), daemon=True)
        self._thread.start()

    def settle(self, seconds: float = 5.0) -> None:
        """Wait until everything said so far is in the file, but not longer than that."""
        if self._thread is not None:
            written = threading.Event()
            self._lines.put(written.set)
            written.wait(seconds)

    def close(self, seconds: float = 1.0) -> None:
        """Write what is left, and end."""
        if self._thread is not None:
            self._lines.put(None)
            self._thread.join(seconds)
            self._thread = None

    # -- in the thread ---------------------------------------------------------------------------

    def _run(self, path: Path) -> None:
        try:
            while (found := self._lines.get()) is not None:
                if isinstance(found, str):
                    self._keep(path, found)
                else:
                    found()
        finally:
            if self._fd >= 0:
                os.close(self._fd)

    def _keep(self, path: Path, line: str) -> None:
        try:
            if self._fd < 0:
                self._fd, self._size = _open(path)
            if self._missing and not self._truncated:
                missing = self._missing
                self._append(_own("Log lines are missing here", lines=missing))
                self._missing -= missing
            data = f"{_without_secrets(line)}\n".encode("utf-8", "backslashreplace")
            largest = self._largest
            if json.loads(line).get("message") not in _VERDICTS:
                largest -= largest // 10
            if self._size + len(data) > largest:
                if self._truncated:
                    return
                self._truncated = True
                data = _own("Log truncated: size limit reached, only verdicts follow")
            self._append(data)
        except (OSError, ValueError, RecursionError):
            self._missing += 1

    def _append(self, data: bytes) -> None:
        """Write whole lines, or raise OSError and leave the file as it was."""
        try:
            self._check_room(len(data))
            written = os.write(self._fd, data)
            if written < len(data):
                raise OSError("cut off")
        except OSError:
            os.ftruncate(self._fd, self._size)
            raise
        self._size += written


def _open(path: Path) -> tuple[int, int]:
    """Open it for more lines; what a kill has cut off is removed. Returns its size, too."""
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(path, flags, 0o600)
    try:
        size = os.fstat(fd).st_size
        begin = max(0, size - _LAST)
        last = os.pread(fd, _LAST, begin)
        if last and not last.endswith(b"\n"):
            size = begin + last.rfind(b"\n") + 1
            os.ftruncate(fd, size)
    except BaseException:
        os.close(fd)
        raise
    return fd, size


def _without_secrets(line: str) -> str:
    """Blank credentials in URLs: nothing logs them knowingly, but texts come from elsewhere."""
    if "://" not in line:
        return line
    document = json.loads(line)
    return json.dumps(document, separators=(",", ":")) if redact(document) else line


def _own(message: str, **fields: int) -> bytes:
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    event = {"time": now, "level": "warning", "message": message, **fields}
    return json.dumps(event, separators=(",", ":")).encode() + b"\n"
