"""The tarball of a run: everything people get, in one file that is there whole or not at all.

It is made from rows and blobs, always in one order. Blocks, possibly for minutes: for a thread of
its own.
"""

import contextlib
import gzip
import hashlib
import json
import os
import tarfile
from collections.abc import Callable, Collection
from pathlib import Path
from typing import IO, Final

from reporter.aggregator.tarball.content import (
    BodyDamaged,
    Content,
    Folder,
    Sources,
    homes,
    opened,
)
from reporter.aggregator.tarball.summary import Summary
from reporter.collect.snapshot.files import TOP
from reporter.common.objects import json_object
from reporter.errors import ReporterError
from reporter.ledger.blobs import Step, no_step
from reporter.run.plan import GLOBAL, Key, plan_document
from reporter.run.record import Rank, Record
from reporter.run.state import Snapshot

_LEVEL: Final = 6
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


def package(
    snapshot: Snapshot, target: Path, sources: Sources, step: Step = no_step
) -> tuple[str, int]:
    """Write the tarball of a run to the file `target`; return its SHA-256 in hexadecimal, and size.

    Each body is read once, and seen to be what was received. Raises OSError, `BodyDamaged`,
    JudgingStopped, and what `sources.go_on` raises.
    """
    with os.fdopen(os.open(target, _NEW, 0o600), "wb") as file:
        out = _Hashed(file)
        with (
            gzip.GzipFile("", "wb", _LEVEL, out, mtime=0) as packed,
            tarfile.open(
                fileobj=packed,
                mode="w",
                format=tarfile.PAX_FORMAT,
                # Names that are no UTF-8 are said to be binary, which readers take as they are.
                encoding="utf-8",
                errors="surrogateescape",
            ) as tar,
            contextlib.ExitStack() as files,
        ):
            writer = _Writer(tar, snapshot.started_at, sources.go_on, step)
            _meta(writer, snapshot, sources)
            _plugins(writer, snapshot, sources, files)
            _superseded(writer, snapshot, sources)
        file.flush()
        os.fsync(file.fileno())
        return out.hash.hexdigest(), file.tell()


