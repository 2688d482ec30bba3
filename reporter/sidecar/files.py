"""The adapter's two files, result and progress, looked at again and again.

Whether a result counts is decided elsewhere. The adapter owns the directory: it can put a FIFO, a
link to our token, a device or an endless file under the expected name, and change it while it is
read. So the name is opened without following a link and without waiting, and everything is checked
on the descriptor, never before opening. On the way to the directory no link is followed either,
except above the mount point: such links belong to the image, not to the adapter.
"""

import errno
import os
import re
import stat
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Literal

from reporter.common.text import clean
from reporter.errors import InvalidPayload
from reporter.verdict.adapter_files import (
    MAX_PROGRESS_BYTES,
    MAX_RESULT_BYTES,
    decode_progress,
    decode_result,
)
from reporter.verdict.facts import (
    FileAbsent,
    FileBeforeStart,
    FileIdentity,
    FileInvalid,
    FileReadFailed,
    FileValid,
    Progress,
    ResultLook,
    ResultPayload,
    Searched,
)

ReadOutcome = Literal["absent", "unreadable", "torn", "invalid", "valid"]

# The kernel stamps files with its tick (up to 10 ms): a younger file can change and keep its times.
QUIET_NS = 50_000_000

MOST_ENTRIES = 1000  # of a directory that may be huge
MOST_NAMES = 3
NAME_BYTES, PATH_BYTES = 64, 256  # of them in a message

MOUNTS = Path("/proc/self/mountinfo")
_ESCAPED = re.compile(rb"\\([0-7]{3})")

# Only the right to enter the directory is needed, not the right to list it (O_PATH: Linux only).
_SEARCH = getattr(os, "O_PATH", os.O_RDONLY)
_DIRECTORY = os.O_DIRECTORY | os.O_CLOEXEC
_OPEN_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY

# Errors that say something about the file; any other may pass: ESTALE, EIO, EMFILE.
_LASTING = {
    errno.ENOENT,
    errno.ENOTDIR,
    errno.EACCES,
    errno.EPERM,
    errno.ELOOP,
    errno.ENXIO,
    errno.EXDEV,
    errno.ENAMETOOLONG,
}

_TRIES = 3
_CHUNK = 64 * 1024
_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFIFO: "a named pipe (FIFO)",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


@dataclass(frozen=True, slots=True)
class Unchanged:
    """The file is still the known one; nothing was read."""


@dataclass(frozen=True, slots=True)
class Content:
    """The whole file, read while nobody changed it."""

    data: bytes
    identity: FileIdentity


@dataclass(frozen=True, slots=True)
class Unreadable:
    """There is something that was not read. `cause` repeats none of its content.

    `torn`: it was changed during every try. `passing`: the error may pass.
    """

    cause: str
    identity: FileIdentity | None = None
    torn: bool = False
    passing: bool = False


Noted = tuple[os.stat_result | None, float]
"""The result file, or nothing, and the wall clock just after: `__main__` looks before all else."""

Found = FileAbsent | Unchanged | Content | Unreadable


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
        on_read: Callable[[ReadOutcome], None] = lambda _: None,
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
        found = read_bounded(self._path, MAX_RESULT_BYTES, self._known)
        if isinstance(found, Unchanged):
            return self._last
        if isinstance(found, Unreadable) and found.passing:
            self._on_read("unreadable")
            before = self._last if isinstance(self._last, FileValid) else None
            return FileReadFailed(f"the file {found.cause}", None, before)
        outcome, self._last = _decoded(found, details=self._details)
        self._on_read(outcome)
        self._known = None
        if isinstance(found, Content) and started - found.identity.ctime_ns > QUIET_NS:
            self._known = found.identity
        return self._last

    def search(self) -> Searched:
        """Return where the file is looked for, and which names there may be meant for it."""
        names = set(names_in(self._path.parent, MOST_ENTRIES)) - self._others
        suffix, stem = self._path.suffix, self._path.stem
        alike = {name for name in names if name.endswith(suffix) or name.startswith(stem)}
        found = [*sorted(alike), *sorted(names - alike)]
        cleaned = (clean(name, NAME_BYTES, "?") for name in found[:MOST_NAMES])
        return Searched(clean(str(self._path), PATH_BYTES), tuple(cleaned))


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
        match read_bounded(self._path, MAX_PROGRESS_BYTES):
            case Content(data) if data != self._data:
                self._data = data
                try:
                    self._last = decode_progress(data)
                except InvalidPayload as error:
                    self._malformed(str(error))
            case Unreadable(cause, passing=False, torn=False):
                self._malformed(f"the file {cause}")
        return self._last

    def _malformed(self, cause: str) -> None:
        if not self._told:
            self._told = True
            self._on_malformed(cause)


def content_of(path: Path, payload: ResultPayload) -> bytes | None:
    """Return the bytes of the result file if they still say the same as `payload`."""
    found = read_bounded(path, MAX_RESULT_BYTES)
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


def _decoded(
    found: FileAbsent | Content | Unreadable, *, details: bool
) -> tuple[ReadOutcome, ResultLook]:
    match found:
        case FileAbsent():
            return "absent", found
        case Unreadable(cause, identity):
            return "torn" if found.torn else "unreadable", FileInvalid(
                f"the file {cause}", identity
            )
        case Content(data, identity):
            try:
                return "valid", FileValid(decode_result(data, details=details), identity)
            except InvalidPayload as error:
                return "invalid", FileInvalid(str(error), identity)


