"""The running aggregator: its parts started, watched and stopped in order.

It ends when it is asked to, or when workers could no longer reach it: then a new process is better
than one that looks alive.
"""

from __future__ import annotations

import asyncio
import gc
import socket
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from reporter import __version__
from reporter.aggregator import from_settings
from reporter.aggregator.annotate import Annotator
from reporter.aggregator.api import Listener
from reporter.aggregator.assembly import Assembly
from reporter.aggregator.certificates.run import Authority
from reporter.aggregator.command_line import FAILED, GOOD, UNFINISHED
from reporter.aggregator.control import Control
from reporter.aggregator.health import Health
from reporter.aggregator.intake import Intake
from reporter.aggregator.settings import Settings
from reporter.aggregator.startup_gate import StartupGate
from reporter.common import log
from reporter.common.lifecycle import Stop
from reporter.common.log import RateLimitedLog
from reporter.ledger import Store
from reporter.run.plan import Plan
from reporter.run.spec import Launch, longest
from reporter.run.state import Phase
from reporter.run.status import run_fields
from reporter.run.view import passed, upload_failed

if TYPE_CHECKING:
    from reporter.aggregator.tarball.upload import TarballUploader
    from reporter.kube.api import KubeApi
    from reporter.launch.launcher import Launcher


_TICK = 1.0  # seconds between looks at the run, the sockets and the clock
_PACE = 0.25  # between looks that changes ask for: a busy run changes all the time
_SHARE = 10.0  # times as long as a look takes is the pause after it, if that is less
_SHOWN = 1.5  # how long probes see that workers cannot connect before the process ends
_GRACE = 5.0  # for requests at work when we stop
_NO_GRACE = 0.5  # when we have to be gone soon: within 5 s after the workers' socket
_ANNOTATED = 30.0  # for the last status on our Pod, which people read when we have ended
_REMINDER = 600.0  # between warnings about certificates


