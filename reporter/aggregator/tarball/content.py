"""What is in the tarball of a run beside what it says of itself: the files that records stand for.

Blocks: for threads.
"""

import contextlib
import hashlib
import io
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final, Protocol

from reporter.errors import ReporterError
from reporter.results.process import Judge
from reporter.run.record import Rank, Record, error_document
from reporter.run.state import Snapshot
from reporter.untar import ACCEPTED, Archive, BadArchive, Kind

PIECE: Final = 256 * 1024
_IN_MEMORY: Final = 1024 * 1024
_ERROR: Final = "error.json"


class BodyDamaged(ReporterError):
    """A body is missing, cannot be read, or is not the one that was received."""


@dataclass(frozen=True, slots=True)
class Sources:
    """What the tarball of a run is made from, beside its rows.

    `open_blob` opens a blob by its name, or raises FileNotFoundError; `podlogs` has logs that the
    run itself has taken; `unfinished` is a directory for unfinished things. `definitions` are
    documents by plugin. `taken_by` names the plugin that took the cluster's snapshot; `run_log`
    is what was logged so far. `go_on` raises what ends the work, if it is to end.
    """

    open_blob: Callable[[str], IO[bytes]]
    podlogs: Path
    unfinished: Path
    judge: Judge
    go_on: Callable[[], None]
    definitions: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    taken_by: str = ""
    run_log: Path | None = None


class Seekable(Protocol):
    """What a file's content is read from."""

    def read(self, size: int, /) -> bytes:
        """Read at most `size` bytes, none at the end."""

    def seek(self, at: int, /) -> int:
        """Go on at that byte."""


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a file: `size` bytes of an open file, from `at` on."""

    file: Seekable
    at: int
    size: int

    @classmethod
    def of(cls, data: bytes) -> "Content":
        """Return some bytes as the content of a file."""
        return cls(io.BytesIO(data), 0, len(data))


class Folder(dict[str, "Folder | Content"]):
    """A directory."""

    def enter(self, path: Iterable[str]) -> "Folder":
        """Return the directory at a path, made if it is missing."""
        folder = self
        for part in path:
            below = folder.setdefault(part, Folder())
            assert isinstance(below, Folder), "the rules for names in an archive do not hold"
            folder = below
        return folder

    def walk(
        self, top: str, *, files_first: bool = False
    ) -> Iterator[tuple[str, "Content | None"]]:
        """Yield all that is in it, by name, with the content of files; paths begin with `top`."""

        def entries(folder: Folder) -> Iterator[tuple[str, Folder | Content]]:
            return iter(
                sorted(
                    folder.items(),
                    key=lambda each: (files_first and isinstance(each[1], Folder), each[0]),
                )
            )

        # No more than one path for each level: there may be very many, and long.
        levels = [(top, entries(self))]
        while levels:
            path, left = levels[-1]
            for name, below in left:
                if isinstance(below, Content):
                    yield f"{path}{name}", below
                else:
                    yield f"{path}{name}", None
                    levels.append((f"{path}{name}/", entries(below)))
                    break
            else:
                levels.pop()


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
        while self.read(PIECE):
            pass
        if self._hash.hexdigest() != self._digest:
            raise BodyDamaged("a result does not match its SHA-256")


def homes(snapshot: Snapshot) -> dict[str, dict[str, dict[str, Record]]]:
    """Return what is in `plugins`, by plugin, by `results` and `errors`, and by node."""
    plugins: dict[str, dict[str, dict[str, Record]]] = {}
    for key, entry in snapshot.entries.items():
        if entry.superseded is not None:  # where it was
            plugins.setdefault(key.plugin, {}).setdefault("errors", {})
        if entry.record is not None:
            kind = "results" if entry.record.rank is Rank.RESULT else "errors"
            plugins.setdefault(key.plugin, {}).setdefault(kind, {})[key.node] = entry.record
    return plugins


@contextlib.contextmanager
def opened(record: Record, sources: Sources, *, replaced: bool = False) -> Iterator[Folder]:
    """Give the directory that a record stands for; its files are open until the end.

    If the bytes of one that is `replaced` are gone, its error is all there is: nobody would send
    them again. Raises OSError, and `BodyDamaged` by the end of the block.
    """
    folder, result = Folder(), record.rank is Rank.RESULT
    with contextlib.ExitStack() as stack:
        body = None
        if record.blob:
            try:
                body = _Body(stack.enter_context(sources.open_blob(record.blob)), record.digest)
            except FileNotFoundError as error:
                if not replaced:
                    raise BodyDamaged("a result is missing") from error
        if body is not None and record.archive:
            # They come out of its gzip in another order than that of names.
            spool = stack.enter_context(
                tempfile.SpooledTemporaryFile(_IN_MEMORY, "w+b", dir=str(sources.unfinished))
            )
            try:
                _unpack(Archive(body, record.size, ACCEPTED), spool, folder, sources.go_on)
            except BadArchive as error:
                raise BodyDamaged(str(error)) from error
        elif body is not None:
            folder[(record.filename or "result") if result else _ERROR] = Content(
                body, 0, record.size
            )
        if not result and (record.document or body is None):
            text = record.document or error_document(record.text, record.cause, record.reason)
            folder[_ERROR] = Content.of(text.encode("utf-8", "replace"))
        yield folder
        if body is not None:
            body.check()


def _unpack(archive: Archive, spool: IO[bytes], top: Folder, go_on: Callable[[], None]) -> None:
    at = 0
    for member in archive:
        # Names that are no UTF-8 go into the tarball as they are.
        path = [part.decode("utf-8", "surrogateescape") for part in member.path]
        if member.kind is Kind.DIRECTORY:
            top.enter(path)
        elif member.kind is Kind.FILE:
            for piece in archive.content():
                go_on()
                spool.write(piece)
            content = Content(spool, at, member.size)
            top.enter(path[:-1])[path[-1]] = content  # of two, the last wins
            at += member.size