def read_bounded(path: Path, limit: int, known: FileIdentity | None = None) -> Found:
    """Look at a file of at most `limit` bytes; never waits, never raises for what it finds."""
    try:
        directory = _open_directory(path.parent)
    except FileNotFoundError:
        return FileAbsent()
    except _LinkFound as error:
        link = clean(str(error), PATH_BYTES)
        return Unreadable(f"is behind a symbolic link, which is not followed: {link}")
    except OSError as error:
        return _unreadable("is in a directory that cannot be opened", error)
    try:
        return _look(directory, path.name, limit, known)
    finally:
        os.close(directory)


def names_in(directory: Path, most: int) -> list[str]:
    """Return at most so many names; none if the directory cannot be read."""
    try:
        opened = _open_directory(directory, os.O_RDONLY)
    except OSError:
        return []
    try:
        with os.scandir(opened) as entries:
            return [entry.name for entry in islice(entries, most)]
    except OSError:
        return []
    finally:
        os.close(opened)


class _LinkFound(OSError):
    """A component of a path is a symbolic link; says which."""


def _open_directory(directory: Path, mode: int = _SEARCH) -> int:
    """Open a directory, component by component below the mount point. Raises OSError."""
    above, names = _mount_on_the_way(os.path.abspath(directory))  # noqa: PTH100 - not resolved
    opened = os.open(above, (_SEARCH if names else mode) | _DIRECTORY)
    for number, name in enumerate(names, 1):
        flags = (_SEARCH if number < len(names) else mode) | _DIRECTORY | os.O_NOFOLLOW
        try:
            inner = os.open(name, flags, dir_fd=opened)
        except NotADirectoryError:
            if stat.S_ISLNK(os.stat(name, dir_fd=opened, follow_symlinks=False).st_mode):
                raise _LinkFound(os.path.join(above, *names[:number])) from None  # noqa: PTH118
            raise
        finally:
            os.close(opened)
        opened = inner
    return opened


@cache
def _mount_on_the_way(directory: str) -> tuple[str, tuple[str, ...]]:
    """Split a path after the first mount point on it; links up to there belong to the image.

    A container's mounts are there before it starts. Without a mount everything is below `/`.
    """
    try:
        shown = MOUNTS.read_bytes().splitlines()
    except FileNotFoundError:
        return directory, ()  # not Linux
    places = (
        _ESCAPED.sub(lambda found: bytes([int(found[1], 8)]), line.split()[4]) for line in shown
    )
    mounts = set(map(os.fsdecode, places))
    parts = Path(directory).parts
    for number in range(2, len(parts) + 1):
        above = Path(*parts[:number])
        if os.path.realpath(above) in mounts:
            return str(above), parts[number:]
    return "/", parts[1:]


def _look(directory: int, name: str, limit: int, known: FileIdentity | None) -> Found:
    try:
        file = os.open(name, _OPEN_FILE, dir_fd=directory)
    except FileNotFoundError:
        return FileAbsent()
    except OSError as error:
        return _refused(directory, name, error)
    try:
        return _read(file, limit, known)
    except OSError as error:
        return _unreadable("cannot be read", error)
    finally:
        os.close(file)


def _refused(directory: int, name: str, error: OSError) -> FileAbsent | Unreadable:
    """Return why the name could not be opened: a link gives ELOOP, a socket ENXIO."""
    if error.errno not in _LASTING:
        return _unreadable("cannot be opened", error)
    try:
        found = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return FileAbsent()
    except OSError as unknown:
        return _unreadable("cannot be opened", unknown)
    kind = _KINDS.get(stat.S_IFMT(found.st_mode))
    if kind:
        return Unreadable(f"is {kind}, not a regular file", _identity(found))
    mode = f" (mode {stat.S_IMODE(found.st_mode):04o})" if error.errno == errno.EACCES else ""
    return Unreadable(f"cannot be opened: {_reason(error)}{mode}", _identity(found))


def _read(file: int, limit: int, known: FileIdentity | None) -> Found:
    before = os.fstat(file)
    kind = _KINDS.get(stat.S_IFMT(before.st_mode))
    if kind:
        return Unreadable(f"is {kind}, not a regular file", _identity(before))
    for _ in range(_TRIES):
        identity = _identity(before)
        if identity == known:
            return Unchanged()
        if before.st_size > limit:
            return Unreadable(f"is larger than {limit} bytes", identity)
        data = _all_bytes(file, before.st_size, limit)
        after = os.fstat(file)
        if _identity(after) == identity:
            if len(data) > limit:
                return Unreadable(f"is larger than {limit} bytes", identity)
            return Content(data, identity)
        os.lseek(file, 0, os.SEEK_SET)
        before = after
    return Unreadable("was changed while it was read", _identity(before), torn=True)


def _all_bytes(file: int, expected: int, limit: int) -> bytes:
    """Return the file from here to its end, but at most one byte more than the limit."""
    data = os.read(file, expected + 1)
    while len(data) <= limit and (more := os.read(file, min(_CHUNK, limit + 1 - len(data)))):
        data += more
    return data


def file_before_start(noted: Noted | None) -> FileBeforeStart | None:
    """Return what `__main__` noted; nothing if it could not tell."""
    if noted is None:
        return None
    found, at = noted
    return FileBeforeStart(_identity(found) if found else None, seen_at=at)


def _identity(found: os.stat_result) -> FileIdentity:
    return FileIdentity(found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def _unreadable(cause: str, error: OSError) -> Unreadable:
    passing = error.errno not in _LASTING
    return Unreadable(f"{cause}: {_reason(error)}", passing=passing)


def _reason(error: OSError) -> str:
    return os.strerror(error.errno or 0).lower()
