"""The Pod's watch: how it breaks, what stands in for it, and what it costs."""

import pytest

from reporter.kube.api import KubeApi
from reporter.kube.stream import Watch
from tests.fakekube import CloseMidStream, ErrorEvent, FakeKube, Line, Silence
from tests.fakekube.faults import Fault
from tests.integration.scene import BOUND, RUNNING, Scene, impatient

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


@pytest.mark.parametrize("after", [0, 1, 2])
def test_a_half_open_watch(scene: Scene, after: int) -> None:
    """No bookmark comes, so the connection is dead: the end is seen all the same."""
    scene.create(form="native")
    scene.fake.fail(Silence(after=after), watch=True)
    reporter = scene.start(impatient)
    scene.wait_condition(RUNNING)
    scene.adapter(scene.ended(1))
    scene.wait_final()

    assert 0 == reporter.finish()
    assert [A, END] == scene.history()


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


class Short(KubeApi):
    """Asks the server to end each watch after a second."""

    def watch_pod(
        self, namespace: str, name: str, *, server_timeout: int = 900, silence: float = 135.0
    ) -> Watch:
        return super().watch_pod(namespace, name, server_timeout=1, silence=silence)


def test_the_servers_own_timeout(scene: Scene) -> None:
    """Nothing is lost with the end of a watch, and it is no failure."""

    def short(fake: FakeKube) -> KubeApi:
        return Short.connect(fake.server, ca_file=fake.ca_file, token_file=fake.token_file)

    scene.create(form="native")
    reporter = scene.start(short)
    first = scene.fake.wait_for(lambda: scene.fake.requests(watch=True), BOUND)[0]
    scene.fake.wait_for(lambda: first.ended, BOUND)
    scene.adapter(scene.ended(1))
    scene.wait_final()

    assert 0 == reporter.finish()
    assert [A, END] == scene.history()
    assert [] == scene.said("Request failed")


def test_a_watch_that_never_shows_the_pod(scene: Scene) -> None:
    """The first bookmark ends the initial events: only a GET can tell why the Pod is not there."""
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


def test_a_pod_refused_until_the_wait_time_ends(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then the timeout is final, and it says why nothing is known."""
    monkeypatch.setattr("reporter.core.case.REFUSAL_PATIENCE", 1.0)
    scene.create()
    scene.fake.tokens.roles["reporter"] = scene.fake.tokens.roles["no-pods"]
    reporter = scene.start(MAX_WAIT_TIME_SECONDS="2", POLL_INTERVAL_SECONDS="1")

    # The restart policy is unknown, so that any other exit code might be counted.
    assert 0 == reporter.join()
    assert [("False", "AdapterTimeout", True)] == scene.history()
    assert scene.condition()["message"].endswith("(the Pod could not be read: forbidden)")
    assert "forbidden" == scene.note()["evidence"]["pod"]["look"]


def test_a_pod_refused_leaves_the_file(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """The result is written at once, and final when the wait time ends."""
    monkeypatch.setattr("reporter.core.case.REFUSAL_PATIENCE", 1.0)
    scene.create()
    scene.fake.tokens.roles["reporter"] = scene.fake.tokens.roles["no-pods"]
    reporter = scene.start(MAX_WAIT_TIME_SECONDS="2", POLL_INTERVAL_SECONDS="1")
    scene.write_result()
    scene.wait_condition("AllGood")

    assert 0 == reporter.join()
    assert [("True", "AllGood", False), ("True", "AllGood", True)] == scene.history()[-2:]


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
