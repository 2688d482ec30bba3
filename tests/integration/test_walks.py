"""The walks of docs/design.md, walked: which modules a verdict and a result really pass.

A module that comes between shows here, and one that is no longer passed does, too.
"""

import asyncio
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from reporter.common.lifecycle import Wake
from reporter.sidecar.files import ProgressFile, ResultFile
from reporter.sidecar.inotify import DirectoryWatch
from reporter.sidecar.interfaces import Inputs, Options
from reporter.sidecar.job import JobCondition
from reporter.sidecar.loop import Loop
from reporter.sidecar.pod import PodSource
from reporter.sidecar.publish import LoopOutcome
from reporter.verdict.case import Policy
from reporter.verdict.facts import Form
from reporter.verdict.payloads import ADAPTER_RESULT
from reporter.verdict.pod import Names
from tests.archives.tars import file, tgz
from tests.blackbox.sidecar.scene import now
from tests.fakekube import FakeKube, make_job, make_pod, running
from tests.integration.aggregator.api.scene import NODE1, NODE2, serving
from tests.kube_client import connect

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = f"{ROOT / 'reporter'}/"
DESIGN = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
MODULES = re.compile(r"`([\w/]+/\w+\.py)`")
PATIENCE = 100.0


def told(heading: str) -> tuple[set[str], tuple[str, ...]]:
    """The modules outside core that a walk names, and those or their folders that are beneath."""
    section = DESIGN.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    walk, _, beneath = section.partition("\nBeneath: ")
    steps = re.split(r"^\d+\. ", walk, flags=re.MULTILINE)[1:]
    assert steps
    assert all(map(MODULES.findall, steps))
    outside = {each for each in MODULES.findall(walk) if not each.startswith("core/")}
    return outside, tuple(re.findall(r"`([\w/]+/(?:\w+\.py)?)`", beneath.split("\n\n")[0]))


class Passed:
    """Notes the modules of ours outside core whose functions are called, in every thread."""

    def __init__(self) -> None:
        self.modules: set[str] = set()
        self.on = True

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if self.on and event == "call" and code.co_filename.startswith(PRODUCT):
            name = code.co_filename.removeprefix(PRODUCT)
            if code.co_name != "<module>" and not name.startswith("core/"):
                self.modules.add(name)


@contextmanager
def noting() -> Iterator[Passed]:
    passed = Passed()
    threading.setprofile(passed)
    sys.setprofile(passed)
    try:
        yield passed
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]


def assert_walked(heading: str, passed: Passed) -> None:
    """Each module that the walk names, twelve at most, and none that it does not speak of."""
    walk, beneath = told(heading)

    assert [] == sorted(walk - passed.modules)
    assert [] == sorted(each for each in passed.modules - walk if not each.startswith(beneath))
    assert [] == [each for each in (*walk, *beneath) if not (ROOT / "reporter" / each).exists()]
    assert len(walk) <= 12


class Bringing(Wake):
    """Brings the file when the loop has gone to sleep."""

    def __init__(self, bring: Callable[[], None]) -> None:
        super().__init__()
        self._bring: Callable[[], None] | None = bring

    def wait(self, timeout: float | None, extra_fds: Iterable[int] = ()) -> set[int] | None:
        bring, self._bring = self._bring, None
        if bring is not None:
            bring()
        return super().wait(timeout, extra_fds)


class Attempt:
    """The loop's telemetry and stop, which are not on the way."""

    requested_at: float | None = None

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def observed(self, _: Any) -> None:
        pass

    def published(self, _: Any, seconds: float) -> None:
        self.seconds.append(seconds)

    def withheld(self, *_: Any) -> None:
        raise AssertionError

    def failed(self, what: str, error: Exception) -> None:
        raise error


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="inotify is Linux's")
def test_a_verdict_passes_what_its_walk_names(tmp_path: Path) -> None:
    """Twelve modules from the adapter's rename to the answer of the PATCH."""
    result = tmp_path / "result.json"

    def bring() -> None:
        ready = tmp_path / "result.new"
        ready.write_text('{"status": "success", "reason": "Fine", "message": "all is well"}')
        ready.rename(result)

    wake = Bringing(bring)
    with FakeKube() as fake:
        fake.create_job(make_job())
        fake.create_pod(make_pod(make_job(), adapter_state=running(now()), created=now()))
        api = connect(fake)
        names = Names(results_path=str(result))
        pod = PodSource(api, "default", "validate-x7k2p", names, wake=wake.wake)
        events = DirectoryWatch.open([result])
        assert events is not None
        attempt = Attempt()
        pod.start()
        try:
            inputs = Inputs(pod, ResultFile(result), ProgressFile(None, print), events)
            sink = JobCondition(api, "default", "validate", "Available")
            policy = Policy(wait=PATIENCE, form=Form.NATIVE)
            options = Options("validate", "validate-x7k2p", policy, report_running=False)
            loop = Loop(inputs, sink, options, wake=wake, stop=attempt, telemetry=attempt)
            with noting() as passed:
                outcome = loop.run()
        finally:
            pod.close()
            events.close()
            api.close()
            wake.close()

    assert (LoopOutcome.FINAL, 1) == (outcome, len(attempt.seconds))
    assert loop.statement is not None
    assert "Fine" == loop.statement.report.reason
    assert_walked("A verdict, from the file to the PATCH", passed)


def test_a_result_passes_what_its_walk_names(tmp_path: Path) -> None:
    """An archive, and an adapter's result."""

    async def upload(passed: Passed) -> None:
        passed.on = False
        async with serving(tmp_path) as scene:
            passed.on = True
            archive = await scene.put(NODE1, tgz(file(b"a")), "Content-Type: application/gzip")
            adapter = await scene.put(
                NODE2, b'{"status": "success"}', f"Result-Format: {ADAPTER_RESULT}"
            )
            passed.on = False
        assert (200, 200) == (archive.status, adapter.status)

    with noting() as passed:
        asyncio.run(asyncio.wait_for(upload(passed), PATIENCE))

    assert_walked("A result, from the socket to 200", passed)
