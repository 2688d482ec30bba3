"""The runs that a user has started, as they are noted."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import pytest

from reporter.errors import NotFound, Unavailable
from reporter.kube.api import KubeApi
from reporter.runctl.own_runs import newest, note

HERE, THERE = "https://here:6443", "https://there:6443"


class Api:
    """An API server with the plans of these runs, by the word of their creation."""

    def __init__(self, server: str = HERE, **words: str) -> None:
        self.server, self.words, self.asked = server, words, list[str]()

    def get(self, kind: str, namespace: str, name: str, **_: Any) -> dict[str, Any]:
        self.asked.append(name)
        if name not in self.words:
            raise NotFound("no such plan")
        if not self.words[name]:
            raise Unavailable("no answer")
        word = {"status-reporter.io/creation": self.words[name]}
        return {"metadata": {"annotations": word}}


def found(api: Api) -> str:
    return (newest(cast("KubeApi", api)) or ("", ""))[1]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's state directory."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "status-reporter"


def start(home: Path, number: int, server: str = HERE) -> None:
    """Note a run, at that time."""
    note(server, "ns", f"r{number}", f"word{number}")
    for path in home.glob(f"runs/*/word{number}"):
        os.utime(path, (number, number))


def test_the_newest_that_there_still_is(home: Path) -> None:
    """Another's run of that name is not it, nor is one in another cluster."""
    for number in range(3):
        start(home, number)
    start(home, 9, THERE)
    assert "r1" == found(Api(r0="word0", r1="word1"))
    assert "r0" == found(Api(r0="word0", r2="another's"))
    assert "r9" == found(Api(THERE, r9="word9"))
    assert "" == found(Api())


def test_one_that_cannot_be_looked_at(home: Path) -> None:
    """Whether it is there is not known, so nobody takes another one for it."""
    for number in range(2):
        start(home, number)
    assert "" == found(Api(r0="word0", r1=""))


def test_no_more_than_twenty_of_each_cluster(home: Path) -> None:
    start(home, 99, THERE)
    for number in range(25):
        start(home, number)
    api = Api(THERE, r99="word99")
    assert "r99" == found(api)
    api = Api()
    found(api)
    assert [f"r{number}" for number in range(24, 4, -1)] == api.asked


def test_runs_that_are_started_at_the_same_time() -> None:
    """None is lost."""
    with ThreadPoolExecutor(10) as threads:
        for number in range(10):
            threads.submit(note, HERE, "ns", f"r{number}", f"word{number}")
    api = Api()
    found(api)
    assert {f"r{number}" for number in range(10)} == {*api.asked}


@pytest.mark.parametrize("content", [b"\xff\xfe", b"more than two words", None])
def test_what_cannot_be_read_or_written_is_no_failure(home: Path, content: bytes | None) -> None:
    """The run is there; it only has to be named."""
    if content is None:
        home.write_text("a file where the directory should be")
    start(home, 1)
    for path in home.glob("runs/*/word1"):
        path.write_bytes(content or b"")
    assert "" == found(Api(r1="word1"))
