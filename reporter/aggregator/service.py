"""The running aggregator: its parts made, started, watched and stopped in order.

It ends when it is asked to, or when workers could no longer reach it: then a new process is better
than one that looks alive.
"""

from __future__ import annotations

import asyncio
import gc
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from reporter import __version__
from reporter.aggregator import FAILED, GOOD, UNFINISHED
from reporter.aggregator.annotate import Annotator
from reporter.aggregator.api.status_app import StartupGate, StatusApp
from reporter.aggregator.api.worker_app import WorkerApp
from reporter.aggregator.certificates.run import Authority
from reporter.aggregator.context import Context
from reporter.aggregator.control import Control
from reporter.aggregator.health import Health
from reporter.aggregator.intake import Intake
from reporter.aggregator.judging import Judging
from reporter.aggregator.listeners import (
    advertised,
    authority_of,
    status_listener,
    worker_listener,
)
from reporter.aggregator.run_log import RunLog
from reporter.aggregator.run_plan import keep_launch
from reporter.aggregator.server.listener import Listener
from reporter.aggregator.tarball.finish import Finish
from reporter.common import log
from reporter.common.lifecycle import Stop
from reporter.common.log import RateLimitedLog
from reporter.run.definition import definition_document
from reporter.run.launch_file import longest
from reporter.run.settings import Settings
from reporter.run.state import Phase
from reporter.run.status import run_fields
from reporter.run.view import good

if TYPE_CHECKING:
    from reporter.aggregator.tarball.upload import TarballUploader
    from reporter.launch.launcher import Launcher


_WATCH_EVERY = 1.0  # seconds between looks at the sockets and the clock
_LOOK_EVERY = 0.25  # between looks whether the run is over, and its last status on our Pod
_SHOWN = 1.5  # how long probes see that workers cannot connect before the process ends
_GRACE = 5.0  # for requests at work when we stop
_NO_GRACE = 0.5  # when we have to be gone soon: within 5 s after the workers' socket
_ANNOTATED = 30.0  # for the last status on our Pod, which people read when we have ended
_REMINDER = 600.0  # between warnings about certificates

Lasting = tuple["asyncio.Task[None]", ...]
"""The tasks that are not to end."""


