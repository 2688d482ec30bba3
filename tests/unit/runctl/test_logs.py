"""A log that is followed while its container is restarted."""

from typing import Any, cast

import pytest

from reporter.errors import Unavailable
from reporter.run.view import Look, ReadOutcome
from reporter.runctl import logs
from tests.blackbox.ctl.scripted import run_status

MARKS = {"status-reporter.io/plugin": "cis", "status-reporter.io/node": "node1"}


def pod(container: str, before: str = "") -> dict[str, Any]:
    last = {"terminated": {"containerID": before}}
    status = {"name": "main", "containerID": container, "state": {}, "lastState": last}
    return {
        "metadata": {"name": "first-x", "annotations": MARKS},
        "status": {"containerStatuses": [status]},
    }


class Restarted:
    """An API server that was away while a container was replaced, and its run's end."""

    pause = 1.0

    def __init__(self, now: dict[str, Any]) -> None:
        self._now = now

    def list_all(self, *_: Any) -> list[Any]:
        return [pod("containerd://1")]

    def get(self, *_: Any, **__: Any) -> Any:
        return self._now

    def stream_log(self, *_: Any, **__: Any) -> Any:
        raise Unavailable("connection reset")

    def look(self, *_: Any, **__: Any) -> Look:
        return Look(ReadOutcome.OK, run_status("complete", final=True))


@pytest.mark.parametrize(
    ("now", "said"),
    [
        (
            pod("containerd://2", "containerd://1"),
            "status-ctl: [first-x/main] was restarted; the rest of its log: "
            "kubectl logs -n ns first-x -c main --previous\n",
        ),
        (pod("containerd://3", "containerd://2"), ""),
    ],
    ids=["once", "twice"],
)
def test_where_the_rest_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], now: Any, said: str
) -> None:
    """As long as somebody has it."""
    world = Restarted(now)
    monkeypatch.setattr(logs, "ByCluster", lambda *_: world)
    logs.Logs(cast("Any", world), "ns", "first", None, None).follow()

    assert ("", said) == capsys.readouterr()
