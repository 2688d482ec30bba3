"""The loop asleep on a real pipe and a real inotify: no wake-up is slept over."""

import contextlib
import queue
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reporter.author.terminal import JobInMemory
from reporter.common.lifecycle import Wake
from reporter.sidecar.inotify import DirectoryWatch
from reporter.sidecar.job import JobCondition
from reporter.sidecar.loop import Inputs, Loop, Options
from reporter.verdict.case import Policy
from reporter.verdict.facts import Container, FileAbsent, Form, Pod, PodSeen, RestartPolicy, Running

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="inotify is Linux's")
WAKES = 500
PATIENCE, ENOUGH = 5.0, 3
ASLEEP = 3600.0
"""No pass comes by itself within a test."""


class Over(Exception):
    """The test has seen enough."""


class Scene:
    """A loop over a Pod that runs and a file that never comes; every pass is put into `passes`."""

    requested_at: float | None = None

    def __init__(self, directory: Path) -> None:
        self.passes: queue.Queue[float] = queue.Queue()
        self.wake = Wake()
        self.over = False
        path = directory / "adapter-result.json"
        self.events = DirectoryWatch.open([path])
        self.loop = Loop(
            Inputs(
                pod=self, result=Nothing(FileAbsent()), progress=Nothing(), file_events=self.events
            ),
            JobCondition(JobInMemory("default", "job"), "default", "job", "Available"),
            Options(
                pod_name="pod",
                policy=Policy(wait=ASLEEP, form=Form.NATIVE),
                poll_interval=ASLEEP,
            ),
            stop=self,
            telemetry=self,
        )

    def look(self, *, fresh: bool = False, timeout: float = 0.0) -> PodSeen:
        if self.over:
            raise Over
        adapter = Container("adapter", Running(time.time()))
        return PodSeen(
            Pod(name="pod", uid="u", restart=RestartPolicy("Never"), grace=30.0, adapter=adapter)
        )

    def next_request(self) -> float:
        return float("inf")

    def observed(self, o: Any) -> None:
        self.passes.put(o.now)

    def published(self, *_: Any) -> None:
        pass

    def withheld(self, *_: Any) -> None:
        pass

    def failed(self, *_: Any) -> None:
        pass

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Run the loop until the block ends."""

        def run() -> None:
            with contextlib.suppress(Over):
                self.loop.run()

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield
        finally:
            self.over = True
            while thread.is_alive():
                self.wake.wake()
                thread.join(0.1)
            assert self.events is not None
            self.events.close()
            self.wake.close()

    def passed(self) -> None:
        """Forget the passes so far."""
        with contextlib.suppress(queue.Empty):
            while True:
                self.passes.get_nowait()


class Nothing:
    """A file that is never there."""

    def __init__(self, answer: Any = None) -> None:
        self._answer = answer

    def look(self) -> Any:
        return self._answer


@contextlib.contextmanager
def neighbour(path: Path, every: float) -> Iterator[None]:
    """Write another file again and again."""
    over = threading.Event()

    def write() -> None:
        with path.open("wb", buffering=0) as file:
            while not over.wait(every):
                file.write(b"x")

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_every_wake_brings_a_pass_beside_a_busy_neighbour(tmp_path: Path) -> None:
    """Another file's event in the same poll takes none away: 500 of 500, at 1 kHz."""
    scene = Scene(tmp_path)
    slept_over = 0
    with neighbour(tmp_path / "scratch", 0.001), scene.running():
        for number in range(WAKES):
            # From one event of the neighbour to so many that the loop rests between two of them.
            time.sleep(0.05 if number % 25 == 0 else 0.001 * (number % 5))
            scene.passed()
            scene.wake.wake()
            try:
                scene.passes.get(timeout=PATIENCE)
            except queue.Empty:
                slept_over += 1
                if slept_over == ENOUGH:
                    break

    assert 0 == slept_over