class Service:
    """One aggregator of one run. `run` returns the exit code.

    `package_again` takes back that packing was given up.
    """

    def __init__(self, context: Context, stop: Stop, *, package_again: bool = False) -> None:
        self._context, self._stop, self._package_again = context, stop, package_again
        self._log, self._run_log = context.log, RunLog()
        self._grace = _GRACE
        self._control: Control | None = None

    async def run(self) -> int:
        """Work until SIGTERM. Raises ReporterError and OSError when it cannot even start."""
        context, loop, wake = self._context, asyncio.get_running_loop(), self._stop.wake.fileno()
        stopping: asyncio.Future[None] = loop.create_future()
        log.keep(self._run_log.write)
        self._log.info(
            "Aggregator started",
            version=__version__,
            run=context.plan.run,
            expected=len(context.plan.keys),
            settings=_differing(context.settings),
        )
        loop.add_reader(wake, self._on_wake, stopping)
        self._on_wake(stopping)
        try:
            async with AsyncExitStack() as parts:
                code = await self._serve(parts, stopping)
                self._log.info("Aggregator stopping")
            self._log.info("Aggregator ended", exit_code=code)
            return code
        finally:
            loop.remove_reader(wake)
            log.keep(None)
            await asyncio.to_thread(self._run_log.close)

    def _on_wake(self, stopping: asyncio.Future[None]) -> None:
        self._stop.wake.wait(0)
        if self._stop.requested and not stopping.done():
            stopping.set_result(None)

    async def _serve(self, parts: AsyncExitStack, stopping: asyncio.Future[None]) -> int:
        """Start everything and wait for the first reason to end; `parts` ends it backwards."""
        tasks: list[asyncio.Task[None]] = []
        in_job = self._context.settings.in_job
        stopped, failed = (UNFINISHED, UNFINISHED) if in_job else (GOOD, FAILED)
        starting = asyncio.create_task(self._start(parts, tasks))
        try:
            await asyncio.wait((stopping, starting), return_when=asyncio.FIRST_COMPLETED)
            if not starting.done():
                # It may take minutes, and a start that ends halfway is one like after a kill.
                starting.cancel()
                await asyncio.wait((starting,))
                if starting.cancelled():
                    return stopped
            ends = {stopping: stopped} | dict.fromkeys(starting.result(), failed)
            done, _ = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
        for end in done:
            end.result()
        store = self._context.store
        if not self._context.settings.exit_when_finished or store.phase is not Phase.CLOSED:
            return max(ends[end] for end in done)
        return GOOD if good(run_fields(store.snapshot(), now=self._context.wall())) else FAILED

    # -- the start -------------------------------------------------------------------------------

    async def _start(self, parts: AsyncExitStack, tasks: list[asyncio.Task[None]]) -> Lasting:
        """Start everything, in the order in which it can be promised; add to `tasks`."""
        context, gate = self._context, StartupGate()
        host, port = await self._listen(parts, status_listener(context, gate))
        self._log.info("Status listener ready", host=host, port=port)
        context.layout.prepare()
        known, tar_upload = context.layout.database.exists(), _tar_upload(context)
        if tar_upload is not None:
            parts.callback(tar_upload.stop)
            if not known:  # nothing has begun yet
                lasting_at_most = longest(context.plan, context.launch)
                await asyncio.to_thread(tar_upload.check, context.wall(), lasting_at_most)
        await self._open(parts, tar_upload)
        # They end when the intake has, which gives up a tarball in the making.
        parts.push_async_callback(self._ended, tasks)
        intake = Intake(context)
        finish = _finish(context, intake, self._run_log)
        parts.push_async_callback(intake.close)
        parts.callback(finish.stop)
        if tar_upload is not None:
            parts.callback(tar_upload.stop)
        await self._recover(intake, known=known)
        # A plan of many nodes has as many keys to be made and files to be written.
        authority = await asyncio.to_thread(authority_of, context)
        # Its modules are loaded before anybody is connected who would have to wait for that.
        launcher = _launcher(context, intake, authority)
        workers = worker_listener(context, WorkerApp(context, intake), authority)
        # Workers are the first to be turned away in the end, and probes see it.
        host, port = await self._listen(parts, workers)
        health = Health(context, authority, workers, intake.uploads)
        gate.app = StatusApp(context, health)
        parts.callback(gate.app.close)
        # These objects stay: without them in every search, cycles left by connections are found
        # early, before many of them hold memory.
        gc.collect()
        gc.freeze()
        self._log.info(
            "Worker listener ready",
            host=host,
            port=port,
            url=f"https://{advertised(context.settings, port)}",
            heartbeat_interval=context.rhythm.interval,
            heartbeat_timeout=context.rhythm.timeout,
            connections=context.connections,
        )
        control = self._control = Control(
            context, finish, intake.uploads, workers, launcher=launcher, tar_upload=tar_upload
        )
        lasting: Lasting = (
            asyncio.create_task(self._watch(health, workers, control, authority)),
            asyncio.create_task(control.run()),
            asyncio.create_task(Judging(context).run()),
        )
        if launcher is not None:
            lasting += (asyncio.create_task(_run_launcher(launcher, control, authority)),)
        tasks += (*lasting, asyncio.create_task(control.stay_alive()))
        annotator = None if context.api is None else Annotator(context, context.api)
        if annotator is not None:
            # The run neither waits for it nor ends with it.
            tasks.append(asyncio.create_task(annotator.run()))
        if context.settings.exit_when_finished:
            finished = asyncio.create_task(self._finished(annotator, launcher))
            tasks.append(finished)
            lasting += (finished,)
        return lasting

    async def _open(self, parts: AsyncExitStack, tar_upload: TarballUploader | None) -> None:
        """Open the run, and take up what is to become of its tarball."""
        context, store, layout = self._context, self._context.store, self._context.layout
        parts.push_async_callback(store.close)
        await store.open_run(context.plan, now=context.now())
        # Only now: before that, the state may turn out to be another run's.
        self._run_log.open(layout.run_log, layout.check_room)
        if context.launch is not None:
            await asyncio.to_thread(keep_launch, context.launch, layout.launch)
        if self._package_again and await store.package_again():
            self._log.info("Packing the run again")
        if tar_upload is not None:
            await tar_upload.resume(store, longest(context.plan, context.launch))
        elif store.snapshot().upload is not None:
            # Here, because most runs upload nothing.
            from reporter.aggregator.tarball.upload import give_up_unwanted

            await give_up_unwanted(store, context.now())

    async def _recover(self, intake: Intake, *, known: bool) -> None:
        store = self._context.store
        found = await intake.recover(store.snapshot())
        self._context.metrics.count("lost_results", len(found.lost))
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

    async def _listen(self, parts: AsyncExitStack, listener: Listener) -> tuple[str, int]:
        parts.push_async_callback(self._close, listener)
        return await listener.start()

    async def _close(self, listener: Listener) -> None:
        await listener.close(self._grace)

    async def _ended(self, tasks: list[asyncio.Task[None]]) -> None:
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._control is not None:
            await self._control.tell()

    # -- at work ---------------------------------------------------------------------------------

    async def _finished(self, annotator: Annotator | None, launcher: Launcher | None) -> None:
        """Return when the run is over, its plugins are gone, and everybody can see it."""
        store, clock = self._context.store, self._context.clock
        while store.phase is not Phase.CLOSED or (launcher is not None and not launcher.through):
            await asyncio.sleep(_LOOK_EVERY)
        end = clock() + _ANNOTATED
        while annotator is not None and clock() < end:
            if annotator.shows(store.snapshot().revision):
                break
            await asyncio.sleep(_LOOK_EVERY)

    async def _watch(
        self, health: Health, workers: Listener, control: Control, authority: Authority
    ) -> None:
        """Look after ourselves; returns when workers can no longer connect."""
        context, reminder = self._context, RateLimitedLog(every=_REMINDER)
        while True:
            now = health.ticked = context.clock()
            if not health.done_listening:
                if not workers.listening:
                    self._log.critical("Workers can no longer connect: restart required")
                    await asyncio.sleep(_SHOWN)
                    self._grace = _NO_GRACE
                    return
                if warning := authority.warning(context.wall()):
                    reminder.say(
                        now,
                        self._log.warning,
                        "Certificates expire soon or have expired",
                        problem=warning,
                    )
                closed = control.closed_at
                if closed is not None and now - closed >= context.settings.linger_seconds:
                    health.done_listening = True
                    self._log.info("Worker listener closed: the run is closed")
                    await self._close(workers)
            await asyncio.sleep(_WATCH_EVERY)