class _Hashed:
    """A file that is written, and its SHA-256."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self.hash = file, hashlib.sha256()

    def write(self, data: bytes) -> int:
        """Write it all."""
        self.hash.update(data)
        return self._file.write(data)

    def flush(self) -> None:
        """Do nothing: whoever has the file does."""


class _Writer:
    """A tar that is being written. Only directories and regular files get in.

    What has no time of its own, Unix seconds, is as old as the run.
    """

    def __init__(
        self, tar: tarfile.TarFile, at: float, go_on: Callable[[], None], step: Step
    ) -> None:
        self._tar, self._at, self._go_on, self._step = tar, at, go_on, step

    def directory(self, path: str, at: float | None = None) -> None:
        """Add a directory, without what is in it."""
        self._tar.addfile(self._next(path, tarfile.DIRTYPE, 0o755, at))

    def file(self, path: str, content: Content, at: float | None = None) -> None:
        """Add a file. Raises `BodyDamaged` where it is not as long as it was."""
        info = self._next(path, tarfile.REGTYPE, 0o644, at)
        info.size = content.size
        content.file.seek(content.at)
        self._tar.addfile(info, _Whole(content, self._go_on))

    def json(self, path: str, document: object, indent: int | None = None) -> None:
        """Add a file with a document."""
        self.file(path, Content.of(json.dumps(document, indent=indent).encode()))

    def tree(self, top: str, folder: Folder, at: float) -> None:
        """Add all that is in a directory, at paths that begin with `top`."""
        for path, content in folder.walk(top, files_first=True):
            if content is None:
                self.directory(path, at)
            else:
                self.file(path, content, at)

    def copy(self, top: Path) -> None:
        """Add a directory of the disk. Raises OSError."""
        for home, folders, files in os.walk(top, onerror=_raise):
            folders.sort()
            path = os.path.relpath(home, top.parent)
            self.directory(path, Path(home).stat().st_mtime)
            for name in sorted(files):
                with Path(home, name).open("rb") as file:
                    found = os.fstat(file.fileno())
                    self.file(f"{path}/{name}", Content(file, 0, found.st_size), found.st_mtime)

    def _next(self, path: str, kind: bytes, mode: int, at: float | None) -> tarfile.TarInfo:
        self._step("package member")
        self._go_on()
        self._tar.members.clear()  # type: ignore[attr-defined]  # typeshed; there may be very many
        info = tarfile.TarInfo(path)
        info.type, info.mode, info.mtime = kind, mode, int(self._at if at is None else at)
        return info


class _Whole:
    """The content of a file, from which `tarfile` reads as much as was announced."""

    def __init__(self, content: Content, go_on: Callable[[], None]) -> None:
        self._file, self._go_on = content.file, go_on

    def read(self, size: int = -1, /) -> bytes:
        """Read so many bytes. Raises `BodyDamaged`."""
        self._go_on()
        data = self._file.read(size)
        if len(data) < size:
            raise BodyDamaged("a file is shorter than when it was received")
        return data


def _meta(tar: _Writer, snapshot: Snapshot, sources: Sources) -> None:
    """Add the plugins, which `sonobuoy results` looks for, the plan, what the workers say of
    themselves, and the log so far.

    A tarball does not fail for want of a log.
    """
    tar.directory("meta")
    tar.json("meta/info.json", {"plugins": [plugin.name for plugin in snapshot.plan.plugins]})
    tar.json("meta/plan.json", plan_document(snapshot.plan), indent=1)
    records = {str(key): entry.record for key, entry in snapshot.entries.items() if entry.record}
    told = {key: json_object(record.metadata) for key, record in records.items() if record.metadata}
    if told:
        tar.json("meta/workers.json", told, indent=1)
    with contextlib.ExitStack() as files:
        try:
            file = files.enter_context(sources.run_log.open("rb")) if sources.run_log else None
        except OSError:
            file = None
        if file is not None:
            tar.file("meta/run.log", Content(file, 0, os.fstat(file.fileno()).st_size))


def _plugins(
    tar: _Writer, snapshot: Snapshot, sources: Sources, files: contextlib.ExitStack
) -> None:
    """Add the results and errors of all plugins, and what lies beside `plugins`: logs, a snapshot.

    A snapshot of the cluster is where its readers look for it. Only what a snapshot has by its
    names gets there, and only from the plugin that `status-ctl run` itself has started for it.
    """
    taken, top = _taken(snapshot, sources.taken_by), Folder()
    tar.directory("plugins")
    for plugin, kinds in sorted(homes(snapshot).items()):
        home = f"plugins/{plugin}"
        tar.directory(home)
        with Summary(snapshot, plugin, sources) as summary:
            for kind, records in sorted(kinds.items()):
                tar.directory(f"{home}/{kind}")
                for node, record in sorted(records.items()):
                    path = f"{home}/{kind}/{node}"
                    with contextlib.ExitStack() as own:
                        kept = files if record is taken else own  # read once, for both places
                        folder = kept.enter_context(opened(record, sources))
                        here = Folder(folder)
                        if record is taken:
                            top = Folder({name: here.pop(name) for name in TOP if name in here})
                        tar.directory(path, record.at)
                        tar.tree(f"{path}/", here, record.at)
                        summary.add(f"{kind}/{node}", node, record, folder)
            for name, content in summary.files():
                tar.file(f"{home}/{name}", content)
    if isinstance(logs := top.get(sources.podlogs.name), Folder):
        _yield_to(sources.podlogs, logs)
    if taken is not None:
        tar.tree("", top, taken.at)
    if any(sources.podlogs.iterdir()):
        tar.copy(sources.podlogs)


def _taken(snapshot: Snapshot, plugin: str) -> Record | None:
    """Return the snapshot of the cluster: the plugin's result, if that is an archive."""
    entry = snapshot.entries.get(Key(plugin, GLOBAL))
    record = None if entry is None else entry.record
    if record is None or record.rank is not Rank.RESULT or not record.archive:
        return None
    return record


def _yield_to(directory: Path, folder: Folder) -> None:
    """Remove the files of a folder that are on the disk as well."""
    for name in [*folder]:
        below, there = folder[name], directory / name
        if isinstance(below, Folder):
            if there.is_dir():
                _yield_to(there, below)
        elif there.exists():
            del folder[name]


def _superseded(tar: _Writer, snapshot: Snapshot, sources: Sources) -> None:
    """Add what was replaced by another result of its key."""
    before = ""
    for key, entry in sorted(snapshot.entries.items()):
        if entry.superseded is None:
            continue
        if not before:
            tar.directory("superseded")
        if key.plugin != before:
            tar.directory(f"superseded/{key.plugin}")
            before = key.plugin
        path, at = f"superseded/{key.plugin}/{key.node}", entry.superseded.at
        with opened(entry.superseded, sources, replaced=True) as folder:
            tar.directory(path, at)
            tar.tree(f"{path}/", folder, at)


def _raise(error: OSError) -> None:
    raise error
