"""A directory as one tar.gz.

Another process may change the directory while it is read. So it is walked by descriptors, a link is
never followed, and what is neither a directory nor a regular file is left out. Only one read at a
time is held in memory.
"""

import io
import os
import stat
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO, cast

CHUNK = 256 * 1024
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_DEEPEST = 200
"""Each level on the way down holds a descriptor."""
_FREE, _RATIO = 64 * 2**20, 200
"""An aggregator refuses archives with more content than this and so many times their size."""

Member = tuple[tarfile.TarInfo, "_Exactly | None"]


def spool(writable: Path) -> BinaryIO:
    """Return a nameless temporary file: in the system's directory, else in `writable`.

    A container with a read-only root has no directory of the system. Raises OSError.
    """
    try:
        return cast("BinaryIO", tempfile.TemporaryFile(prefix="results-"))
    except OSError:
        return cast("BinaryIO", tempfile.TemporaryFile(prefix=".results-", dir=writable))


def pack(
    root: Path,
    out: BinaryIO,
    *,
    exclude: Collection[Path] = (),
    prefix: str = "",
    beside: Mapping[str, bytes] = MappingProxyType({}),
) -> None:
    """Write the tree below the directory `root` to `out` as tar.gz.

    Members have relative names, owner 0 and plain modes: nobody could use an archive of directories
    that cannot be entered. Members listed in `exclude`, by full paths that begin with `root`, are
    left out; of an excluded directory nothing is packed. `prefix` goes before every name; `beside`
    are files of our own, without it.

    A file that grows meanwhile is cut at the size it had, one that shrinks is filled up with zeros,
    one that vanishes is left out. Raises OSError for what cannot be read or written.
    """
    zipped, content = _Zipped(out), sum(map(len, beside.values()))
    # GNU names are bytes: whatever a file system allows can be said in them.
    with tarfile.open(
        fileobj=cast("BinaryIO", zipped),
        mode="w|",
        format=tarfile.GNU_FORMAT,
        encoding="utf-8",
        errors="surrogateescape",
        bufsize=CHUNK,
    ) as tar:
        for name, data in beside.items():
            own = tarfile.TarInfo(name)
            own.size = len(data)
            tar.addfile(own, io.BytesIO(data))
        for member, file in _members(root, {str(path) for path in exclude}):
            member.name = prefix + member.name
            content += member.size
            tar.addfile(member, cast("BinaryIO", file))
            # tarfile remembers every member for the day somebody asks.
            tar.members.clear()  # type: ignore[attr-defined]
    zipped.finish()
    if content > _FREE:
        # Readers of tar do not read on to zeros behind the end of a gzip.
        out.write(bytes(max(0, content // _RATIO + 1 - zipped.size)))
    out.flush()


class _Zipped:
    """A file that compresses what is written to it.

    Not gzip.GzipFile, which on a full disk tries to write again when the error can no longer be
    handled.
    """

    def __init__(self, out: BinaryIO) -> None:
        # The fastest: a signal may have begun the process's last minute. 31 makes it gzip.
        self._out, self._compressor = out, zlib.compressobj(1, zlib.DEFLATED, 31)
        self.size = 0

    def write(self, data: bytes) -> int:
        """Compress and pass on."""
        self.size += self._out.write(self._compressor.compress(data))
        return len(data)

    def finish(self) -> None:
        """Write what is left; the file below stays open."""
        self.size += self._out.write(self._compressor.flush())


def _members(root: Path, exclude: Collection[str]) -> Iterator[Member]:
    """Yield what is below a directory, each with its content (nothing for a directory)."""
    directory = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield from _below(directory, "", lambda relative: f"{root}/{relative}" in exclude)
    finally:
        os.close(directory)


def _below(directory: int, here: str, excluded: Callable[[str], bool]) -> Iterator[Member]:
    if here.count("/") > _DEEPEST:
        raise OSError(f"more than {_DEEPEST} nested directories: {here}")
    for name in sorted(os.listdir(directory)):
        relative = here + name
        if excluded(relative):
            continue
        try:
            opened = os.open(name, _READ | os.O_DIRECTORY, dir_fd=directory)
        except FileNotFoundError:
            continue
        except NotADirectoryError:  # a link to one, too
            yield from _file(name, relative, directory)
            continue
        except OSError as error:
            raise OSError(error.errno, f"{error.strerror}: {relative}") from None
        try:
            yield _member(relative, os.fstat(opened)), None
            yield from _below(opened, f"{relative}/", excluded)
        finally:
            os.close(opened)


def _file(name: str, relative: str, directory: int) -> Iterator[Member]:
    """Yield a regular file; nothing for what is none, or is not there any more."""
    try:
        if not stat.S_ISREG(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode):
            return
        file = os.open(name, _READ, dir_fd=directory)
    except FileNotFoundError:
        return
    except OSError as error:
        raise OSError(error.errno, f"{error.strerror}: {relative}") from None
    try:
        found = os.fstat(file)  # not what the name was a moment ago
        if stat.S_ISREG(found.st_mode):
            yield _member(relative, found), _Exactly(file, found.st_size)
    finally:
        os.close(file)


def _member(name: str, found: os.stat_result) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.mtime = max(0, int(found.st_mtime))
    if stat.S_ISDIR(found.st_mode):
        member.type, member.mode = tarfile.DIRTYPE, 0o755
    else:
        member.size = found.st_size
        member.mode = 0o755 if found.st_mode & 0o111 else 0o644
    return member


class _Exactly:
    """A file of exactly the size in its header, even if it changes meanwhile."""

    def __init__(self, file: int, size: int) -> None:
        self._file, self._left = file, size

    def read(self, size: int = -1) -> bytes:
        wanted = self._left if size < 0 else min(size, self._left)
        data = os.read(self._file, wanted)
        while len(data) < wanted:
            more = os.read(self._file, wanted - len(data))
            data += more or bytes(wanted - len(data))
        self._left -= wanted
        return data
