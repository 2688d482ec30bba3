"""The upload of the tarball to a presigned URL: tried out before the run, carried out at its end.

The URL is a credential. It is read from its file for each try and is in no text that leaves here.
"""

from __future__ import annotations

import asyncio
import math
import os
import random
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from http.client import responses
from pathlib import Path
from typing import IO, Final

from urllib3.util import SKIP_HEADER

from reporter.aggregator.store import Store
from reporter.core.retry import next_delay
from reporter.core.run.destination import (
    LONGEST_URL,
    Destination,
    expires_too_soon,
    read_destination,
)
from reporter.core.run.snapshot import Tar
from reporter.core.run.tar_upload import (
    LARGEST,
    TarUpload,
    UploadState,
    Verdict,
    error_code,
    judge,
)
from reporter.errors import ReporterError, SettingsError
from reporter.link.connection import AggregatorConnection, NoAnswer
from reporter.link.request import Request
from reporter.link.sockets import Socket, TimeLimits
from reporter.runtime import log

_PIECE: Final = 256 * 1024
_LIMITS: Final = TimeLimits(connect=10.0, handshake=10.0, send=60.0, answer=300.0)
_REACHED_WITHIN: Final = 30.0  # seconds: a new Pod's network and name service may need some
_FIRST_DELAY, _LONGEST_DELAY = 2.0, 60.0  # seconds between two tries


class UploadRefused(ReporterError):
    """Another try would not help."""


class UploadFailed(ReporterError):
    """It has failed this time. `retry_after` is what the store wishes, in seconds."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class _Stopped(Exception):
    """The process is to stop, or the time is over."""


@dataclass(frozen=True, slots=True)
class _AuthoritiesOf:
    """Trust in the certificate authorities of a file, or without one in the system's."""

    file: str

    def secure(self, dial: Callable[[ssl.SSLContext], Socket]) -> Socket:
        return dial(ssl.create_default_context(cafile=self.file or None))


