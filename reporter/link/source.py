"""What a worker sends: opened for a delivery, measured, and read again for each try.

Never whole in memory. Another process may still write to it: what is sent is exactly what was
measured, or the try fails.
"""

import hashlib
import io
import os
import struct
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path, PurePath
from typing import BinaryIO, Self

from reporter.errors import ReporterError

GZIP = "application/gzip"
UNKNOWN = "application/octet-stream"
PIECE = 64 * 1024
"""Bytes that are read and sent at a time."""

_TYPES = {
    ".gz": GZIP,
    ".tgz": GZIP,
    ".json": "application/json",
    ".xml": "text/xml; charset=utf-8",
    ".txt": "text/plain; charset=utf-8",
}
_TAR_BLOCK = 512
_CHECKSUM = slice(148, 156)


class SourceError(ReporterError):
    """The source of a result cannot be opened or read."""


class SourceChanged(ReporterError):
    """The source has changed since it was measured. Another try measures again."""


class ResultSource:
    """Something to send, with its file name.

    `reopen` gives a new readable, seekable binary file; it is called once for each delivery and may
    raise OSError. Without `content_type` the last extension of `name` decides, and for `.gz` and
    `.tgz` the content too: an archive that holds no tar is `application/octet-stream`, because
    aggregators refuse it as `application/gzip`.
    """

    def __init__(
        self, name: str, reopen: Callable[[], BinaryIO], content_type: str | None = None
    ) -> None:
        self.name, self.content_type = name, content_type
        self._reopen = reopen

    @classmethod
    def from_file(
        cls,
        path: str | os.PathLike[str],
        *,
        name: str | None = None,
        content_type: str | None = None,
    ) -> Self:
        """Send a file, under its own name unless another is given."""
        return cls(name or PurePath(path).name, lambda: Path(path).open("rb"), content_type)

    @classmethod
    def from_bytes(cls, data: bytes, name: str, content_type: str | None = None) -> Self:
        """Send bytes that are in memory."""
        return cls(name, lambda: io.BytesIO(data), content_type)

    @classmethod
    def from_directory(
        cls, path: str | os.PathLike[str], *, exclude: Collection[Path] = ()
    ) -> "ResultSource":
        """Send a directory as `results.tar.gz`: its directories and regular files, no links.

        `exclude` are full paths to leave out. The archive is written to a nameless temporary file.
        """
        return _Directory(Path(path).absolute(), exclude)

    def carrying(self, name: str, data: bytes) -> "ResultSource":
        """Return the same with one more file in it; only a directory can have one.

        The directory is below `output/` then.
        """
        return self

    def open(self) -> "Content":
        """Open and measure it. The caller closes it. Raises `SourceError`."""
        try:
            file = self._reopen()
        except OSError as error:
            raise SourceError(f"{self.name}: {error.strerror or error}") from error
        try:
            return Content(file, self.name, self.content_type)
        except BaseException:
            file.close()
            raise


class _Directory(ResultSource):
    def __init__(
        self, root: Path, exclude: Collection[Path], beside: Mapping[str, bytes] | None = None
    ) -> None:
        super().__init__("results.tar.gz", self._packed, GZIP)
        self._root, self._exclude, self._beside = root, exclude, beside or {}

    def carrying(self, name: str, data: bytes) -> ResultSource:
        return _Directory(self._root, self._exclude, {**self._beside, name: data})

    def _packed(self) -> BinaryIO:
        # With it come gzip and tarfile, which a worker of single files does without.
        from reporter.link import tree_archive

        directory = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            return tree_archive.packed(
                directory,
                self._root,
                self._exclude,
                # The files that are sent along must not meet one of the same name.
                prefix="output/" if self._beside else "",
                beside=self._beside,
            )
        finally:
            os.close(directory)


class Content:
    """The opened bytes of a source: `length`, `digest` (SHA-256 in hex) and `content_type`."""

    def __init__(self, file: BinaryIO, name: str, content_type: str | None) -> None:
        self._file, self._name, self._declared = file, name, content_type
        self.length, self.digest, self.content_type = 0, "", content_type or UNKNOWN
        self._state: tuple[int, ...] | None = None
        self.measure()

    def measure(self) -> None:
        """Measure again if the file changed since. Raises `SourceError`."""
        state = self._fingerprint()
        if self.digest and state == self._state:
            return
        sha256, length = hashlib.sha256(), 0
        for piece in self._read():
            sha256.update(piece)
            length += len(piece)
        self.length, self.digest, self._state = length, sha256.hexdigest(), state
        self.content_type = self._declared or self._kind()

    def pieces(self) -> Iterator[bytes]:
        """Read exactly `length` bytes from the start.

        Raises `SourceError`, and `SourceChanged` when the file has become shorter.
        """
        left = self.length
        for piece in self._read():
            yield piece[:left]
            left -= len(piece)
            if left <= 0:
                return
        if left:
            raise SourceChanged(f"{self._name}: was truncated while it was sent")

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(self) -> Iterator[bytes]:
        try:
            self._file.seek(0)
            while piece := self._file.read(PIECE):
                yield piece
        except OSError as error:
            raise SourceError(f"{self._name}: {error.strerror or error}") from error

    def _fingerprint(self) -> tuple[int, ...] | None:
        with suppress(OSError):
            found = os.fstat(self._file.fileno())
            return found.st_size, found.st_mtime_ns
        return None  # not a file: nobody else can change it

    def _kind(self) -> str:
        kind = content_type_of(self._name)
        if kind == GZIP and not _holds_tar(next(self._read(), b"")):
            return UNKNOWN
        return kind


def content_type_of(name: str) -> str:
    """Return the content type by the last extension of a file name."""
    return _TYPES.get(PurePath(name).suffix.lower(), UNKNOWN)


def _holds_tar(start: bytes) -> bool:
    """Return whether a gzip file holds a tar archive, by its first bytes."""
    try:
        block = zlib.decompressobj(wbits=31).decompress(start, _TAR_BLOCK)
        if len(block) < _TAR_BLOCK:
            return False
        if not any(block):
            return True  # an empty archive is two blocks of zeros
        stated = int(block[_CHECKSUM].split(b"\0")[0].strip() or b"0", 8)
    except (zlib.error, ValueError):
        return False
    blank = bytearray(block)
    blank[_CHECKSUM] = b" " * 8
    # Old writers summed the bytes as signed ones.
    return stated in {sum(blank), sum(struct.unpack(f"{_TAR_BLOCK}b", blank))}
