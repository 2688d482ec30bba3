"""One run from its first result to its tarball: launch groups, sweeps, Wait, packaging.

`tick` looks at the run as it stands and does what is due; it may come early, late or twice. What
failed is tried again by a later one. Sockets and requests are not here.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from typing import TYPE_CHECKING

from reporter.aggregator.context import Context
from reporter.aggregator.entry_log import EntryLog
from reporter.aggregator.intake import Uploads
from reporter.aggregator.server.listener import Listener
from reporter.aggregator.sweep import Silence
from reporter.aggregator.tarball.finish import Finish
from reporter.aggregator.tarball.package import BodiesLost, Interrupted, PackageFailed
from reporter.common.log import RateLimitedLog
from reporter.ledger import StoreError
from reporter.run.entry import may_close
from reporter.run.heartbeats import LATE
from reporter.run.state import Phase, Tar, judging, run_status, still_open

if TYPE_CHECKING:
    from reporter.aggregator.tarball.upload import TarballUploader
    from reporter.launch.launcher import Launcher

_TICK = 1.0  # seconds between looks at the run
_PACE = 0.25  # between looks that changes ask for: a busy run changes all the time
_SHARE = 10.0  # times as long as a look takes is the pause after it, if that is less
_ALIVE_EVERY = 5.0  # seconds between two signs of life on the disk
_FIRST_DELAY, _LONGEST_DELAY = 1.0, 300.0  # seconds between two tries to pack
_DAMAGED = "the stored result is missing or does not match its SHA-256"


class Control:
    """Carries one run through its phases, with what makes the tarball from its results.

    `uploads` are those that are here, `workers` is what they come by. With a `launcher` the run
    closes at the earliest when that has taken the logs; without, clocks begin with the group's
    turn. `tar_upload` uploads the tarball, where that is asked for.
    """

    def __init__(
        self,
        context: Context,
        finish: Finish,
        uploads: Uploads,
        workers: Listener,
        *,
        launcher: Launcher | None = None,
        tar_upload: TarballUploader | None = None,
    ) -> None:
        self._context, self._store = context, context.store
        self._clock, self._now, self._log = context.clock, context.now, context.log
        self._finish, self._uploads = finish, uploads
        self._launcher, self._tar_upload = launcher, tar_upload
        self._silence = Silence(self._store, context.rhythm, lambda: workers.full_seconds)
        self._entry_log = EntryLog(self._store.snapshot(), self._store.changes, self._clock)
        self._rate_limited = RateLimitedLog()
        self._launched: set[str] = set()
        self._looked: float | None = None
        self._back = -math.inf  # since when workers can reach us
        self._told_alive = 0.0
        self._tar: Tar | None = None
        self._failure: tuple[str, float] | None = None  # why and when, not yet written down
        self._next_try, self._delay = -math.inf, _FIRST_DELAY
        self._cleared = False
        self.changed = asyncio.Event()
        """Set when there is something to look at."""
        self.closed_at: float | None = None
        """Monotonic time since which this process has answered for a closed run."""

    async def run(self) -> None:
        """Tick when something has changed, and once a second, until cancelled."""
        unsubscribe = self._store.subscribe(self.changed.set)
        try:
            while True:
                self.changed.clear()
                began = self._clock()
                await self.tick()
                pause = min(_PACE, _SHARE * (self._clock() - began))
                await asyncio.sleep(pause)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_TICK - pause):
                        await self.changed.wait()
        finally:
            unsubscribe()

    async def tick(self) -> None:
        """Do what is due now."""
        try:
            if self._store.phase is Phase.RUNNING:
                await self._resume()
                if self._launcher is None:
                    await self._start_clocks()
                await self._sweep()
                if self._tar_upload is not None:
                    await self._tar_upload.foresee(self._store)
            await self.tell()
            await self._conclude()
        except StoreError as error:
            self._rate_limited.say(
                self._clock(), self._log.error, "Store write failed", error=error
            )

    async def stay_alive(self) -> None:
        """Leave signs of life while the run is packed and uploaded, which `tick` waits for.

        Before that they say that workers can reach us, and `tick` knows.
        """
        while self._store.phase is not Phase.CLOSED:
            if self._store.phase is Phase.POST_PROCESSING:
                self._store.note_alive(self._now())
            await asyncio.sleep(_ALIVE_EVERY)

    async def tell(self) -> None:
        """Log what has become of the entries since it was last told."""
        for _ in self._entry_log.look(self._store.snapshot()):
            await asyncio.sleep(0)  # requests go first

    async def _resume(self) -> None:
        """Let the time in which workers could not reach us not count: our start, a pause."""
        now = self._now()
        if self._looked is None:
            self._silence.forgive(math.inf, self._clock())
        if self._looked is None or now - self._looked > LATE:
            await self._store.workers_return(at=now)
            self._told_alive = self._back = now
        elif now - self._told_alive >= _ALIVE_EVERY:
            self._store.note_alive(now)
            self._told_alive = now
        self._looked = now

    async def _start_clocks(self) -> None:
        """Start the clocks of the first group of plugins that is not through.

        Without a launcher a group counts as launched when the ones before it are through.
        """
        for order in sorted({plugin.order for plugin in self._context.plan.plugins}):
            group = [plugin for plugin in self._context.plan.plugins if plugin.order == order]
            for plugin in group:
                if plugin.name not in self._launched:
                    await self._store.note_plugin_launch(plugin.name, at=self._now())
                    self._launched.add(plugin.name)
            if self._store.open_plugins & {plugin.name for plugin in group}:
                return

    async def _sweep(self) -> None:
        # First, as who is silent as well has the cause that people know.
        await self._store.give_up_due(self._now(), self._uploads.excused, self._uploads.queued)
        mono = self._clock()
        if self._silence.due(mono):
            await self._store.mark_all_failed(self._silence.look(self._now(), mono))
            await self._silence.tell()

    async def _conclude(self) -> None:
        """Take every step towards the end of the run that can be taken."""
        if self._store.phase is Phase.RUNNING:
            if self._launcher is not None and not self._launcher.logs_taken:
                return
            snapshot = self._store.snapshot()
            if (
                still_open(snapshot)
                or judging(snapshot)
                or not may_close(
                    snapshot.entries.values(),
                    self._now(),
                    hold=self._context.settings.hold_seconds,
                    reading=self._uploads.holding,
                    back=self._back,
                )
            ):
                return
            await self._store.advance_run(Phase.POST_PROCESSING)
            self._log.info("Run closed: the set of results is final")
        if self.closed_at is None:
            self.closed_at = self._clock()
        if self._store.phase is Phase.POST_PROCESSING and self._store.snapshot().tar is None:
            await self._package()
        tar = self._store.snapshot().tar
        if tar is not None and not self._cleared:
            await self._clear()
        if (
            tar is not None
            and self._store.phase is Phase.POST_PROCESSING
            # Without one: a process that had an upload was killed meanwhile.
            and (self._tar_upload is None or await self._tar_upload.over(self._store))
        ):
            await self._close(tar)

    async def _package(self) -> None:
        if self._tar is None and self._clock() >= self._next_try:
            try:
                self._tar = await self._finish.package(self._store.snapshot())
            except Interrupted:
                return  # the next process makes it
            except BodiesLost as error:
                for key in error.keys:
                    self._context.metrics.count("lost_results")
                    await self._store.lose(key, _DAMAGED, at=self._now())
                return  # the next tick packs the rest
            except PackageFailed as error:
                self._put_off(str(error))
        if self._tar is None:
            await self._explain()
        elif self._tar_upload is None:
            await self._close(self._tar)
        else:
            await self._tar_upload.begin(self._store, self._tar)

    async def _close(self, tar: Tar) -> None:
        snapshot = await self._store.advance_run(Phase.CLOSED, tar=tar)
        self._log.info(
            "Run finished",
            status=str(run_status(snapshot)),
            tarball=tar.name,
            sha256=tar.sha256,
            bytes=tar.size,
        )

    def _put_off(self, why: str) -> None:
        self._failure = why, self._now()
        self._context.metrics.count("package_failures")
        self._log.error(
            "Packing failed; all received results are kept",
            error=why,
            next_try_seconds=self._delay,
        )
        self._next_try = self._clock() + self._delay
        self._delay = min(2 * self._delay, _LONGEST_DELAY)

    async def _explain(self) -> None:
        """Write down why there is no tarball, and after a long time that there will be none."""
        if self._failure is None:
            return
        why, at = self._failure
        since = await self._store.packing_failed(why, at=at)
        if at - since >= self._context.settings.package_give_up_seconds:
            if self._tar_upload is not None:
                await self._tar_upload.drop(self._store)
            await self._store.advance_run(Phase.CLOSED, error=why)
            self._log.error(
                "Packing given up: fix the cause, then start with --package-again",
                error=why,
                seconds=round(at - since),
            )
        self._failure = None

    async def _clear(self) -> None:
        self._cleared = True
        try:
            await self._finish.clear(self._store.snapshot())
        except OSError as error:
            self._log.warning("Leftover files not removed", error=error)
