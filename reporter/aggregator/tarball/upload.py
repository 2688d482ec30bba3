"""The upload of the tarball to a presigned URL: tried out before the run, carried out at its end.

The URL is a credential. It is read from its file for each try and is in no text that leaves here.
"""

from __future__ import annotations

import asyncio
import errno
import math
import os
import random
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from http.client import responses
from pathlib import Path
from typing import IO, Any, Final

from urllib3.util import SKIP_HEADER

from reporter.common import log
from reporter.common.retry import next_delay
from reporter.errors import MissingFile, ReporterError, SettingsError
from reporter.ledger import Store
from reporter.link import TimeLimits
from reporter.link.connection import Connection, Dial, NoAnswer
from reporter.link.messages import Request
from reporter.run.clock import RunClock
from reporter.run.state import Phase, Tar
from reporter.run.tar_upload import (
    LARGEST,
    LONGEST_URL,
    Destination,
    PutOutcome,
    TarUpload,
    UploadState,
    error_code,
    expires_too_soon,
    put_outcome,
    read_destination,
    too_large,
)

_LIMITS: Final = TimeLimits(connect=10.0, handshake=10.0, silence=300.0)
_REACHED_WITHIN: Final = 30.0  # seconds: a new Pod's network and name service may need some
_FIRST_DELAY, _LONGEST_DELAY = 2.0, 60.0  # seconds between two tries
_PIECE: Final = 256 * 1024


class UploadFailed(ReporterError):
    """A try has failed; for good where another one would not help.

    `retry_after` is what the store asks for, in seconds.
    """

    def __init__(
        self, message: str, retry_after: float | None = None, *, for_good: bool = False
    ) -> None:
        super().__init__(message)
        self.retry_after, self.for_good = retry_after, for_good


class _Stopped(Exception):
    """The process is to stop, or the time is over."""


