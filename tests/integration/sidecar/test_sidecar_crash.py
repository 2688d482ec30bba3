"""An exception that nobody caught: everything is released, and the work begins again."""

import json
import os
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from reporter.common.lifecycle import Stop
from reporter.kube.api import KubeApi
from reporter.sidecar.main import main
from tests.aggregators.scripted import Scripted
from tests.blackbox.sidecar.linked import linked, results
from tests.integration.scene import BOUND, Object, Scene
from tests.ports import free_port

OURS = ("courier", "endpoint", "heart", "pod-watch", "relay")


def held() -> Counter[str]:
    """What of ours is open in this process."""
    found = Counter(t.name for t in threading.enumerate() if t.name in OURS)
    for fd in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            found["inotify"] += os.readlink(f"/proc/self/fd/{fd}") == "anon_inode:inotify"
    return found


class Breaking(KubeApi):
    """Raises what nobody has thought of instead of reading the Job, as often as `broken` says."""

    broken: Callable[[], bool]

    def get(self, kind: Any, *names: Any, **more: Any) -> Object:
        if kind == "Job" and self.broken():
            raise RuntimeError("nobody has thought of this")
        return super().get(kind, *names, **more)


class Process:
    """The program in a thread; its first `crashes` lives end in a crash."""

    def __init__(self, scene: Scene, crashes: float = float("inf"), **variables: str) -> None:
        self.stop = Stop()
        self.held: list[Counter[str]] = []
        self._fake, self._crashes = scene.fake, crashes
        self._environ = scene.environ(LOG_LEVEL="error", **variables)
        self._code: int | None = None
        self._thread = threading.Thread(target=self._run, name="sidecar")

    def __enter__(self) -> "Process":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop.request()
        self._thread.join(BOUND)

    def _run(self) -> None:
        self._code = main([], self._environ, self.stop, self._connect)

    def _connect(self, *, relax_x509_strict: bool) -> KubeApi:
        fake = self._fake
        api = Breaking.connect(fake.server, ca_file=fake.ca_file, token_file=fake.token_file)
        api.broken = self._broken
        return api

    def _broken(self) -> bool:
        if len(self.held) >= self._crashes:
            return False
        self.held.append(held())
        return True

    def wait_crash(self) -> None:
        """Return when it has crashed for the first time."""
        self._fake.wait_for(lambda: self.held, BOUND)

    def join(self) -> int:
        """Return the exit code."""
        self._thread.join(BOUND)
        assert self._code is not None
        return self._code


def test_a_reporter_that_crashed_twice_comes_to_its_verdict(
    scene: Scene, aggregator: Scripted, capfd: pytest.CaptureFixture[str]
) -> None:
    """Each life has what the first one had, and nothing is left of an earlier one."""
    before = held()
    scene.create()
    scene.write_result()
    address = {"METRICS_PORT": str(free_port()), "METRICS_ADDRESS": "127.0.0.1"}
    beats = {"WORKER_HEARTBEAT_SECONDS": "60"}
    with Process(scene, 2, **linked(aggregator, **address, **beats)) as process:
        assert 0 == process.join()

    first, second = process.held
    assert first == second
    assert {"inotify", "endpoint", "pod-watch"} < set(first)
    assert not held() - before
    assert ("True", "AllGood", True) == scene.history()[-1]
    assert 1 == len(results(aggregator))
    lines = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert ["Unexpected error"] * 2 == [line["message"] for line in lines]
    assert all("in get\n" in line["exception"] for line in lines)


def test_after_sigterm_a_reporter_that_crashes_tries_once_more(scene: Scene) -> None:
    """And it ends with an error where nobody would restart it."""
    scene.create(form="classic")
    with Process(scene) as process:
        process.wait_crash()
        before = len(process.held)
        process.stop.request()

        assert 1 == process.join()
    assert before + 1 == len(process.held)


def test_a_crash_with_bad_settings_is_no_end_either(scene: Scene) -> None:
    """A native reporter goes on until what is wrong is on the Job."""
    scene.create(form="native", restart_policy="OnFailure")
    with Process(scene, 1, EXIT_POLICY="maybe", REPORTER_FORM="native") as process:
        scene.wait_final()
        process.stop.request()

        assert 0 == process.join()
    assert [("Unknown", "ReporterConfigError", True)] == scene.history()
