"""A run to look at: a status listener in a thread, over a store that tests fill as they like."""

from __future__ import annotations

import asyncio
import hashlib
import threading
import time
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeVar

from reporter.aggregator.api.status_app import StatusApp
from reporter.aggregator.context import Context
from reporter.aggregator.health import Health
from reporter.aggregator.intake import Intake
from reporter.aggregator.judging import Judging
from reporter.run.plan import Key, parse_plan
from reporter.run.progress import Progress
from reporter.run.record import Cause, Failure, Rank, Record
from reporter.run.state import LauncherState, PodState, Step
from reporter.run.upload import Meta
from tests.aggregators.contexts import context
from tests.aggregators.listening import listening
from tests.aggregators.stores import QuickStore
from tests.browser.webdriver import Browser
from tests.integration.aggregator.intake.scene import Sending, pieces

T = TypeVar("T")
BOUND = 60.0
RUN = "6b1d0f0e-6d3c-4f7d-9d7e-0f3f4f0c1a2b"
ROWS = "[...document.querySelectorAll('#rows tr')]"
LINK = "document.querySelector('#link-text').textContent"


@dataclass
class _Quiet(Health):
    """An observer and a health of which nobody asks anything."""

    alive = True

    def __init__(self) -> None:
        return

    def checks(self) -> dict[str, str | None]:
        return {}

    def request(self, route: str, code: int, seconds: float, received: int) -> None:
        return

    def refused(self, what: str, why: str, peer: str, certificate: str) -> None:
        return

    def tls_failure(self, reason: str, peer: str, text: str) -> None:
        return

    def unexpected(self, where: str, error: BaseException) -> None:
        raise AssertionError(where) from error