class TarballUploader:
    """Uploads one run's tarball, which lies in `folder`.

    `url_file` has the URL, `ca` the CA of its host where that is not one of the system's. After
    `give_up` seconds, all tries included, it has failed; but each process tries once at least,
    however long there was none, and no try takes longer. `now` is the clock of the run.
    """

    def __init__(
        self,
        folder: Path,
        url_file: Path,
        ca: str = "",
        *,
        give_up: float = 3_600.0,
        now: RunClock | None = None,
        rng: Callable[[], float] = random.random,
        limits: TimeLimits = _LIMITS,
        reached_within: float = _REACHED_WITHIN,
    ) -> None:
        self._folder, self._url_file, self._ca = folder, url_file, ca
        self._give_up, self._limits, self._reached_within = give_up, limits, reached_within
        self._now, self._rng = now or RunClock(time.monotonic, time.time), rng
        self._clock, self._stopping = self._now.clock, threading.Event()
        self._failures, self._next_try = 0, -math.inf
        self._first: float | None = None  # the first try of this process
        self._log = log.get()

    def check(self, now: float, seconds: float) -> None:
        """Try the destination out before a run that may last so long. Blocks.

        Raises SettingsError, and UploadFailed where it is not reached in some tries.
        """
        destination = self._destination()
        if problem := expires_too_soon(destination, now, now + seconds):
            raise SettingsError([f"UPLOAD_URL_FILE: {problem}"])
        until = self._clock() + self._reached_within
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

    async def resume(self, store: Store, seconds: float) -> None:
        """Note where the tarball of this run is to go, and log what has changed for the worse.

        A run that has begun goes on whatever became of its URL. Raises StoreError.
        """
        snapshot, now = store.snapshot(), self._now()
        upload = snapshot.upload
        if upload is not None and upload.over:
            return
        problem, host = "", "unknown" if upload is None else upload.host
        try:
            destination = await asyncio.to_thread(self._destination)
        except SettingsError as error:
            problem = error.problems[0]
        else:
            end = snapshot.started_at + seconds - snapshot.skew
            problem = expires_too_soon(destination, self._now.wall(), end)
            host = destination.shown
        if snapshot.phase is Phase.CLOSED:
            self._log.warning("No upload: the run was over before one was requested", host=host)
            return
        if problem:
            self._log.warning("The upload may fail", host=host, problem=problem)
        if upload is None:
            await store.note_upload(TarUpload(host, UploadState.WAITING, now))
        elif upload.host != host:
            await store.note_upload(replace(upload, host=host))

    async def foresee(self, store: Store) -> None:
        """Note when the results that are there may be too large. Raises StoreError."""
        snapshot = store.snapshot()
        upload = snapshot.upload
        if upload is None or upload.state is not UploadState.WAITING or upload.error:
            return
        if problem := too_large(snapshot.bytes):
            await self._note(store, upload, error=problem)
            self._log.warning("The upload may fail", host=upload.host, problem=problem)

    async def begin(self, store: Store, tar: Tar) -> None:
        """Note that there is a tarball now. Raises StoreError."""
        upload, now = store.snapshot().upload, self._now()
        assert upload is not None, "`resume` has noted one"
        begun = replace(upload, state=UploadState.UPLOADING, at=now, error="", since=now)
        await store.note_upload(begun, tar)
        self._log.info("Upload started", host=upload.host, bytes=tar.size)

    async def drop(self, store: Store) -> None:
        """Note that there will be no tarball. Raises StoreError."""
        upload = store.snapshot().upload
        if upload is not None and not upload.over:
            await self._give_it_up(store, upload, "there is no tarball")

    async def over(self, store: Store) -> bool:
        """Do what is due for the tarball that is there; return whether the upload has ended.

        Raises StoreError; then it is asked again.
        """
        snapshot = store.snapshot()
        tar, upload = snapshot.tar, snapshot.upload
        assert tar is not None
        assert upload is not None
        if upload.over:
            return True
        if self._clock() < self._next_try:
            return False
        assert upload.since is not None
        if self._first is None:
            self._first = self._now()
        settling = min(self._reached_within, self._give_up)
        end = max(upload.since + self._give_up, self._first + settling)
        try:
            await self._in_thread(tar, max(end, self._first + self._give_up))
        except _Stopped:
            if self._stopping.is_set():
                return False  # the next process begins again
            return await self._give_it_up(store, upload, self._too_long(upload))
        except UploadFailed as error:
            if error.for_good:
                return await self._give_it_up(store, upload, str(error))
            return await self._again(store, upload, error, end)
        await self._note(store, upload, state=UploadState.UPLOADED, error="")
        self._log.info("Tarball uploaded", host=upload.host)
        return True

    def stop(self) -> None:
        """Break off: the next process uploads it."""
        self._stopping.set()

    async def _in_thread(self, tar: Tar, end: float) -> None:
        """Put it once. A caller that is cancelled gets back when the thread is done: see `stop`."""
        work = asyncio.ensure_future(asyncio.to_thread(self._put, tar, end))
        try:
            await asyncio.shield(work)
        except asyncio.CancelledError:
            await asyncio.wait((work,))
            raise

    async def _note(self, store: Store, upload: TarUpload, **changes: Any) -> None:
        await store.note_upload(replace(upload, at=self._now(), **changes))

    async def _give_it_up(self, store: Store, upload: TarUpload, error: str) -> bool:
        await self._note(store, upload, state=UploadState.FAILED, error=error)
        self._log.error(
            "Upload given up; the results remain on the aggregator", host=upload.host, error=error
        )
        return True

    async def _again(
        self, store: Store, upload: TarUpload, error: UploadFailed, end: float
    ) -> bool:
        self._failures += 1
        delay = next_delay(
            self._failures,
            self._rng,
            retry_after=error.retry_after,
            first=_FIRST_DELAY,
            longest=_LONGEST_DELAY,
        )
        assert delay is not None
        if self._now() + delay >= end:
            return await self._give_it_up(store, upload, f"{self._too_long(upload)}: {error}")
        self._log.warning(
            "Upload failed, retrying",
            host=upload.host,
            error=error,
            next_try_seconds=round(delay, 1),
        )
        self._next_try = self._clock() + delay
        if upload.error != str(error):
            await self._note(store, upload, error=str(error))
        return False

    def _too_long(self, upload: TarUpload) -> str:
        last = f": {upload.error}" if upload.error else ""
        return f"given up after {self._give_up:.0f} s{last}"

    # What blocks, as `check` does: for threads.

    def _destination(self) -> Destination:
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

    def _put(self, tar: Tar, end: float) -> None:
        """Put it once, until `end` at most, by the run's clock.

        Raises UploadFailed, and _Stopped when `end` or the process's end has come.
        """
        try:
            destination = self._destination()
        except SettingsError as error:
            raise UploadFailed(error.problems[0]) from None  # a Secret that is being replaced
        try:
            with (self._folder / tar.name).open("rb", buffering=0) as file:
                size = os.fstat(file.fileno()).st_size
                wrong = ""
                if size != tar.size:
                    wrong = f"expected {tar.size}"
                elif size > LARGEST:
                    wrong = f"and object stores accept at most {LARGEST} in one upload"
                if wrong:
                    raise UploadFailed(f"the tarball has {size} bytes, {wrong}", for_good=True)
                self._send(destination, file, size, end)
        except OSError as error:
            raise UploadFailed(f"the tarball cannot be read: {error.strerror}") from None

    def _send(self, destination: Destination, file: IO[bytes], size: int, end: float) -> None:
        sent = 0

        def left() -> float:
            return 0.0 if self._stopping.is_set() else end - self._now()

        def pieces() -> Iterator[bytes]:
            nonlocal sent
            while sent < size:
                if left() <= 0:
                    raise _Stopped
                piece = file.read(min(_PIECE, size - sent))
                if not piece:
                    raise UploadFailed("the tarball was truncated during the upload", for_good=True)
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
                raise _Stopped from None
            raise UploadFailed(_plain(error.__cause__)) from None
        outcome = put_outcome(answer.status)
        if outcome is PutOutcome.DONE and sent == size:
            return
        said = f"{answer.status} {responses.get(answer.status, '')}".strip()
        if code := error_code(answer.body, destination.target):
            said = f"{said} ({code})"
        if 300 <= answer.status < 400:
            said += ": redirects are not followed; the URL must name the host that stores it"
        if outcome is PutOutcome.DONE:
            said += f" was received before all was sent ({sent} of {size} bytes)"
        raise UploadFailed(said, answer.retry_after, for_good=outcome is PutOutcome.NEVER)


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


async def give_up_unwanted(store: Store, now: float) -> None:
    """End an upload that was asked for when the run began and is not any more."""
    upload = store.snapshot().upload
    if upload is not None and not upload.over:
        error = "UPLOAD_URL_FILE is no longer set"
        await store.note_upload(replace(upload, state=UploadState.FAILED, error=error, at=now))
