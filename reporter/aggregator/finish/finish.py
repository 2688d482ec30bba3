"""What follows the last result: the tarball, and the end of everything it is made from."""

import asyncio
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from reporter.aggregator.finish.package import (
    Interrupted,
    PackageFailed,
    measure,
    package,
    package_name,
    sync_name,
)
from reporter.aggregator.finish.summary import Summaries
from reporter.aggregator.judging.process import Judge, JudgingStopped
from reporter.aggregator.store.blobs import BlobStore
from reporter.aggregator.store.files import Step, no_step
from reporter.aggregator.store.layout import Layout
from reporter.aggregator.uploads import Intake
from reporter.aggregator.uploads.contents import Contents
from reporter.core.run.snapshot import Snapshot, Tar
from reporter.core.run.status import rfc3339
from reporter.untar import BadArchive


class Finish:
    """Makes the tarball of a run that takes nothing more.

    `contents` keeps what people look at of the results before their bytes go. `taken_by` names the
    plugin that took the cluster's snapshot. `log_written` waits, not for long,
    until what was logged is in its file. `wall` gives Unix seconds.
    """

    def __init__(
        self,
        layout: Layout,
        blobs: BlobStore,
        intake: Intake,
        judge: Judge,
        *,
        contents: Contents | None = None,
        keep_blobs: bool = False,
        definitions: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
        taken_by: str = "",
        log_written: Callable[[], None] = lambda: None,
        wall: Callable[[], float] = time.time,
        step: Step = no_step,
    ) -> None:
        self._layout, self._blobs, self._intake = layout, blobs, intake
        self._keep_blobs = keep_blobs
        self._taken_by, self._wall, self._step = taken_by, wall, step
        self._stopping, self._judge = threading.Event(), judge
        self._definitions, self._log_written = definitions, log_written
        self._contents = contents

    async def package(self, snapshot: Snapshot) -> Tar:
        """Make the tarball, or measure the one that is there.

        Raises `PackageFailed`; then everything it is made from is still there, and it may be tried
        again. A caller that is cancelled gets back when the thread is done: see `stop`.
        """
        await self._intake.quiet()
        work = asyncio.ensure_future(asyncio.to_thread(self._package, snapshot))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            await asyncio.wait((work,))
            raise
        except JudgingStopped as error:
            raise Interrupted(str(error)) from error
        except (OSError, BadArchive) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            raise PackageFailed(f"the tarball cannot be made: {why}") from error

    def _package(self, snapshot: Snapshot) -> Tar:
        layout, stopping = self._layout, self._stopping.is_set
        target = layout.output / package_name(snapshot.plan.run, snapshot.started_at)
        if target.exists():
            # Who put it there may have been killed before its name was durable.
            sync_name(target, self._step)
        else:
            self._log_written()
            package(
                snapshot,
                target,
                open_blob=self._blobs.open,
                podlogs=layout.podlogs,
                quarantine=layout.quarantine,
                unfinished=layout.unfinished,
                stopping=stopping,
                step=self._step,
                summaries=Summaries(
                    snapshot,
                    self._judge,
                    self._definitions,
                    self._blobs.open,
                    layout.unfinished,
                ),
                taken_by=self._taken_by,
                run_log=layout.run_log,
            )
        digest, size = measure(target, stopping)
        return Tar(target.name, rfc3339(self._wall()), digest, size)

    async def clear(self, snapshot: Snapshot) -> None:
        """Remove what a run's tarball was made from, once its row is durable. Raises OSError."""
        if not self._keep_blobs:
            if self._contents is not None:
                try:
                    await self._contents.keep(snapshot)
                except JudgingStopped:
                    return  # the next process does it
            await self._intake.clear()
            await asyncio.to_thread(shutil.rmtree, self._layout.podlogs, ignore_errors=True)

    def stop(self) -> None:
        """Give up a tarball in the making: the next process makes it."""
        self._stopping.set()
        self._judge.stop()
