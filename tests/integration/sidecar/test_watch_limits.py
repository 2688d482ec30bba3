"""The Pod's watch where the product would wait for minutes."""

from typing import Any

import pytest

from reporter.kube.api import KubeApi
from reporter.kube.stream import Watch
from tests.blackbox.sidecar.scene import BOUND, RUNNING
from tests.fakekube import FakeKube, Silence
from tests.integration.scene import Scene, impatient

A = ("Unknown", RUNNING, False)
END = ("False", "AdapterExitedWithError", True)


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


class Short(KubeApi):
    """Asks the server to end each watch after a second."""

    def watch(self, *names: Any, **more: Any) -> Watch:
        return super().watch(*names, **more | {"server_timeout": 1})


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


def test_a_pod_refused_until_the_wait_time_ends(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then the timeout is final, and it says why nothing is known."""
    monkeypatch.setattr("reporter.verdict.case.REFUSAL_PATIENCE", 1.0)
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
    monkeypatch.setattr("reporter.verdict.case.REFUSAL_PATIENCE", 1.0)
    scene.create()
    scene.fake.tokens.roles["reporter"] = scene.fake.tokens.roles["no-pods"]
    reporter = scene.start(MAX_WAIT_TIME_SECONDS="2", POLL_INTERVAL_SECONDS="1")
    scene.write_result()
    scene.wait_condition("AllGood")

    assert 0 == reporter.join()
    assert [("True", "AllGood", False), ("True", "AllGood", True)] == scene.history()[-2:]
