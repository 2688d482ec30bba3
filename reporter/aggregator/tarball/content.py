"""What is in the tarball of a run, as directories and files that come from rows and blobs.

Blocks: for threads.
"""

import contextlib
import hashlib
import io
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, Protocol

from reporter.errors import ReporterError
from reporter.run.record import Rank, Record, error_document
from reporter.run.state import Snapshot
from reporter.untar import ACCEPTED, Archive, BadArchive, Kind

_IN_MEMORY: Final = 1024 * 1024
_PIECE: Final = 256 * 1024
_ERROR: Final = b"error.json"


class BodyDamaged(ReporterError):
    """A body is missing, cannot be read, or is not the one that was received."""


class Seekable(Protocol):
    """What a file's content is read from."""

    def read(self, size: int, /) -> bytes:
        """Read at most `size` bytes, none at the end."""

    def seek(self, at: int, /) -> int:
        """Go on at that byte."""


class _Body:
    """A body that is read once from its beginning, and its SHA-256 with it."""

    def __init__(self, file: IO[bytes], digest: str) -> None:
        self._file, self._digest, self._hash = file, digest, hashlib.sha256()

    def read(self, size: int, /) -> bytes:
        """Read at most `size` bytes. Raises `BodyDamaged`."""
        try:
            data = self._file.read(size)
        except OSError as error:
            raise BodyDamaged(f"a result cannot be read: {error.strerror}") from error
        self._hash.update(data)
        return data

    def seek(self, at: int, /) -> int:
        """Begin."""
        return self._file.seek(at)

    def check(self) -> None:
        """Read what is left, and compare. Raises `BodyDamaged`."""
        while self.read(_PIECE):
            pass
        if self._hash.hexdigest() != self._digest:
            raise BodyDamaged("a result does not match its SHA-256")


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a file: `size` bytes of an open file, from `at` on."""

    file: Seekable
    at: int
    size: int


class Folder(dict[bytes, "Folder | Content | Record"]):
    """A directory. A record in it is the directory of what that record stands for."""

    def enter(self, path: Iterable[bytes]) -> "Folder":
        """Return the directory at a path, made if it is missing."""
        folder = self
        for part in path:
            below = folder.setdefault(part, Folder())
            assert isinstance(below, Folder), "the rules for names in an archive do not hold"
            folder = below
        return folder


def homes(snapshot: Snapshot) -> tuple[Folder, Folder]:
    """Return what is in `plugins` and in `superseded`."""
    plugins, superseded = Folder(), Folder()
    for key, entry in snapshot.entries.items():
        plugin, node = key.plugin.encode(), key.node.encode()
        if entry.superseded is not None:
            superseded.enter((plugin,))[node] = entry.superseded
            plugins.enter((plugin, b"errors"))  # where it was
        if entry.record is not None:
            good = entry.record.rank is Rank.RESULT
            plugins.enter((plugin, b"results" if good else b"errors"))[node] = entry.record
    return plugins, superseded


class RecordFolders:
    """The directories that records stand for, opened one by one.

    `open_blob` opens a blob by its name, or raises FileNotFoundError; `unfinished` is a
    directory for unfinished things; `go_on` raises what ends the work, if it is to end.
    """

    def __init__(
        self,
        open_blob: Callable[[str], IO[bytes]],
        unfinished: Path,
        go_on: Callable[[], None],
    ) -> None:
        self._open_blob, self._unfinished, self._go_on = open_blob, unfinished, go_on

    @contextlib.contextmanager
    def opened(self, record: Record, *, replaced: bool) -> Iterator[Folder]:
        """Give the directory that a record stands for; its files are open until the end.

        If the bytes of one that is `replaced` are gone, its error is all there is: nobody would
        send them again. Raises OSError, and `BodyDamaged` by the end of the block.
        """
        folder, result = Folder(), record.rank is Rank.RESULT
        with contextlib.ExitStack() as stack:
            body = self._body(record, replaced, stack)
            if body is not None:
                if record.archive:
                    spool = stack.enter_context(
                        tempfile.SpooledTemporaryFile(_IN_MEMORY, "w+b", dir=str(self._unfinished))
                    )
                    try:
                        self._unpack(Archive(body, record.size, ACCEPTED), spool, folder)
                    except BadArchive as error:
                        raise BodyDamaged(str(error)) from error
                else:
                    name = os.fsencode(record.filename or "result") if result else _ERROR
                    folder[name] = Content(body, 0, record.size)
            if not result and (record.document or body is None):
                text = record.document or error_document(record.text, record.cause, record.reason)
                data = text.encode("utf-8", "replace")
                folder[_ERROR] = Content(io.BytesIO(data), 0, len(data))
            yield folder
            if body is not None:
                body.check()

    def _body(self, record: Record, replaced: bool, stack: contextlib.ExitStack) -> _Body | None:
        if not record.blob:
            return None
        try:
            return _Body(stack.enter_context(self._open_blob(record.blob)), record.digest)
        except FileNotFoundError as error:
            if replaced:
                return None
            raise BodyDamaged("a result is missing") from error

    def _unpack(self, archive: Archive, spool: IO[bytes], top: Folder) -> None:
        at = 0
        for member in archive:
            if member.kind is Kind.DIRECTORY:
                top.enter(member.path)
            elif member.kind is Kind.FILE:
                for piece in archive.content():
                    self._go_on()
                    spool.write(piece)
                content = Content(spool, at, member.size)
                top.enter(member.path[:-1])[member.path[-1]] = content  # of two, the last wins
                at += member.size
