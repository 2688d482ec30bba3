"""The tarball of a run: everything people get, in one file that is there whole or not at all.

It is made from rows and blobs, in the order of names. The files of an archive come out of its gzip
in another order, so those of one archive at a time lie in a temporary file without a name first.
Blocks, possibly for minutes: for a thread of its own.
"""

import contextlib
import hashlib
import os
import tarfile
import zlib
from collections.abc import Callable, Collection, Iterator
from datetime import UTC, datetime
from functools import partial
from itertools import count
from pathlib import Path
from typing import IO, Final

from reporter.aggregator.tarball.content import BodyDamaged, Content, Folder, RecordFolders, homes
from reporter.aggregator.tarball.meta import meta
from reporter.aggregator.tarball.snapshot import part, taken, yield_to
from reporter.aggregator.tarball.summary import Summaries
from reporter.common.private_file import sync_directory
from reporter.errors import ReporterError
from reporter.ledger.blobs import Step, no_step
from reporter.run.plan import Key
from reporter.run.record import Record
from reporter.run.state import Snapshot

_PIECE: Final = 256 * 1024
_LEVEL: Final = 6
_GZIP: Final = 31
_BLOCK: Final = 512
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC


class PackageFailed(ReporterError):
    """The tarball could not be made. Everything it is made from is still there."""


class BodiesLost(PackageFailed):
    """Bodies were damaged and are removed: without the results of `keys` it can be made."""

    def __init__(self, why: str, keys: Collection[Key]) -> None:
        super().__init__(why)
        self.keys = keys


class Interrupted(PackageFailed):
    """The process is to stop; the next one makes the tarball."""


def package_names(run: str, started_at: float) -> Iterator[str]:
    """Yield the names that the tarball of a run may have, the first one unless that is taken."""
    name = f"{datetime.fromtimestamp(started_at, UTC):%Y%m%d%H%M}_sonobuoy_{run}"
    yield f"{name}.tar.gz"
    yield from (f"{name}-{number}.tar.gz" for number in count(2))


def package(
    snapshot: Snapshot,
    target: Path,
    *,
    open_blob: Callable[[str], IO[bytes]],
    podlogs: Path,
    unfinished: Path,
    stopping: Callable[[], bool],
    step: Step = no_step,
    summaries: Summaries,
    taken_by: str = "",
    run_log: Path | None = None,
) -> tuple[str, int]:
    """Write the tarball of a run to the file `target`; return its SHA-256 in hexadecimal, and size.

    Each body is read once, and seen to be what was received. `open_blob` opens a blob by
    its name, or raises FileNotFoundError. The content of the directory `podlogs` is taken over;
    `unfinished` is one for unfinished things; `summaries` makes what is in a
    plugin's directory beside its results. `taken_by` names the plugin that took the cluster's
    snapshot, which is at the top; `run_log` is what was logged so far. Raises OSError,
    `BodyDamaged` and `PackageFailed`: `Interrupted` once `stopping` says so.
    """
    go_on = partial(_go_on, stopping)
    plugins, superseded = homes(snapshot)
    with (
        os.fdopen(os.open(target, _NEW, 0o600), "wb") as file,
        contextlib.closing(summaries),
        contextlib.ExitStack() as files,
    ):
        records = RecordFolders(open_blob, unfinished, go_on)
        writer = _Writer(file, records, go_on, step, summaries, files=files)
        writer.add(b"meta", meta(snapshot, run_log, files), snapshot.started_at)
        writer.add(b"plugins", plugins, snapshot.started_at, top=taken(snapshot, taken_by))
        writer.add_top(podlogs)
        if any(podlogs.iterdir()):
            writer.add_directory(podlogs)
        if superseded:
            writer.add(b"superseded", superseded, snapshot.started_at, replaced=True)
        files.close()
        writer.end()
        file.flush()
        os.fsync(file.fileno())
        return writer.sha256, file.tell()


def sync_name(target: Path, step: Step = no_step) -> None:
    """Make a tarball's name survive a loss of power. Raises OSError, and removes it then.

    A second fsync may say nothing of what the first one failed at, so the tarball is made again.
    """
    try:
        step("package sync directory")
        sync_directory(target.parent)
    except OSError:
        with contextlib.suppress(OSError):
            target.unlink()
        raise


def measure(file: IO[bytes], stopping: Callable[[], bool]) -> tuple[str, int]:
    """The SHA-256 of what is in a file, in hexadecimal, and its size.

    Raises OSError, `Interrupted`.
    """
    found, size = hashlib.sha256(), 0
    while data := file.read(4 * _PIECE):
        _go_on(stopping)
        found.update(data)
        size += len(data)
    return found.hexdigest(), size