class Stage:
    """One run, served on loopback; with a folder also what is in its results."""

    def __init__(self, plugins: Sequence[dict[str, Any]], folder: Path | None = None) -> None:
        self._folder = folder
        self._judging: asyncio.Task[None] | None = None
        self._plan = parse_plan({"run": RUN, "plugins": list(plugins)})
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self.store = QuickStore()

    def __enter__(self) -> Self:
        self._thread.start()
        self.call(self._start())
        return self

    def __exit__(self, *_: object) -> None:
        self.call(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(BOUND)
        self._loop.close()

    def call(self, work: Coroutine[Any, Any, T], bound: float = BOUND) -> T:
        """Run a coroutine where the store lives."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(bound)

    async def _start(self) -> None:
        await self.store.open_run(self._plan, now=time.time())
        quiet = _Quiet()
        shared = context(self._plan, self._folder, store=self.store, metrics=quiet)
        if self._folder is not None:
            await self._start_judging(shared)
        self._app = StatusApp(shared, quiet)
        self._listener = listening(self._app, quiet)
        host, port = await self._listener.start()
        self.url = f"http://{host}:{port}/"

    async def _stop(self) -> None:
        self._app.close()
        await self._listener.close(grace=1.0)
        if self._judging is not None:
            self._judging.cancel()
            await asyncio.wait((self._judging,))
            await self._intake.close()
        await self.store.close()

    async def _start_judging(self, shared: Context) -> None:
        shared.layout.prepare()
        self._intake = Intake(shared)
        await self._intake.recover(self.store.snapshot())
        self._judging = asyncio.create_task(Judging(shared).run())

    # -- what happens ----------------------------------------------------------------------------

    @property
    def keys(self) -> list[Key]:
        """Every key of the plan."""
        return list(self.store.snapshot().entries)

    @property
    def watched(self) -> bool:
        """Whether anybody waits for news."""
        return bool(self.store._view._subscribers)

    def progress(self, key: Key, **fields: Any) -> None:
        """Let a plugin tell something."""
        update = Progress(**fields)
        self.call(self.store.record_progress(key, update, None, at=time.time()))

    def beat(self, key: Key, ago: float = 0.0) -> None:
        """Let a worker beat."""

        async def heard() -> None:
            self.store.record_heartbeat(key, time.monotonic() - ago, beat=True)

        self.call(heard())

    def receive(self, key: Key, size: int = 48_213, **fields: Any) -> None:
        """Let a result come in."""
        record = Record(Rank.RESULT, time.time(), digest=_digest(key), size=size, **fields)
        self.call(self.store.record_result(key, record))

    def send(self, key: Key, body: bytes) -> None:
        """Let a worker send a result, and wait for the verdict on it."""
        meta = Meta(content_type="text/plain", filename="r", disposition=True)

        async def sent() -> None:
            judged = asyncio.Event()

            def look() -> None:
                record = self.store.entry(key).record
                if record is not None and record.verdict:
                    judged.set()

            unsubscribe = self.store.subscribe(look)
            await self._intake.take(key, meta, Sending(pieces(body)))
            look()
            await judged.wait()
            unsubscribe()

        self.call(sent())

    def fail(self, key: Key, cause: Cause, text: str, reason: str = "") -> None:
        """Let the aggregator give an entry up, or its worker report an error."""
        if cause is Cause.WORKER_ERROR:
            record = Record(
                Rank.WORKER,
                time.time(),
                digest=_digest(key),
                size=213,
                cause=cause,
                text=text,
                reason=reason,
            )
            self.call(self.store.record_result(key, record))
        else:
            failure = Failure("final", time.time(), text, cause, reason)
            self.call(self.store.mark_failed(key, failure))

    def launch(self, step: Step, *, pods: Mapping[Key, PodState] | None = None, **how: Any) -> None:
        """Let the launcher show how far it is."""

        async def shown() -> None:
            self.store.show_launch(pods or {}, LauncherState(step, **how))

        self.call(shown())

    def retry(self, key: Key, text: str) -> None:
        """Let an upload fail that may be repeated."""
        self.call(self.store.mark_failed(key, Failure("attempt", time.time(), text)))


def _digest(key: Key) -> str:
    return hashlib.sha256(str(key).encode()).hexdigest()


def nodes(number: int) -> list[str]:
    """Names like those of a cloud."""
    return [f"ip-10-0-{index // 250}-{index % 250}.internal" for index in range(number)]


def rehearse(stage: Stage, *, trouble: bool = True) -> None:
    """A run in the middle of its life, maybe with every kind of trouble."""
    by_plugin: dict[str, list[Key]] = {}
    for key in stage.keys:
        by_plugin.setdefault(key.plugin, []).append(key)
    (e2e,) = by_plugin["e2e"]
    stage.beat(e2e, 4)
    stage.progress(
        e2e,
        msg="[sig-network] Services should serve endpoints on same port and different protocols",
        total=412,
        completed=267,
        failures=("[sig-storage] CSI volumes should unmount after kubelet restart",) * 3 * trouble,
    )
    logs = by_plugin["systemd-logs"]
    for index, key in enumerate(logs):
        stage.beat(key, 2 + index % 13)
        if trouble and index == 3:
            stage.fail(key, Cause.WORKER_ERROR, "journalctl: no journal files were found", "logs")
        elif trouble and index == 7:
            stage.fail(key, Cause.HEARTBEAT, "no heartbeat for 120 s")
        elif index % 6:
            stage.receive(key, 31_000 + 977 * index)
        else:
            stage.progress(key, msg="Reading the journal", total=24, completed=5 + index % 17)
    bench = by_plugin["node-benchmark"]
    for index, key in enumerate(bench):
        stage.beat(key, 71 if trouble and index == 5 else 1 + index % 9)
        if trouble and index == 2:
            stage.fail(key, Cause.POD_FAILED, "container benchmark: OOMKilled, exit code 137")
        elif trouble and index == 9:
            stage.retry(key, "the connection was reset after 12 MiB")
        elif trouble and index in {12, 21}:
            said = f"p99 of random reads is {38 + index} ms, the limit is 20 ms"
            stage.receive(key, 412, verdict="failed", reason="DiskTooSlow", message=said)
        elif trouble and index == 30:
            said = "Failed to parse adapter result: unexpected end of the document"
            stage.receive(key, 97, verdict="unknown", reason="InvalidResultFormat", message=said)
        elif index % 3 == 0:
            said = f"p99 of random reads is {9 + index % 7} ms"
            stage.receive(key, 398, verdict="passed", reason="DiskFastEnough", message=said)
        else:
            stage.progress(
                key,
                msg=f"fio: random read, {4 + index % 5} jobs",
                total=60,
                completed=(index * 7) % 60,
                failures=("latency above 20 ms",) if trouble and index == 14 else (),
            )


PLUGINS = [
    {"name": "e2e"},
    {"name": "systemd-logs", "nodes": nodes(120)},
    {"name": "node-benchmark", "nodes": nodes(40)},
]


def opened(browser: Browser, url: str, rows: int) -> None:
    """Open the page and wait until it shows the run, live."""
    browser.open(url)
    browser.until(f"{ROWS}.length === arguments[0] && {LINK} === 'Live'", rows)
