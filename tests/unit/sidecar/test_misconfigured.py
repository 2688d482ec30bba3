"""What bad settings make of the Job, tried as long as there is time, on a clock of its own."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from reporter.common.lifecycle import Stop
from reporter.errors import KubeError, Unavailable
from reporter.sidecar import misconfigured
from reporter.sidecar.misconfigured import Misconfigured
from tests.fakekube.jobstatus import patched
from tests.fakekube.objects import make_job, make_pod

Object = dict[str, Any]
HOUR = 3600.0


class World:
    """An API server that takes no PATCH until `open_at`; time passes in waits and requests only."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, form: str) -> None:
        self.now, self.open_at = 0.0, 0.0
        self.stop = Stop()
        self.given: list[float] = []
        """How long each PATCH was given."""
        self.pauses: list[float] = []
        self.job = make_job()
        self.job["metadata"]["resourceVersion"] = "1"
        self.pod = make_pod(self.job, form=form)  # type: ignore[arg-type]
        clock = SimpleNamespace(monotonic=lambda: self.now, time=lambda: 1.9e9 + self.now)
        monkeypatch.setattr(misconfigured, "time", clock)
        monkeypatch.setattr(self.stop, "wait", self.wait)

    def run(self) -> int:
        environ = {"JOB_NAME": "validate", "JOB_NAMESPACE": "default", "POD_NAME": "pod"}
        off = {"METRICS_PORT": "0"}
        return Misconfigured(["X=1: must be 2"], environ | off, self.stop, lambda **_: self).run()  # type: ignore[arg-type,return-value]

    def wait(self, timeout: float | None = None) -> None:
        """Sleep; SIGTERM comes when it is for ever."""
        if timeout is None:
            self.stop.request()
        else:
            self.pauses.append(timeout)
            self.now += timeout

    def get(self, kind: str, *_: Any, **__: Any) -> Object:
        if kind == "Pod":
            return self.pod
        found: Object = json.loads(json.dumps(self.job))
        return found

    def patch(
        self, kind: str, namespace: str, name: str, body: Object, *, part: str, timeout: float
    ) -> Object:
        self.given.append(timeout)
        if self.now < self.open_at:
            self.now += timeout
            raise self.error()
        self.job, _ = patched(self.job, json.dumps(body).encode(), "Strict")
        return self.job

    def error(self) -> KubeError:
        return Unavailable("timed out")

    def close(self) -> None:
        pass

    @property
    def condition(self) -> Object:
        return next(iter(self.job["status"].get("conditions", [])), {})


def test_a_native_reporter_tries_until_sigterm_and_gives_a_slow_write_longer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An admission webhook may take 10 s, a change 34."""
    world = World(monkeypatch, "native")
    world.open_at = HOUR

    assert 0 == world.run()
    assert "ReporterConfigError" == world.condition["reason"]
    assert [5.0, 10.0, 35.0, 35.0] == world.given[:4]
    assert 30.0 < max(world.pauses) <= 60.0


def test_a_classic_reporter_holds_the_pod_no_longer_than_two_writes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(monkeypatch, "classic")
    world.open_at = HOUR

    assert 2 == world.run()
    assert {} == world.condition
    assert [5.0, 10.0] == world.given
    assert world.now <= 20.0


@pytest.mark.parametrize(
    ("completions", "begins"), [(3, "index 1: Invalid reporter settings: "), (1, "Invalid ")]
)
def test_the_message_names_the_completion_index(
    monkeypatch: pytest.MonkeyPatch, completions: int, begins: str
) -> None:
    world = World(monkeypatch, "native")
    world.job["spec"] |= {"completions": completions, "completionMode": "Indexed"}
    world.pod["metadata"]["annotations"] = {"batch.kubernetes.io/job-completion-index": "1"}

    assert 0 == world.run()
    assert world.condition["message"].startswith(begins)
