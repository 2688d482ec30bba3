"""One upload: what its body turns out to be, and the record it becomes.

Blocks, except for `record`: for threads. Where it is kept and who else wants its place is decided
elsewhere.
"""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from reporter.aggregator.store.files import READ_FILE, Step, write_new
from reporter.aggregator.store.staging import StagedBody
from reporter.aggregator.uploads.limits import Limits
from reporter.aggregator.uploads.meta import Meta
from reporter.aggregator.uploads.outcomes import UploadCut
from reporter.aggregator.uploads.reports import (
    FILE,
    REPORT_BYTES,
    SILENT,
    SONOBUOY_BYTES,
    Judged,
    Report,
    judge,
    parse_report,
    sonobuoy_report,
    unreadable,
)
from reporter.aggregator.uploads.unpack import unpack
from reporter.core.run.plan import Key
from reporter.core.run.record import Cause, Rank, Record
from reporter.core.run.results import ResultStatus
from reporter.core.text import clean
from reporter.errors import InvalidPayload
from reporter.untar import NotTar
from reporter.wire.result import MAX_BYTES

_TARBALLS: Final = (".tar.gz", ".tgz")
_TYPE_BYTES: Final = 255


class Upload:
    """A body that has been read, or is being read, for a key. `began` is on `clock`."""

    def __init__(
        self, key: Key, meta: Meta, body: StagedBody, *, at: float, clock: Callable[[], float]
    ) -> None:
        self.key, self.meta, self.body = key, meta, body
        self.tree: Path | None = None
        self.archive = False
        self._at, self._clock, self._began = at, clock, clock()
        self._report: Report | None = None
        self._judged: Judged | None = None
        self._notes: tuple[str, ...] = ()

    def now(self) -> float:
        """The time in Unix seconds, on the clock of the request's arrival."""
        return self._at + (self._clock() - self._began)

    def finish(self, pieces: Sequence[bytes]) -> None:
        """Write the last pieces, and see what the body is: `archive` says whether to unpack it.

        Raises `InvalidPayload`, `UploadCut` and OSError.
        """
        body, meta = self.body, self.meta
        body.write(pieces)
        if meta.length is not None and body.size != meta.length:
            raise UploadCut(f"{body.size} of {meta.length} bytes came")
        if meta.digest is not None and meta.digest.lower() != body.digest:
            raise InvalidPayload("the body does not have its Content-Digest")
        if not meta.error and not meta.disposition and body.size <= SONOBUOY_BYTES:
            self._report = sonobuoy_report(os.pread(body.fd, body.size, 0))
        elif meta.error and not meta.archive:
            if body.size > REPORT_BYTES:
                raise InvalidPayload(f"an error report larger than {REPORT_BYTES} bytes")
            self._report = parse_report(os.pread(body.fd, body.size, 0))
        self.archive = meta.archive and self._report is None
        if meta.adapter and not meta.error and self._report is None:
            self._judged = self._judge()

    def _judge(self) -> Judged:
        if self.archive:
            return unreadable("an archive")
        if self.body.size > MAX_BYTES:
            return unreadable(f"larger than {MAX_BYTES} bytes")
        return judge(os.pread(self.body.fd, self.body.size, 0))

    def unpack(self, tree: Path, limits: Limits, room: Callable[[], None], step: Step) -> None:
        """Unpack it into the new directory `tree`, or find that it is an opaque file after all.

        Raises `InvalidPayload` and OSError; `self.tree` is then what is to be removed.
        """
        self.tree = tree
        try:
            self._notes = unpack(
                self.body.fd,
                self.body.size,
                tree,
                limits,
                deadline=self._clock() + limits.archive_seconds,
                clock=self._clock,
                room=room,
                step=step,
            )
        except NotTar:
            name = self.meta.filename.lower()
            if self.meta.error or not name or name.endswith(_TARBALLS):
                raise
            self.tree, self.archive = None, False
            return
        if self.meta.error:
            self._report = _report_in(tree)

    def record(self) -> Record:
        """What the store is to keep of it."""
        meta, report, judged = self.meta, self._report, self._judged
        verdict = "" if judged is None else judged.verdict
        if report is not None and meta.adapter:
            verdict = ResultStatus.UNKNOWN if report.unknown else ResultStatus.FAILED
        said = report or judged
        return Record(
            Rank.RESULT if report is None else Rank.WORKER,
            self.now(),
            digest=self.body.digest,
            size=self.body.size,
            filename=meta.stored_name,
            content_type=clean(meta.content_type, _TYPE_BYTES),
            serial=meta.serial,
            unpacked=self.archive,
            notes=self._notes,
            cause=None if report is None else Cause.WORKER_ERROR,
            reason="" if said is None else said.reason,
            text="" if report is None else report.text,
            document="" if report is None else report.document,
            verdict=verdict,
            message="" if judged is None else judged.message,
        )


def _report_in(tree: Path) -> Report:
    """The report in an unpacked archive with partial output; put there if it has none."""
    path = tree / FILE
    try:
        if path.is_dir():
            raise InvalidPayload(f"{FILE} is a directory")
        fd = os.open(path, READ_FILE)
    except FileNotFoundError:
        write_new(path, SILENT.document.encode())
        return SILENT
    try:
        size = os.fstat(fd).st_size
        if size > REPORT_BYTES:
            raise InvalidPayload(f"an error report larger than {REPORT_BYTES} bytes")
        return parse_report(os.pread(fd, size, 0))
    finally:
        os.close(fd)
