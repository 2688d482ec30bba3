"""What is in the tarball of a run, as directories and files that come from rows and blobs.

Blocks: for threads.
"""

import contextlib
import io
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from reporter.core.run.record import Rank, Record, error_document
from reporter.core.run.snapshot import Snapshot
from reporter.untar import ACCEPTED, Archive, Kind

_IN_MEMORY: Final = 1024 * 1024
_ERROR: Final = b"error.json"


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a file: `size` bytes of an open file, from `at` on."""

    file: IO[bytes]
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

    `open_blob` opens the bytes with a digest, or raises FileNotFoundError; `unfinished` is a
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
        send them again. Raises OSError, `BadArchive`.
        """
        folder, result = Folder(), record.rank is Rank.RESULT
        with contextlib.ExitStack() as stack:
            blob = self._blob(record, replaced)
            if blob is not None:
                stack.enter_context(blob)
                if record.archive:
                    spool = stack.enter_context(
                        tempfile.SpooledTemporaryFile(_IN_MEMORY, "w+b", dir=str(self._unfinished))
                    )
                    self._unpack(Archive(blob, record.size, ACCEPTED), spool, folder)
                else:
                    name = os.fsencode(record.filename or "result") if result else _ERROR
                    folder[name] = Content(blob, 0, record.size)
            if not result and (record.document or blob is None):
                text = record.document or error_document(record.text, record.cause, record.reason)
                data = text.encode("utf-8", "replace")
                folder[_ERROR] = Content(io.BytesIO(data), 0, len(data))
            yield folder

    def _blob(self, record: Record, replaced: bool) -> IO[bytes] | None:
        if not record.digest:
            return None
        try:
            return self._open_blob(record.digest)
        except FileNotFoundError:
            if replaced:
                return None
            raise

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
