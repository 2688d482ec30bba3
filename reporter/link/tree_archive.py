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
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO, cast

CHUNK = 256 * 1024
_ENTER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_DEEPEST = 200
"""Each level on the way down holds a descriptor."""
_RATIO = 130
_AHEAD = 16 * 2**20
"""Content of at most 130 times the archive, and 16 MiB: it is within 64 MiB or 200 times."""


def spool(beside: Path) -> BinaryIO:
    """Return a nameless temporary file: in the system's directory, else in `beside`.

    A container with a read-only root has no directory of the system. Raises OSError.
    """
    try:
        return cast("BinaryIO", tempfile.TemporaryFile(prefix="results-"))
    except OSError:
        return cast("BinaryIO", tempfile.TemporaryFile(prefix=".results-", dir=beside))


def pack(
    directory: int,
    out: BinaryIO,
    *,
    path: Path = Path("/"),
    exclude: Collection[Path] = (),
    prefix: str = "",
    beside: Mapping[str, bytes] = MappingProxyType({}),
) -> None:
    """Write the tree below the open descriptor `directory` to `out` as tar.gz.

    Members have relative names in sorted order, owner 0 and plain modes: nobody could use an
    archive of directories that cannot be entered. `path` is the directory's own full path, by which
    members listed in `exclude` are known; of an excluded directory nothing is packed. `prefix` goes
    before every name; `beside` are files of our own, without it.

    A file that grows meanwhile is cut at the size it had, one that shrinks is filled up with zeros,
    one that vanishes is left out. Raises OSError for what cannot be read or written.
    """
    walk = _Walk(directory, str(path), frozenset(str(item) for item in exclude))
    zipped = _Zipped(out)
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
        for member, content in walk:
            member.name = prefix + member.name
            tar.addfile(member, cast("BinaryIO", content))
            # tarfile remembers every member for the day somebody asks.
            tar.members.clear()  # type: ignore[attr-defined]
    zipped.finish()


def packed(
    directory: int,
    path: Path,
    exclude: Collection[Path],
    *,
    near: Path | None = None,
    **options: Any,
) -> BinaryIO:
    """Return a nameless temporary file with what `pack` makes of it. Raises OSError.

    `near` is a directory where we may write; `path` itself may be somebody else's.
    """
    out = spool(near or path)
    try:
        pack(directory, out, path=path, exclude=exclude, **options)
        out.flush()  # its descriptor may be read by another file object
    except BaseException:
        out.close()
        raise
    return out


class _Zipped:
    """A file that compresses what is written to it, but not so much that it looks like a bomb.

    An aggregator refuses archives that unpack to more than 64 MiB and 200 times their size. Not
    gzip.GzipFile, which on a full disk tries to write again when the error can no longer be
    handled.
    """

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._ahead = 0  # bytes by which there was more to compress than came out often enough
        self._strategy = zlib.Z_DEFAULT_STRATEGY
        self._compressor = self._begun()

    def write(self, data: bytes) -> int:
        """Compress and pass on."""
        self._ahead += len(data)
        self._put(self._compressor.compress(data))
        if self._ahead > _AHEAD and self._strategy != zlib.Z_HUFFMAN_ONLY:
            self._go_on(zlib.Z_HUFFMAN_ONLY)  # 8 times at most
        elif self._ahead < 0 and self._strategy != zlib.Z_DEFAULT_STRATEGY:
            self._go_on(zlib.Z_DEFAULT_STRATEGY)
        return len(data)

    def finish(self) -> None:
        """Write what is left; the file below stays open."""
        self._put(self._compressor.flush())

    def _go_on(self, strategy: int) -> None:
        self.finish()
        self._strategy = strategy
        self._compressor = self._begun()

    def _begun(self) -> "zlib._Compress":
        # The fastest: a signal may have begun the process's last minute. 31 makes it gzip.
        return zlib.compressobj(1, zlib.DEFLATED, 31, strategy=self._strategy)

    def _put(self, data: bytes) -> None:
        self._out.write(data)
        self._ahead -= _RATIO * len(data)


class _Walk:
    """The members below a directory, each with its content (nothing for a directory)."""

    def __init__(self, directory: int, path: str, exclude: frozenset[str]) -> None:
        self._root, self._path, self._exclude = directory, path, exclude

    def __iter__(self) -> Iterator[tuple[tarfile.TarInfo, "_Exactly | None"]]:
        # Through the directory itself: a descriptor handed over may stand anywhere in it.
        own = os.open(".", _ENTER, dir_fd=self._root)
        try:
            yield from self._below(own, "", 0)
        finally:
            os.close(own)

    def _below(
        self, directory: int, prefix: str, depth: int
    ) -> Iterator[tuple[tarfile.TarInfo, "_Exactly | None"]]:
        for name in sorted(os.listdir(directory)):
            relative = prefix + name
            if os.path.join(self._path, relative) in self._exclude:  # noqa: PTH118
                continue
            try:
                kind = os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode
                if not (stat.S_ISDIR(kind) or stat.S_ISREG(kind)):
                    continue
                opened = os.open(name, _ENTER if stat.S_ISDIR(kind) else _READ, dir_fd=directory)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise OSError(error.errno, f"{error.strerror}: {relative}") from None
            try:
                yield from self._one(opened, relative, depth)
            finally:
                os.close(opened)

    def _one(
        self, opened: int, relative: str, depth: int
    ) -> Iterator[tuple[tarfile.TarInfo, "_Exactly | None"]]:
        found = os.fstat(opened)  # not what the name was a moment ago
        member = tarfile.TarInfo(relative)
        member.mtime = max(0, int(found.st_mtime))
        if stat.S_ISDIR(found.st_mode):
            if depth >= _DEEPEST:
                raise OSError(f"more than {_DEEPEST} nested directories: {relative}")
            member.type, member.mode = tarfile.DIRTYPE, 0o755
            yield member, None
            yield from self._below(opened, relative + "/", depth + 1)
        elif stat.S_ISREG(found.st_mode):
            member.size = found.st_size
            member.mode = 0o755 if found.st_mode & 0o111 else 0o644
            yield member, _Exactly(opened, found.st_size)


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