class Upload:
    """The upload of one run's tarball, which lies in `folder`.

    `url_file` has the URL, `ca` the CA of its host where that is not one of the system's. After
    `give_up` seconds, all tries included, it has failed; but each process tries it once at least,
    however long there was none, and no try takes longer. `clock` is monotonic, `wall` Unix time.
    """

    def __init__(
        self,
        folder: Path,
        url_file: Path,
        ca: str = "",
        *,
        give_up: float = 3_600.0,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        rng: Callable[[], float] = random.random,
        limits: TimeLimits = _LIMITS,
        reached_within: float = _REACHED_WITHIN,
    ) -> None:
        self._folder, self._url_file, self._give_up = folder, url_file, give_up
        self._clock, self._wall, self._rng = clock, wall, rng
        self._trust, self._limits, self._reached_within = _AuthoritiesOf(ca), limits, reached_within
        self._stopping = threading.Event()
        self._failures, self._next_try = 0, -math.inf
        self._first: float | None = None  # Unix time of the first try of this process
        self._log = log.get()

    def check(self, now: float, seconds: float) -> None:
        """Try the destination out before a run that may last so long. Blocks.

        Raises SettingsError, and UploadFailed where it is not reached.
        """
        destination = self._destination()
        if problem := expires_too_soon(destination, now, now + seconds):
            raise SettingsError([f"UPLOAD_URL_FILE: {problem}"])
        self._reach(destination)

    async def resume(self, store: Store, seconds: float) -> None:
        """Note where the tarball of this run is to go, and log what has changed for the worse.

        A run that has begun goes on whatever became of its URL. Raises StoreError.
        """
        snapshot, now = store.snapshot(), self._wall()
        upload = snapshot.upload
        if upload is not None and upload.over:
            return
        problem, host = "", "unknown" if upload is None else upload.host
        try:
            destination = await asyncio.to_thread(self._destination)
        except SettingsError as error:
            problem = error.problems[0]
        else:
            problem = expires_too_soon(destination, now, snapshot.started_at + seconds)
            host = destination.shown
        if problem:
            self._log.warning("The upload may fail", host=host, problem=problem)
        if upload is None:
            await store.note_upload(TarUpload(host, UploadState.WAITING, now))
        elif upload.host != host:
            await store.note_upload(replace(upload, host=host))

    async def begin(self, store: Store, tar: Tar) -> None:
        """Note that there is a tarball now. Raises StoreError."""
        upload, now = store.snapshot().upload, self._wall()
        assert upload is not None, "`resume` has noted one"
        begun = replace(upload, state=UploadState.UPLOADING, at=now, since=now)
        await store.note_upload(begun, tar)
        self._log.info("Upload begins", host=upload.host, bytes=tar.size)

    async def drop(self, store: Store) -> None:
        """Note that there will be no tarball. Raises StoreError."""
        upload = store.snapshot().upload
        if upload is not None and not upload.over:
            await self._ended(store, upload, "there is no tarball")

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
            self._first = self._wall()
        settling = min(self._reached_within, self._give_up)
        end = max(upload.since + self._give_up, self._first + settling)
        try:
            await self._in_thread(tar, max(end, self._first + self._give_up))
        except _Stopped:
            if self._stopping.is_set():
                return False  # the next process begins again
            return await self._ended(store, upload, self._too_long(upload))
        except UploadRefused as error:
            return await self._ended(store, upload, str(error))
        except UploadFailed as error:
            return await self._again(store, upload, error, end)
        return await self._ended(store, upload)

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

    async def _ended(self, store: Store, upload: TarUpload, error: str = "") -> bool:
        state = UploadState.FAILED if error else UploadState.UPLOADED
        await store.note_upload(replace(upload, state=state, error=error, at=self._wall()))
        if error:
            self._log.error(
                "Upload given up, the results stay with the aggregator",
                host=upload.host,
                error=error,
            )
        else:
            self._log.info("Tarball uploaded", host=upload.host)
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
        if self._wall() + delay >= end:
            return await self._ended(store, upload, f"{self._too_long(upload)}: {error}")
        self._log.warning(
            "Upload failed, it is tried again",
            host=upload.host,
            error=error,
            next_try_seconds=round(delay, 1),
        )
        self._next_try = self._clock() + delay
        text = str(error)
        if upload.error != text:
            await store.note_upload(replace(upload, error=text, at=self._wall()))
        return False

    def _too_long(self, upload: TarUpload) -> str:
        return f"given up after {self._give_up:.0f} s" + (
            f": {upload.error}" if upload.error else ""
        )

    # -- in a thread -----------------------------------------------------------------------------

    def _destination(self) -> Destination:
        """Read the URL. Raises SettingsError, without a word of it."""
        try:
            with self._url_file.open("rb") as file:
                written = file.read(LONGEST_URL + 2).strip()
        except OSError as error:
            raise SettingsError([f"UPLOAD_URL_FILE: {self._url_file}: {error.strerror}"]) from None
        try:
            return read_destination(written.decode("latin-1"))
        except ValueError as error:
            raise SettingsError([f"UPLOAD_URL_FILE: {error}"]) from None

    def _reach(self, destination: Destination) -> None:
        """Make a TLS connection. Raises UploadFailed after some tries."""
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

    def _connection(self, destination: Destination) -> AggregatorConnection:
        connection = AggregatorConnection(
            destination.host, destination.port, self._trust, self._limits
        )
        connection.blocksize = _PIECE
        return connection

    def _put(self, tar: Tar, end: float) -> None:
        try:
            destination = self._destination()
        except SettingsError as error:
            raise UploadFailed(error.problems[0]) from None  # a Secret that is being replaced
        path = self._folder / tar.name
        try:
            with path.open("rb", buffering=0) as file:
                size = os.fstat(file.fileno()).st_size
                if size != tar.size:
                    raise UploadRefused(
                        f"the tarball has {size} bytes, it was made with {tar.size}"
                    )
                if size > LARGEST:
                    raise UploadRefused(
                        f"the tarball has {size} bytes, and object stores take at most {LARGEST} "
                        "in one upload"
                    )
                self._put_file(destination, file, size, end)
        except OSError as error:
            raise UploadFailed(f"the tarball cannot be read: {error.strerror}") from None

    def _put_file(self, destination: Destination, file: IO[bytes], size: int, end: float) -> None:
        sent = 0

        def left() -> float:
            return 0.0 if self._stopping.is_set() else end - self._wall()

        def pieces() -> Iterator[bytes]:
            nonlocal sent
            while sent < size:
                if left() <= 0:
                    raise _Stopped
                piece = file.read(min(_PIECE, size - sent))
                if not piece:
                    raise UploadRefused("the tarball was cut off while it was uploaded")
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
        verdict = judge(answer.status)
        if verdict is Verdict.DONE and sent == size:
            return
        said = _said(answer.status)
        if code := error_code(answer.body, destination.target):
            said = f"{said} ({code})"
        if 300 <= answer.status < 400:
            said += ": redirects are not followed; the URL must name the host that stores it"
        if verdict is Verdict.DONE:
            said += f" came before all was sent ({sent} of {size} bytes)"
        if verdict is Verdict.NEVER:
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
    return "its answer is not HTTP"


async def give_up_unwanted(store: Store, now: float) -> None:
    """End an upload that was asked for when the run began and is not any more."""
    upload = store.snapshot().upload
    if upload is not None and not upload.over:
        error = "UPLOAD_URL_FILE is no longer set"
        await store.note_upload(replace(upload, state=UploadState.FAILED, error=error, at=now))
