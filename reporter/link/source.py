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
from reporter.link.messages import GZIP, UNKNOWN, content_type_of

PIECE = 64 * 1024
"""Bytes that are read and sent at a time."""


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
        cls,
        path: str | os.PathLike[str],
        *,
        exclude: Collection[Path] = (),
        writable: Path | None = None,
    ) -> "ResultSource":
        """Send a directory as `results.tar.gz`: its directories and regular files, no links.

        `exclude` are full paths to leave out. The archive is written to a nameless temporary file,
        where the system has no place for one in `writable`, or in the directory itself.
        """
        root = Path(path).absolute()
        return _Directory(root, exclude, writable or root)

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
        self,
        root: Path,
        exclude: Collection[Path],
        writable: Path,
        beside: Mapping[str, bytes] | None = None,
    ) -> None:
        super().__init__("results.tar.gz", self._packed, GZIP)
        self._root, self._exclude, self._writable = root, exclude, writable
        self._beside = beside or {}

    def carrying(self, name: str, data: bytes) -> ResultSource:
        beside = {**self._beside, name: data}
        return _Directory(self._root, self._exclude, self._writable, beside)

    def _packed(self) -> BinaryIO:
        # With it comes tarfile, which a worker of single files does without.
        from reporter.link import tree_archive

        # What is sent along must not meet a file of the same name.
        prefix = "output/" if self._beside else ""
        out = tree_archive.spool(self._writable)
        try:
            tree_archive.pack(
                self._root, out, exclude=self._exclude, prefix=prefix, beside=self._beside
            )
        except BaseException:
            out.close()
            raise
        return out


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
        return UNKNOWN if kind == GZIP and not _holds_tar(next(self._read(), b"")) else kind


def _holds_tar(start: bytes) -> bool:
    """Return whether a gzip file holds a tar archive, by its first bytes."""
    import tarfile

    try:
        block = zlib.decompressobj(wbits=31).decompress(start, tarfile.BLOCKSIZE)
        if block == bytes(tarfile.BLOCKSIZE):
            return True  # an empty archive is two blocks of zeros
        checksums: tuple[int, int] = tarfile.calc_chksums(block)  # type: ignore[attr-defined]
        return tarfile.nti(block[148:156]) in checksums  # type: ignore[attr-defined]
    except (zlib.error, struct.error, tarfile.HeaderError):
        return False
