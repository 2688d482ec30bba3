"""The Pod's watch: how it breaks, what stands in for it, and what it costs."""

import pytest

from tests.blackbox.sidecar.scene import RUNNING, Scene
from tests.fakekube import Answer, CloseMidStream, ErrorEvent, Line, Silence
from tests.fakekube.faults import Fault

A = ("Unknown", RUNNING, False)
END = ("False", "AdapterExitedWithError", True)
BROKEN: dict[str, Fault] = {
    "410": ErrorEvent(410, after=2),
    "500 in the stream": ErrorEvent(500, "etcdserver: request timed out", after=2),
    "closed in mid-stream": CloseMidStream(after=2),
    "garbage": Line(b"\xff\xfe{\n", after=2),
    "another object": Line(b'{"type": "MODIFIED", "object": {"kind": "Node"}}\n', after=2),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_watch(scene: Scene, fault: str) -> None:
    """A GET tells what it may have missed, and a new watch takes over."""
    scene.create(form="native")
    scene.fake.fail(BROKEN[fault], watch=True)
    reporter = scene.start()
    scene.wait_condition(RUNNING)
    scene.adapter(scene.ended(1))

    scene.wait_final()
    assert [A, END] == scene.history()
    assert 0 == reporter.finish()
    scene.fake.wait_for(lambda: len(scene.fake.requests("GET", watch=True)) >= 1)


def test_a_half_open_watch_at_sigterm(scene: Scene) -> None:
    """It seems healthy for 135 s, which is more than there is: the Pod is asked for."""
    scene.create(form="native")
    scene.fake.fail(Silence(after=2), watch=True)
    reporter = scene.start()
    scene.wait_condition(RUNNING)
    scene.adapter(scene.ended(1))

    assert 0 == reporter.finish()
    assert [A, END] == scene.history()


def test_a_watch_that_is_refused(scene: Scene) -> None:
    """With the Go reporter's Role: the Pod is read when the file changes, and at SIGTERM."""
    scene.create(form="native")
    scene.fake.tokens.roles["reporter"] = scene.fake.tokens.roles["go-reporter"]
    reporter = scene.start()
    scene.wait_condition(RUNNING)
    asked = len(scene.fake.requests("GET", "/pods/"))
    assert asked <= 3
    scene.write("{")
    scene.fake.wait_for(lambda: len(scene.fake.requests("GET", "/pods/")) > asked)
    scene.adapter(scene.ended(1))

    assert 0 == reporter.finish()
    assert [A, ("False", "InvalidResultFormat", True)] == scene.history()


def test_the_right_to_get_is_taken_while_the_watch_goes_on(scene: Scene) -> None:
    """The API server ends no watch for that: what it shows decides."""
    scene.create(form="native")
    reporter = scene.start()
    scene.wait_condition(RUNNING)
    scene.fake.fail(Answer(403), method="GET", path="/pods/", watch=False, times=None)
    scene.write("{")
    scene.adapter(scene.ended(0))

    assert 0 == reporter.finish()
    assert [A, ("False", "InvalidResultFormat", True)] == scene.history()


def test_a_watch_that_never_shows_the_pod(scene: Scene) -> None:
    """Only a GET can tell why the Pod is not there."""
    scene.create()
    scene.fake.delete_pod(scene.pod_name)
    scene.start()

    scene.wait_condition("ReporterConfigError")
    assert "the namespace has no Pod with the name in POD_NAME" in scene.condition()["message"]
    assert not scene.note()["final"]


def test_a_pod_that_shows_up_late(scene: Scene) -> None:
    """The watch brings it; what was said before is taken back."""
    scene.create()
    scene.fake.delete_pod(scene.pod_name)
    reporter = scene.start()
    scene.wait_condition("ReporterConfigError")
    scene.create_pod()
    scene.wait_condition(RUNNING)
    scene.write_result()

    assert 0 == reporter.join()
    assert ("True", "AllGood", True) == scene.history()[-1]


def test_no_inotify_and_no_watch(scene: Scene) -> None:
    """The poll alone finds everything."""
    scene.path = scene.directory / "later" / "adapter-result.json"
    scene.create()
    reporter = scene.start(POLL_INTERVAL_SECONDS="1", PROGRESS_PATH=str(scene.progress))
    scene.wait_condition(RUNNING)
    scene.path.parent.mkdir()
    scene.write_result()

    assert 0 == reporter.join()
    assert ("True", "AllGood", True) == scene.history()[-1]