def _differing(settings: Settings) -> dict[str, str]:
    """Return the settings that are not the defaults, for the log."""
    defaults = {found.name: found.default for found in Settings.described()}
    return {name: value for name, value in settings.in_force() if value != defaults[name]}


def _tar_upload(context: Context) -> TarballUploader | None:
    """Make what uploads the tarball, if that is asked for."""
    settings = context.settings
    if not settings.upload_url_file:
        return None
    from reporter.aggregator.tarball.upload import TarballUploader

    return TarballUploader(
        context.layout.output,
        Path(settings.upload_url_file),
        settings.upload_ca,
        give_up=settings.upload_give_up_seconds,
        now=context.now,
    )


def _finish(context: Context, intake: Intake, run_log: RunLog) -> Finish:
    launch = context.launch
    definitions = () if launch is None else launch.definitions
    return Finish(
        context.layout,
        context.blobs,
        intake,
        context.judge,
        keep_blobs=context.settings.keep_blobs,
        definitions={each.name: definition_document(each) for each in definitions},
        taken_by="" if launch is None else launch.snapshot,
        log_written=run_log.settle,
        wall=context.wall,
        step=context.step,
    )


def _launcher(context: Context, intake: Intake, authority: Authority) -> Launcher | None:
    """Make what launches the plugins, if that is asked for."""
    if context.launch is None or context.api is None:
        return None
    from reporter.launch.launcher import Launcher
    from reporter.launch.logs import Logs

    settings, layout, uploads = context.settings, context.layout, intake.uploads
    return Launcher(
        context.api,
        context.store,
        context.plan,
        context.launch,
        namespace=settings.pod_namespace,
        url=f"https://{advertised(settings, settings.listen.port)}",
        ca=authority.ca,
        client=partial(authority.client, context.plan.run),
        forget_key=authority.forget_key,
        uploading=lambda: uploads.holding,
        close=uploads.close,
        logs=Logs(
            context.api,
            settings.pod_namespace,
            layout.podlogs,
            layout.staging,
            check_room=layout.check_room,
        ),
        now=context.now,
    )


async def _run_launcher(launcher: Launcher, control: Control, authority: Authority) -> None:
    await launcher.run()
    control.changed.set()  # it may have given up, and the run may close now
    await asyncio.to_thread(authority.forget_key)
    await asyncio.Event().wait()
