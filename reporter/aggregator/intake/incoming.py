"""What a staged body turns out to be, and the record it becomes. Blocks: for threads."""

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from reporter.common.text import clean
from reporter.errors import InvalidPayload
from reporter.ledger.blobs import StagedBody
from reporter.run.error_report import (
    FILE,
    REPORT_BYTES,
    SILENT,
    SONOBUOY_BYTES,
    Report,
    parse_report,
    raw_verdict,
    sonobuoy_report,
    unreadable,
)
from reporter.run.plan import Plugin
from reporter.run.record import Cause, Rank, Record, ResultVerdict, with_verdict
from reporter.run.results import ResultStatus
from reporter.run.settings import Settings
from reporter.run.upload import Meta, UploadEnded, UploadOutcome
from reporter.untar import Caps, NotTar, check
from reporter.verdict.adapter_files import MAX_RESULT_BYTES, decode_result

_TARBALLS: Final = (".tar.gz", ".tgz")
_TYPE_BYTES: Final = 255
_AT_ONCE: Final = 8 * 1024  # bytes of JSON that are read at once: 5 ms if made for that


class Incoming:
    """A body and the head that came with it. `archive` says whether it is one, once it is known.

    `unread` says whether it has JSON that takes long: then `read` is to be called, in a thread that
    does nothing else.

    `plugin` is the one that sends it. A result in a format that has to be parsed is judged later:
    its sender does not wait for that.
    """

    def __init__(self, meta: Meta, body: StagedBody, plugin: Plugin) -> None:
        self.meta, self.body, self._plugin = meta, body, plugin
        self.archive = self.unread = False
        self._json: bytes | None = None  # where it is not the body
        self._report: Report | None = None
        self._said: ResultVerdict | None = None
        self._notes: tuple[str, ...] = ()

    def complete(self, pieces: Sequence[bytes]) -> None:
        """Write the last pieces, and see what the body is, as far as that takes no time.

        Raises `InvalidPayload`, `UploadEnded` and OSError.
        """
        body, meta = self.body, self.meta
        body.write(pieces)
        if meta.length is not None and body.size != meta.length:
            raise UploadEnded(UploadOutcome.CUT, "upload cut off")
        if meta.digest is not None and meta.digest.lower() != body.digest:
            raise InvalidPayload("the body does not match its Content-Digest")
        if not meta.error and not meta.disposition and body.size <= SONOBUOY_BYTES:
            self._report = sonobuoy_report(os.pread(body.fd, body.size, 0))
        elif meta.error and not meta.archive:
            if body.size > REPORT_BYTES:
                raise InvalidPayload(f"an error report larger than {REPORT_BYTES} bytes")
            self._has_json(body.size)
        self.archive = meta.archive and self._report is None
        if self._report is None and not meta.error:
            if meta.adapter or self._plugin.result_format == "adapter":
                self._adapter_result()
            elif self._plugin.result_format == "raw" and not self.archive:
                self._said = raw_verdict(1)

    def _adapter_result(self) -> None:
        if self.archive:
            self._said = unreadable("an archive")
        elif self.body.size > MAX_RESULT_BYTES:
            self._said = unreadable(f"larger than {MAX_RESULT_BYTES} bytes")
        else:
            self._has_json(self.body.size)

    def _has_json(self, size: int) -> None:
        self.unread = True
        if size <= _AT_ONCE:
            self.read()

    def read(self) -> None:
        """Read what an error report or an adapter's result says.

        Raises `InvalidPayload` and OSError.
        """
        data = os.pread(self.body.fd, self.body.size, 0) if self._json is None else self._json
        if self.meta.error:
            self._report = parse_report(data)
        else:
            self._said = _verdict(data)
        self.unread, self._json = False, None

    def verify(self, caps: Caps) -> None:
        """Read all of an archive, or find that it is an opaque file after all.

        Raises `BadArchive`, `InvalidPayload` and OSError.
        """
        wanted, most = (FILE, REPORT_BYTES) if self.meta.error else ("", 0)
        raw = self._said is None and self._plugin.result_format == "raw"
        counted = [name.encode() for name in self._plugin.result_files] if raw else ()
        try:
            with open(os.dup(self.body.fd), "rb") as source:  # noqa: PTH123
                source.seek(0)
                found = check(
                    source,
                    self.body.size,
                    caps,
                    wanted=wanted,
                    wanted_bytes=most,
                    counted=counted,
                )
        except NotTar:
            name = self.meta.filename.lower()
            if self.meta.error or not name or name.endswith(_TARBALLS):
                raise
            self.archive = False
            self._said = raw_verdict(1) if raw else self._said
            return
        self._notes = found.notes
        if raw:
            self._said = raw_verdict(found.files)
        if self.meta.error:
            self._json = found.wanted
            if found.wanted is None:
                self._report = SILENT
            else:
                self._has_json(len(found.wanted))

    def record(self, at: float) -> Record:
        """What the store is to keep of it; it was complete `at` that time."""
        meta, report = self.meta, self._report
        record = Record(
            Rank.RESULT if report is None else Rank.WORKER,
            at,
            digest=self.body.digest,
            size=self.body.size,
            blob=self.body.blob,
            filename=meta.stored_name,
            content_type=clean(meta.content_type, _TYPE_BYTES),
            serial=meta.serial,
            archive=self.archive,
            notes=self._notes,
            metadata=meta.metadata,
        )
        if report is None:
            return record if self._said is None else with_verdict(record, self._said)
        told = ResultStatus.UNKNOWN if report.unknown else ResultStatus.FAILED
        return replace(
            record,
            cause=Cause.WORKER_ERROR,
            reason=report.reason,
            text=report.text,
            document=report.document,
            verdict=told if meta.adapter else "",
        )


def caps_of(settings: Settings) -> Caps:
    """What an archive may hold."""
    return Caps(
        members=settings.archive_max_members,
        file_bytes=settings.archive_max_file_bytes,
        content_bytes=settings.archive_max_bytes,
        seconds=settings.archive_seconds,
    )


def _verdict(data: bytes) -> ResultVerdict:
    """Read an adapter's result. One that is not valid is neither a success nor a failure."""
    try:
        found = decode_result(data)
    except InvalidPayload as error:
        return unreadable(str(error))
    word = ResultStatus.PASSED if found.success else ResultStatus.FAILED
    return ResultVerdict(word, found.reason, found.message, {word: 1})
