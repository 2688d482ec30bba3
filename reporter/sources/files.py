"""Reads one file that somebody hostile may have put there. What its bytes mean is not known here.

The adapter owns the directory: it can put a FIFO, a link to our token, a device or an endless file
under the expected name, and change it while it is read. So the name is opened without following a
link and without waiting, and everything is checked on the descriptor, never before opening. Links
above the directory are followed: they belong to whoever made the mount, not to the adapter.
"""

import errno
import os
import stat
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from reporter.core.payloads import FileIdentity

# Only the right to enter the directory is needed, not the right to list it (O_PATH: Linux only).
_OPEN_DIRECTORY = os.O_DIRECTORY | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)
_OPEN_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY

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
class Absent:
    """There is no such name, or no such directory."""


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
    """There is something that cannot be read as a file. `cause` repeats none of its content."""

    cause: str
    identity: FileIdentity | None


@dataclass(frozen=True, slots=True)
class Torn:
    """The file was changed during every try to read it."""

    identity: FileIdentity


FileLook = Absent | Unchanged | Content | Unreadable | Torn


def read_bounded(path: Path, limit: int, known: FileIdentity | None = None) -> FileLook:
    """Look at a file of at most `limit` bytes; never waits, never raises for what it finds."""
    try:
        directory = os.open(path.parent, _OPEN_DIRECTORY)
    except FileNotFoundError:
        return Absent()
    except OSError as error:
        return Unreadable(f"is in a directory that cannot be opened: {_reason(error)}", None)
    try:
        return _look(directory, path.name, limit, known)
    finally:
        os.close(directory)


def names_in(directory: Path, most: int) -> list[str]:
    """Return at most so many names; none if the directory cannot be read."""
    try:
        with os.scandir(directory) as entries:
            return [entry.name for entry in islice(entries, most)]
    except OSError:
        return []


def _look(directory: int, name: str, limit: int, known: FileIdentity | None) -> FileLook:
    try:
        file = os.open(name, _OPEN_FILE, dir_fd=directory)
    except FileNotFoundError:
        return Absent()
    except OSError as error:
        return _refused(directory, name, error)
    try:
        return _read(file, limit, known)
    except OSError as error:
        return Unreadable(f"cannot be read: {_reason(error)}", None)
    finally:
        os.close(file)


def _refused(directory: int, name: str, error: OSError) -> FileLook:
    """Return why the name could not be opened: a link gives ELOOP, a socket ENXIO."""
    try:
        found = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return Absent()
    except OSError:
        return Unreadable(f"cannot be opened: {_reason(error)}", None)
    kind = _KINDS.get(stat.S_IFMT(found.st_mode))
    if kind:
        return Unreadable(f"is {kind}, not a regular file", _identity(found))
    mode = f" (mode {stat.S_IMODE(found.st_mode):04o})" if error.errno == errno.EACCES else ""
    return Unreadable(f"cannot be opened: {_reason(error)}{mode}", _identity(found))


def _read(file: int, limit: int, known: FileIdentity | None) -> FileLook:
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
    return Torn(_identity(before))


def _all_bytes(file: int, expected: int, limit: int) -> bytes:
    """Return the file from here to its end, but at most one byte more than the limit."""
    data = os.read(file, expected + 1)
    while len(data) <= limit and (more := os.read(file, min(_CHUNK, limit + 1 - len(data)))):
        data += more
    return data


def _identity(found: os.stat_result) -> FileIdentity:
    return FileIdentity(found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def _reason(error: OSError) -> str:
    return os.strerror(error.errno or 0).lower()
