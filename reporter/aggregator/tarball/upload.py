"""The upload of the tarball to a presigned URL: tried out before the run, carried out at its end.

The URL is a credential. It is read from its file for each try and is in no text that leaves here.
"""

from __future__ import annotations

import asyncio
import math
import random
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from reporter.aggregator.tarball.object_store import (
    LIMITS,
    ObjectStore,
    UploadFailed,
    UploadRefused,
    UploadStopped,
)
from reporter.common import log
from reporter.common.retry import next_delay
from reporter.errors import SettingsError
from reporter.ledger import Store
from reporter.link import TimeLimits
from reporter.run.clock import RunClock
from reporter.run.state import Phase, Tar
from reporter.run.tar_upload import TarUpload, UploadState, expires_too_soon, too_large

_REACHED_WITHIN: Final = 30.0  # seconds: a new Pod's network and name service may need some
_FIRST_DELAY, _LONGEST_DELAY = 2.0, 60.0  # seconds between two tries


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
        limits: TimeLimits = LIMITS,
        reached_within: float = _REACHED_WITHIN,
    ) -> None:
        self._give_up = give_up
        self._now, self._rng = now or RunClock(time.monotonic, time.time), rng
        self._clock = self._now.clock
        self._reached_within, self._stopping = reached_within, threading.Event()
        self._target = ObjectStore(folder, url_file, ca, limits, self._stopping, now=self._now)
        self._failures, self._next_try = 0, -math.inf
        self._first: float | None = None  # the first try of this process
        self._log = log.get()

    def check(self, now: float, seconds: float) -> None:
        """Try the destination out before a run that may last so long. Blocks.

        Raises SettingsError, and UploadFailed where it is not reached.
        """
        destination = self._target.destination()
        if problem := expires_too_soon(destination, now, now + seconds):
            raise SettingsError([f"UPLOAD_URL_FILE: {problem}"])
        self._target.reach(destination, self._reached_within)

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
            destination = await asyncio.to_thread(self._target.destination)
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
            await store.note_upload(replace(upload, error=problem, at=self._now()))
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
            self._first = self._now()
        settling = min(self._reached_within, self._give_up)
        end = max(upload.since + self._give_up, self._first + settling)
        try:
            await self._in_thread(tar, max(end, self._first + self._give_up))
        except UploadStopped:
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
        work = asyncio.ensure_future(asyncio.to_thread(self._target.put, tar, end))
        try:
            await asyncio.shield(work)
        except asyncio.CancelledError:
            await asyncio.wait((work,))
            raise

    async def _ended(self, store: Store, upload: TarUpload, error: str = "") -> bool:
        state = UploadState.FAILED if error else UploadState.UPLOADED
        await store.note_upload(replace(upload, state=state, error=error, at=self._now()))
        if error:
            self._log.error(
                "Upload given up; the results remain on the aggregator",
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
        if self._now() + delay >= end:
            return await self._ended(store, upload, f"{self._too_long(upload)}: {error}")
        self._log.warning(
            "Upload failed, retrying",
            host=upload.host,
            error=error,
            next_try_seconds=round(delay, 1),
        )
        self._next_try = self._clock() + delay
        text = str(error)
        if upload.error != text:
            await store.note_upload(replace(upload, error=text, at=self._now()))
        return False

    def _too_long(self, upload: TarUpload) -> str:
        return f"given up after {self._give_up:.0f} s" + (
            f": {upload.error}" if upload.error else ""
        )


async def give_up_unwanted(store: Store, now: float) -> None:
    """End an upload that was asked for when the run began and is not any more."""
    upload = store.snapshot().upload
    if upload is not None and not upload.over:
        error = "UPLOAD_URL_FILE is no longer set"
        await store.note_upload(replace(upload, state=UploadState.FAILED, error=error, at=now))