class _Writer:
    """A gzip'd tar that is being written. Only directories and regular files get in."""

    def __init__(
        self,
        out: IO[bytes],
        records: RecordFolders,
        go_on: Callable[[], None],
        step: Step,
        summaries: Summaries,
        *,
        files: contextlib.ExitStack,
    ) -> None:
        self._out, self._records, self._summaries = out, records, summaries
        self._go_on, self._step, self._open = go_on, step, files
        self._gzip = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
        self._hash = hashlib.sha256()
        self._top, self._top_at = Folder(), 0.0

    @property
    def sha256(self) -> str:
        """The SHA-256 of what was written."""
        return self._hash.hexdigest()

    def add(
        self,
        path: bytes,
        folder: Folder,
        at: float,
        *,
        replaced: bool = False,
        top: Record | None = None,
    ) -> None:
        """Add a directory with all that is in it: its files, then its directories, by name.

        `at` is Unix seconds. The bytes of a record that is `replaced` may be gone: no worker would
        send them again. The files of the record `top` that belong to the top are left to `add_top`.
        """
        # No more than one path for each level: there may be very many, and long.
        levels: list[tuple[bytes, Iterator[tuple[bytes, Folder | Record]]]] = [
            (b"", iter([(path, folder)]))
        ]
        while levels:
            found = next(levels[-1][1], None)
            if found is None:
                last, _ = levels.pop()
                if last.count(b"/") == 1 and last.startswith(b"plugins/"):
                    with self._summaries.finished(last) as more:
                        self._files(last, more, at)
                continue
            path, below = found
            if isinstance(below, Record):
                with contextlib.ExitStack() as files:
                    kept = self._open if below is top else files
                    opened = kept.enter_context(self._records.opened(below, replaced=replaced))
                    whole = Folder(opened)
                    if below is top:
                        self._top, self._top_at = part(opened), below.at
                    self.add(path, opened, below.at)
                    if not replaced:
                        self._summaries.seen(path, below, whole)
                continue
            self._directory(path, at)
            self._files(path, below, at)
            levels.append((path, _directories(path, below)))

    def _files(self, path: bytes, folder: Folder, at: float) -> None:
        for name in sorted(folder):
            if isinstance(content := folder[name], Content):
                self._file(path + b"/" + name, content, at)

    def add_top(self, podlogs: Path) -> None:
        """Add what was left for the top; its logs yield to those in `podlogs`."""
        logs = self._top.get(podlogs.name.encode())
        if isinstance(logs, Folder):
            yield_to(podlogs, logs)
        for name in sorted(self._top):
            below = self._top[name]
            if isinstance(below, Content):
                self._file(name, below, self._top_at)
            elif isinstance(below, Folder):
                self.add(name, below, self._top_at)

    def add_directory(self, top: Path) -> None:
        """Add a directory of the disk in the same way. Raises OSError."""
        for home, folders, files in os.walk(top, onerror=_raise):
            folders.sort()
            path = os.fsencode(os.path.relpath(home, top.parent))
            self._directory(path, Path(home).stat().st_mtime)
            for name in sorted(files):
                with Path(home, name).open("rb") as file:
                    found = os.fstat(file.fileno())
                    content = Content(file, 0, found.st_size)
                    self._file(path + b"/" + os.fsencode(name), content, found.st_mtime)

    def end(self) -> None:
        """Finish the tar and the gzip."""
        self._write(bytes(2 * _BLOCK))
        self._put(self._gzip.flush())

    def _directory(self, path: bytes, at: float) -> None:
        self._header(path, tarfile.DIRTYPE, 0o755, 0, at)

    def _file(self, path: bytes, content: Content, at: float) -> None:
        self._header(path, tarfile.REGTYPE, 0o644, content.size, at)
        left = content.size
        content.file.seek(content.at)
        while left and (data := content.file.read(min(left, _PIECE))):
            self._write(data)
            left -= len(data)
        if left:
            raise BodyDamaged("a file is shorter than when it was received")
        self._write(bytes(-content.size % _BLOCK))

    def _header(self, path: bytes, kind: bytes, mode: int, size: int, at: float) -> None:
        self._step("package member")
        info = tarfile.TarInfo(os.fsdecode(path))
        info.type, info.mode, info.size, info.mtime = kind, mode, size, int(at)
        # Names that are no UTF-8 are said to be binary, which readers take as they are.
        self._write(info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape"))

    def _write(self, data: bytes) -> None:
        self._go_on()
        self._put(self._gzip.compress(data))

    def _put(self, data: bytes) -> None:
        self._hash.update(data)
        self._out.write(data)


def _directories(path: bytes, folder: Folder) -> Iterator[tuple[bytes, Folder | Record]]:
    for name in sorted(folder):
        if not isinstance(below := folder[name], Content):
            yield path + b"/" + name, below


def _raise(error: OSError) -> None:
    raise error


def _go_on(stopping: Callable[[], bool]) -> None:
    if stopping():
        raise Interrupted("stopped while the results were packed")
