"""Taking logs: the end of each container's, all of a Pod's or none, and not without bound."""

from __future__ import annotations

import errno
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reporter.common import log
from reporter.launch.logs import Logs
from tests.fakekube import Answer, FakeKube, Hang, Reset, make_job, make_pod
from tests.kube_client import connect

POD = "validate-x7k2p"


class Scene:
    def __init__(self, fake: FakeKube, folder: Path) -> None:
        self.fake, self.folder = fake, folder
        self.api = connect(fake)
        (folder / "staging").mkdir()

    def logs(self, api: Any = None, **given: Any) -> Logs:
        podlogs, staging = self.folder / "podlogs", self.folder / "staging"
        given = {"check_room": lambda size: None, **given}
        return Logs(api or self.api, "default", podlogs, staging, **given)

    def says(self, container: str, said: bytes) -> None:
        self.fake.store.logs["default", POD, container] = said

    def found(self) -> dict[str, bytes]:
        top = self.folder / "podlogs"
        return {str(one.relative_to(top)): one.read_bytes() for one in top.rglob("*.txt")}


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with FakeKube(role="admin") as fake:
        fake.create_pod(make_pod(fake.create_job(make_job()), name=POD))
        made = Scene(fake, tmp_path)
        yield made
        made.api.close()
        assert [] == list((tmp_path / "staging").iterdir())


def test_all_containers_of_a_pod(scene: Scene) -> None:
    """Each in a file of its own; a second time nothing is asked."""
    scene.says("adapter", b"one\n")
    scene.says("status-reporter", b"two\n")
    logs = scene.logs()
    assert not logs.taken(POD)
    logs.take(POD, ["adapter", "status-reporter", "no-such", "../out"])
    logs.take(POD, ["adapter"])

    assert logs.taken(POD)
    home = f"default/{POD}/logs"
    assert {f"{home}/adapter.txt": b"one\n", f"{home}/status-reporter.txt": b"two\n"} == (
        scene.found()
    )
    assert 3 == len(scene.fake.requests("GET", "/log"))


@pytest.mark.parametrize("size", [0, 1, 999, 1000, 1001, 250_000])
def test_of_a_long_log_the_end(scene: Scene, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Byte for byte, and no more than that of it in memory."""
    monkeypatch.setattr("reporter.launch.logs.CONTAINER_BYTES", 1000)
    said = bytes(number % 251 for number in range(size))
    scene.says("adapter", said)
    scene.logs().take(POD, ["adapter"])

    assert [said[-1000:]] == list(scene.found().values())


def test_the_logs_of_a_run_have_a_bound(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """What does not fit is left out; a restart counts what is there."""
    monkeypatch.setattr("reporter.launch.logs.RUN_BYTES", 1000)
    scene.says("adapter", b"x" * 600)
    scene.logs().take(POD, ["adapter"])
    other = f"{POD}2"
    scene.fake.create_pod(make_pod(scene.fake.job("validate"), name=other, uid="2"))
    scene.fake.store.logs["default", other, "adapter"] = b"y" * 600
    scene.logs().take(other, ["adapter"])

    assert {f"default/{POD}/logs/adapter.txt": b"x" * 600} == scene.found()


def test_a_log_that_would_use_the_reserve_of_the_disk(scene: Scene) -> None:
    """Results need it more: that log is left out, and people know which; a shorter one is kept."""

    def check_room(size: int) -> None:
        if size > 500:
            raise OSError(errno.ENOSPC, "No space left above the reserve")

    scene.says("adapter", b"x" * 501)
    scene.says("status-reporter", b"y" * 500)
    with log.capture() as events:
        scene.logs(check_room=check_room).take(POD, ["adapter", "status-reporter"])

    assert {f"default/{POD}/logs/status-reporter.txt": b"y" * 500} == scene.found()
    (said,) = events
    expected = ("Log skipped", "adapter", "No space left above the reserve")
    assert expected == (said["message"], said["container"], said["error"])


@pytest.mark.parametrize("fault", [Answer(500), Reset()])
def test_a_log_that_cannot_be_read_is_tried_again(scene: Scene, fault: Any) -> None:
    """A few times; then it is left out, and holds nothing up."""
    scene.says("adapter", b"one")
    scene.fake.fail(fault, path="/log")
    scene.logs().take(POD, ["adapter"])
    assert [b"one"] == list(scene.found().values())

    other = f"{POD}2"
    scene.fake.create_pod(make_pod(scene.fake.job("validate"), name=other, uid="2"))
    scene.fake.fail(fault, path="/log", times=None)
    logs = scene.logs()
    logs.take(other, ["adapter"])
    assert logs.taken(other)
    assert 1 == len(scene.found())


class Slow:
    """The API, with a log of which a second brings a line."""

    def __init__(self, lines: int) -> None:
        self.lines, self.now, self.closed = lines, 0.0, False

    def stream_log(self, *_: Any) -> Slow:
        return self

    def __iter__(self) -> Iterator[bytes]:
        while self.now < self.lines and not self.closed:
            self.now += 1
            yield b"%d\n" % self.now

    def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize(
    ("lines", "seconds", "messages"),
    [(9, 9, []), (1000, 20, ["Log truncated: reading it took too long"])],
)
def test_a_log_is_read_for_so_long(
    scene: Scene, lines: int, seconds: int, messages: list[str]
) -> None:
    """What came until then is kept, and people are told; others want to be read, too."""
    api = Slow(lines)
    logs = scene.logs(api, clock=lambda: api.now)
    with log.capture() as events:
        logs.take(POD, ["adapter"])
    assert [b"".join(b"%d\n" % at for at in range(1, seconds + 1))] == list(scene.found().values())
    assert (messages, True) == ([said["message"] for said in events], api.closed)


def test_a_pod_that_has_gone(scene: Scene) -> None:
    """Nothing to take."""
    logs = scene.logs()
    logs.take("gone", ["adapter"])

    assert {} == scene.found()


def test_a_stop_in_the_middle(scene: Scene) -> None:
    """Half a log is none: the next process takes all of it."""
    scene.says("adapter", b"whole")
    scene.fake.fail(Hang(), path="/log")
    logs = scene.logs()
    taking = threading.Thread(target=logs.take, args=(POD, ["adapter"]))
    taking.start()
    scene.fake.wait_for(lambda: scene.fake.requests("GET", "/log"))
    logs.stop()
    taking.join(20)
    assert (False, {}) == (taking.is_alive(), scene.found())
    assert not logs.taken(POD)

    scene.logs().take(POD, ["adapter"])
    assert [b"whole"] == list(scene.found().values())