class Service:
    """One aggregator of one run. `run` returns the exit code.

    `package_again` takes back that packing was given up.
    """

    def __init__(
        self,
        chosen: Settings,
        plan: Plan,
        stop: Stop,
        api: KubeApi | None,
        launch: Launch | None = None,
        *,
        package_again: bool = False,
    ) -> None:
        self._settings, self._plan, self._stop = chosen, plan, stop
        self._package_again = package_again
        self._make = Assembly(chosen, plan, api, launch)
        self._clock, self._wall, self._log = self._make.clock, self._make.wall, log.get()
        self._grace = _GRACE
        self._changed = asyncio.Event()
        self._verdict: int | None = None
        self._last_words: Callable[[], Awaitable[None]] | None = None

    async def run(self) -> int:
        """Work until SIGTERM. Raises ReporterError and OSError when it cannot even start."""
        log.keep(self._make.run_log.write)
        try:
            return await self._run()
        finally:
            log.keep(None)
            await asyncio.to_thread(self._make.run_log.close)

    async def _run(self) -> int:
        self._log.info(
            "Aggregator started",
            version=__version__,
            run=self._plan.run,
            expected=len(self._plan.keys),
            settings=from_settings.differing(self._settings),
        )
        stopping, wake = asyncio.Event(), self._stop.wake.fileno()
        loop = asyncio.get_running_loop()
        loop.add_reader(wake, self._on_wake, stopping)
        self._on_wake(stopping)
        try:
            async with AsyncExitStack() as parts:
                code = await self._serve(parts, stopping)
                self._log.info("Aggregator stopping")
        finally:
            loop.remove_reader(wake)
        self._log.info("Aggregator ended", exit_code=code)
        return code

    def _on_wake(self, stopping: asyncio.Event) -> None:
        self._stop.wake.wait(0)
        if self._stop.requested:
            stopping.set()

    async def _serve(self, parts: AsyncExitStack, stopping: asyncio.Event) -> int:
        """Start everything and wait for the first reason to end; `parts` ends it backwards."""
        tasks: list[asyncio.Task[None]] = []
        stopped = UNFINISHED if self._settings.in_job else GOOD
        asked = asyncio.create_task(_set(stopping))
        starting = asyncio.create_task(self._start(parts, tasks))
        try:
            await asyncio.wait((asked, starting), return_when=asyncio.FIRST_COMPLETED)
            if not starting.done():
                # It may take minutes, and a start that ends halfway is one like after a kill.
                starting.cancel()
                await asyncio.wait((starting,))
                if starting.cancelled():
                    return stopped
            failed = UNFINISHED if self._settings.in_job else FAILED
            ends = {asked: stopped} | dict.fromkeys(starting.result(), failed)
            done, _ = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (asked, *tasks):
                task.cancel()
        for task in done:
            task.result()
        return max(ends[task] for task in done) if self._verdict is None else self._verdict

    async def _start(
        self, parts: AsyncExitStack, tasks: list[asyncio.Task[None]]
    ) -> tuple[asyncio.Task[None], ...]:
        """Start everything, in the order in which it can be promised.

        Adds to `tasks`, and returns those of them that are not to end.
        """
        make, gate = self._make, StartupGate()
        host, port = await self._listen(parts, make.status(gate))
        self._log.info("Status listener ready", host=host, port=port)
        make.layout.prepare()
        known, upload = make.layout.database.exists(), make.upload()
        lasting_at_most = longest(self._plan, make.launch)
        if upload is not None:
            parts.callback(upload.stop)
            if not known:  # nothing has begun yet
                await asyncio.to_thread(upload.check, self._wall(), lasting_at_most)
        store = await self._open(parts, upload, lasting_at_most)
        # They end when the intake has, which gives up a tarball in the making.
        parts.push_async_callback(self._ended, tasks)
        intake = make.intake(store)
        finish = make.finish(intake)
        parts.push_async_callback(intake.close)
        parts.callback(finish.stop)
        if upload is not None:
            parts.callback(upload.stop)
        await self._recover(store, intake, known=known)
        # A plan of many nodes has as many keys to be made and files to be written.
        authority = await asyncio.to_thread(make.authority)
        # Its modules are loaded before anybody is connected who would have to wait for that.
        launcher = make.launcher(store, intake, authority)
        workers = make.workers(store, intake, authority)
        health = make.health(store, authority, intake, workers)
        # Workers are the first to be turned away in the end, and probes see it.
        host, port = await self._listen(parts, workers)
        shown = make.status_app(store, health)
        parts.callback(shown.close)
        gate.open(shown)
        # These objects stay: without them in every search, cycles left by connections are found
        # early, before many of them hold memory.
        gc.collect()
        gc.freeze()
        address = self._settings.advertised(socket.gethostname(), port)
        self._log.info(
            "Worker listener ready",
            host=host,
            port=port,
            url=f"https://{address}",
            heartbeat_interval=make.rhythm.interval,
            heartbeat_timeout=make.rhythm.timeout,
            connections=make.connections,
        )
        control = make.control(store, intake, finish, workers, launcher, upload=upload)
        self._last_words = control.tell
        lasting: tuple[asyncio.Task[None], ...] = (
            asyncio.create_task(self._watch(health, workers, control, authority)),
            asyncio.create_task(self._control(store, control)),
            asyncio.create_task(make.judging(store).run()),
        )
        if launcher is not None:
            lasting += (asyncio.create_task(self._launch(launcher, authority)),)
        tasks += (*lasting, asyncio.create_task(control.stay_alive()))
        if annotator := make.annotator(store):
            # The run neither waits for it nor ends with it.
            tasks.append(asyncio.create_task(annotator.run()))
        if self._settings.exit_when_finished:
            finished = asyncio.create_task(self._finished(store, annotator))
            tasks.append(finished)
            lasting += (finished,)
        return lasting

    async def _open(
        self, parts: AsyncExitStack, upload: TarballUploader | None, lasting_at_most: float
    ) -> Store:
        """Open the run, and take up what is to become of its tarball."""
        store = self._make.store()
        parts.push_async_callback(store.close)
        await store.open_run(self._plan, now=self._make.now())
        # Only now: before that, the state may turn out to be another run's.
        layout = self._make.layout
        self._make.run_log.open(layout.run_log, layout.check_room)
        await asyncio.to_thread(self._make.keep_launch)
        if self._package_again and await store.package_again():
            self._log.info("Packing the run again")
        if upload is not None:
            await upload.resume(store, lasting_at_most)
        elif store.snapshot().upload is not None:
            # Here, because most runs upload nothing.
            from reporter.aggregator.tarball.upload import give_up_unwanted

            await give_up_unwanted(store, self._make.now())
        return store

    async def _listen(self, parts: AsyncExitStack, listener: Listener) -> tuple[str, int]:
        parts.push_async_callback(self._close, listener)
        return await listener.start()

    async def _close(self, listener: Listener) -> None:
        await listener.close(self._grace)

    async def _ended(self, tasks: list[asyncio.Task[None]]) -> None:
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._last_words is not None:
            await self._last_words()

    async def _recover(self, store: Store, intake: Intake, *, known: bool) -> None:
        found = await intake.recover(store.snapshot())
        self._make.metrics.count("lost_results", len(found.lost))
        if not known:
            self._log.info("Run started")
            return
        self._log.info(
            "Run resumed",
            phase=str(store.phase),
            lost=len(found.lost),
            unknown_blobs=found.unknown,
            unfinished=found.unfinished,
        )

    async def _control(self, store: Store, control: Control) -> None:
        """Tick when something has changed, and once a second."""
        unsubscribe = store.subscribe(self._changed.set)
        try:
            while True:
                self._changed.clear()
                began = self._clock()
                await control.tick()
                pause = min(_PACE, _SHARE * (self._clock() - began))
                await asyncio.sleep(pause)
                await _first(self._changed, _TICK - pause)
        finally:
            unsubscribe()

    async def _launch(self, launcher: Launcher, authority: Authority) -> None:
        await launcher.run()
        self._changed.set()  # the run may close now
        await asyncio.to_thread(authority.forget_key)
        await asyncio.Event().wait()

    async def _finished(self, store: Store, annotator: Annotator | None) -> None:
        """Return when the run is over and everybody can see it; leave its verdict."""
        await _until(store, lambda: store.phase is Phase.CLOSED)
        snapshot = store.snapshot()
        document = run_fields(snapshot, now=self._wall())
        good = passed(document) and not upload_failed(document)
        end = self._clock() + _ANNOTATED
        while annotator is not None and self._clock() < end:
            if annotator.shows(store.snapshot().revision):
                break
            await asyncio.sleep(_PACE)
        self._verdict = GOOD if good else FAILED

    async def _watch(
        self, health: Health, workers: Listener, control: Control, authority: Authority
    ) -> None:
        """Look after ourselves; returns when workers can no longer connect."""
        reminder = RateLimitedLog(every=_REMINDER)
        while True:
            now = health.ticked = self._clock()
            if not health.done_listening and not workers.listening:
                self._log.critical("Workers can no longer connect: restart required")
                await asyncio.sleep(_SHOWN)
                self._grace = _NO_GRACE
                return
            if not health.done_listening and (warning := authority.warning(self._wall())):
                reminder.say(
                    now,
                    self._log.warning,
                    "Certificates expire soon or have expired",
                    problem=warning,
                )
            closed = control.closed_at
            over = closed is not None and now - closed >= self._settings.linger_seconds
            if over and not health.done_listening:
                health.done_listening = True
                self._log.info("Worker listener closed: the run is closed")
                await self._close(workers)
            await asyncio.sleep(_TICK)


async def _until(store: Store, reached: Callable[[], bool]) -> None:
    """Wait until it is so, as changes of the run tell it."""
    so = asyncio.Event()

    def look() -> None:
        if reached():
            so.set()

    unsubscribe = store.subscribe(look)
    try:
        look()
        await so.wait()
    finally:
        unsubscribe()


async def _first(event: asyncio.Event, seconds: float) -> None:
    """Wait for an event, but not longer than that."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return


async def _set(event: asyncio.Event) -> None:
    await event.wait()
