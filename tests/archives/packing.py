"""A run with one entry whose tarball is made from bytes in memory."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any

from reporter.aggregator.tarball.content import Sources
from reporter.aggregator.tarball.package import Interrupted, package
from reporter.results.process import Judge
from reporter.run.entry import Entry
from reporter.run.plan import Key, Plan, Plugin
from reporter.run.record import Rank, Record
from reporter.run.state import Phase, Snapshot

KEY = Key("e2e", "global")
AT = 1_700_000_000.5


def archive(body: bytes, rank: Rank = Rank.RESULT, **fields: str) -> Record:
    """The record of an archive."""
    digest = hashlib.sha256(body).hexdigest()
    name = "r.tar.gz"
    return Record(rank, AT, digest, len(body), digest, name, archive=True, **fields)  # type: ignore[arg-type]


def opaque(body: bytes) -> Record:
    """The record of a file."""
    digest = hashlib.sha256(body).hexdigest()
    return Record(Rank.RESULT, AT, digest, len(body), blob=digest, filename="a.json")


class Packing:
    """The directories and blobs of one run with one entry."""

    def __init__(self, top: Path, *bodies: bytes) -> None:
        self.top = top
        self.opened: list[str] = []
        self.blobs = {hashlib.sha256(body).hexdigest(): body for body in bodies}
        self.target = top / "run.tar.gz"
        self.unfinished = top / "unfinished"
        self.podlogs = top / "podlogs"
        self.podlogs.mkdir()
        self.unfinished.mkdir()

    def open(self, digest: str) -> IO[bytes]:
        """Open a blob."""
        if digest not in self.blobs:
            raise FileNotFoundError(errno.ENOENT, "No such file", digest)
        self.opened.append(digest)
        return io.BytesIO(self.blobs[digest])

    def make(
        self,
        record: Record | None,
        superseded: Record | None = None,
        *,
        stopping: Callable[[], bool] = lambda: False,
        read: bool = True,
        definitions: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
        taken_by: str = "",
    ) -> dict[str, bytes | None]:
        """Pack; the members with the content of files, None for directories."""
        entry = Entry(KEY, record, superseded)
        plan = Plan("run-1", (Plugin("e2e"),))
        snapshot = Snapshot(plan, 1, Phase.POST_PROCESSING, AT, {KEY: entry}, {}, {})

        def go_on() -> None:
            if stopping():
                raise Interrupted

        sources = Sources(
            self.open, self.podlogs, self.unfinished, Judge(), go_on, definitions, taken_by
        )
        package(snapshot, self.target, sources)
        found: dict[str, bytes | None] = {}
        if not read:
            return found
        with tarfile.open(self.target) as made:
            for info in made:
                assert info.mtime == int(AT)
                content = made.extractfile(info)
                found[info.name] = None if content is None else content.read()
        return found

    def nothing_is_left(self) -> bool:
        """Whether there is nothing unfinished beside the tarball."""
        return [] == os.listdir(self.unfinished)
