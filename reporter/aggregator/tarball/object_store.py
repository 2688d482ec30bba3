"""One tarball and the object store that a presigned URL names: reached, and put there once.

The URL is a credential. It is read from its file for each try and is in no text that leaves here.
"""

from __future__ import annotations

import errno
import os
import ssl
import threading
from collections.abc import Iterator
from contextlib import closing
from http.client import responses
from pathlib import Path
from typing import IO, Final

from urllib3.util import SKIP_HEADER

from reporter.errors import MissingFile, ReporterError, SettingsError
from reporter.link.connection import Connection, Dial, NoAnswer, TimeLimits
from reporter.link.messages import Request
from reporter.run.clock import RunClock
from reporter.run.state import Tar
from reporter.run.tar_upload import (
    LARGEST,
    LONGEST_URL,
    Destination,
    PutOutcome,
    error_code,
    put_outcome,
    read_destination,
)

_PIECE: Final = 256 * 1024
LIMITS: Final = TimeLimits(connect=10.0, handshake=10.0, silence=300.0)


class UploadRefused(ReporterError):
    """Another try would not help."""


class UploadFailed(ReporterError):
    """It has failed this time. `retry_after` is what the store asks for, in seconds."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class UploadStopped(Exception):
    """The process is to stop, or the time is over."""


class ObjectStore:
    """Takes a tarball that lies in `folder`. All of it blocks, until `stopping` is set at most.

    `url_file` has the URL, `ca` the CA of its host where that is not one of the system's; `now`
    is the clock of the run.
    """

    def __init__(
        self,
        folder: Path,
        url_file: Path,
        ca: str,
        limits: TimeLimits,
        stopping: threading.Event,
        *,
        now: RunClock,
    ) -> None:
        self._folder, self._url_file = folder, url_file
        self._ca, self._limits = ca, limits
        self._stopping, self._clock, self._now = stopping, now.clock, now

    def destination(self) -> Destination:
        """Read the URL. Raises SettingsError, without a word of it."""
        try:
            with self._url_file.open("rb") as file:
                written = file.read(LONGEST_URL + 2).strip()
        except OSError as error:
            kind = MissingFile if isinstance(error, FileNotFoundError) else SettingsError
            raise kind([f"UPLOAD_URL_FILE: {self._url_file}: {error.strerror}"]) from None
        try:
            return read_destination(written.decode("latin-1"))
        except ValueError as error:
            raise SettingsError([f"UPLOAD_URL_FILE: {error}"]) from None

    def reach(self, destination: Destination, within: float) -> None:
        """Make a TLS connection. Raises UploadFailed after some tries, for so many seconds."""
        until = self._clock() + within
        while True:
            try:
                with closing(self._connection(destination)) as connection:
                    connection.connect()
                return
            except OSError as error:
                lasting = isinstance(error, ssl.SSLCertVerificationError)
                if lasting or self._clock() >= until or self._stopping.wait(1.0):
                    said = f"cannot connect to the upload host {destination.shown}"
                    raise UploadFailed(f"{said}: {_plain(error)}") from None

    def _connection(self, destination: Destination) -> Connection:
        connection = Connection(destination.host, destination.port, self._secure, self._limits)
        connection.blocksize = _PIECE
        return connection

    def _secure(self, dial: Dial) -> ssl.SSLSocket:
        """Trust the authorities of the file, or without one the system's."""
        try:
            context = ssl.create_default_context(cafile=self._ca or None)
        except OSError as error:
            why = "not PEM" if isinstance(error, ssl.SSLError) else error.strerror
            raise OSError(errno.EINVAL, f"UPLOAD_CA: {self._ca}: {why}") from None
        return dial(context)

    def put(self, tar: Tar, end: float) -> None:
        """Put it once, until `end` at most, by the run's clock.

        Raises UploadRefused, UploadFailed, and UploadStopped when `end` or the process's end has
        come.
        """
        try:
            destination = self.destination()
        except SettingsError as error:
            raise UploadFailed(error.problems[0]) from None  # a Secret that is being replaced
        path = self._folder / tar.name
        try:
            with path.open("rb", buffering=0) as file:
                size = os.fstat(file.fileno()).st_size
                if size != tar.size:
                    raise UploadRefused(f"the tarball has {size} bytes, expected {tar.size}")
                if size > LARGEST:
                    raise UploadRefused(
                        f"the tarball has {size} bytes, and object stores accept at most "
                        f"{LARGEST} in one upload"
                    )
                self._put_file(destination, file, size, end)
        except OSError as error:
            raise UploadFailed(f"the tarball cannot be read: {error.strerror}") from None

    def _put_file(self, destination: Destination, file: IO[bytes], size: int, end: float) -> None:
        sent = 0

        def left() -> float:
            return 0.0 if self._stopping.is_set() else end - self._now()

        def pieces() -> Iterator[bytes]:
            nonlocal sent
            while sent < size:
                if left() <= 0:
                    raise UploadStopped
                piece = file.read(min(_PIECE, size - sent))
                if not piece:
                    raise UploadRefused("the tarball was truncated during the upload")
                yield piece
                sent += len(piece)  # only now it has left

        headers = {
            "Content-Length": str(size),
            # A store refuses what was not signed with the URL.
            "User-Agent": SKIP_HEADER,
            "Accept-Encoding": SKIP_HEADER,
            **({"x-ms-blob-type": "BlockBlob"} if destination.azure else {}),
        }
        request = Request("PUT", destination.target, headers, pieces())
        try:
            with closing(self._connection(destination)) as connection:
                answer = connection.exchange(request, left)
        except NoAnswer as error:
            if left() <= 0:
                raise UploadStopped from None
            raise UploadFailed(_plain(error.__cause__)) from None
        outcome = put_outcome(answer.status)
        if outcome is PutOutcome.DONE and sent == size:
            return
        said = _said(answer.status)
        if code := error_code(answer.body, destination.target):
            said = f"{said} ({code})"
        if 300 <= answer.status < 400:
            said += ": redirects are not followed; the URL must name the host that stores it"
        if outcome is PutOutcome.DONE:
            said += f" was received before all was sent ({sent} of {size} bytes)"
        if outcome is PutOutcome.NEVER:
            raise UploadRefused(said)
        raise UploadFailed(said, answer.retry_after)


def _said(status: int) -> str:
    return f"{status} {responses.get(status, '')}".strip()


def _plain(error: BaseException | None) -> str:
    """Say what was wrong with a connection, in words that have nothing of the request."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not accepted: {error.verify_message}"
    if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError | ConnectionError) and not (
        isinstance(error, ConnectionRefusedError)
    ):
        return "the connection was cut off"  # which of the ways it was is chance
    if isinstance(error, ssl.SSLError):
        return f"TLS: {(error.reason or 'unknown error').replace('_', ' ').lower()}"
    if isinstance(error, TimeoutError):
        return error.strerror or "timed out"
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    return "its response is not HTTP"
