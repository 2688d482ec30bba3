"""`wait --fail-fast`: trouble with a Pod that ends it before a verdict is there to stay."""

import argparse
from typing import Any

import pytest

from reporter.errors import Forbidden, KubeError, Unavailable
from reporter.jobs import wait
from reporter.jobs.wait import PAUSE, STUCK, Awaited, Waiting
from reporter.verdict import rows
from reporter.verdict.facts import Container, Running, Terminated
from reporter.verdict.facts import Waiting as State
from tests.fakekube import running, terminated, waiting
from tests.unit.jobs.world import GOOD, beside, classic, job, pod

NO_IMAGE = rows.trouble(rows.Row.IMAGE, "container 'adapter': ErrImagePull: not found")
LOOPS = rows.crash_looping(Container("adapter", State("CrashLoopBackOff"), Terminated(1), 2))
WORKING = rows.running(Running(), None)
PULL = waiting("ErrImagePull", "not found")
SHIPPER = pod(running(), change=beside(PULL))  # whose image cannot be pulled
RETRIED = {"backoffLimit": 6}


def named(made: dict[str, Any], name: str) -> dict[str, Any]:
    """A newer Pod than the usual one."""
    made["metadata"] |= {"name": name, "creationTimestamp": "2030-01-01T12:05:00Z"}
    return made


class Api:
    """A Job that stays as it is, and its Pods, or why they cannot be listed."""

    def __init__(self, job: dict[str, Any], pods: list[Any] | KubeError) -> None:
        self.job, self.pods, self.lists = job, pods, 0

    def get(self, *_: object, **__: object) -> dict[str, Any]:
        return self.job

    def list_page(self, *_: object, **__: object) -> argparse.Namespace:
        self.lists += 1
        if isinstance(self.pods, KubeError):
            raise self.pods
        return argparse.Namespace(items=self.pods)


class Clock:
    """Time passes while somebody sleeps."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += max(seconds, 0.01)


def ends(monkeypatch: pytest.MonkeyPatch, api: Any) -> tuple[int, int]:
    """Wait; return the exit code and after how many seconds it came."""
    monkeypatch.setattr(wait, "time", clock := Clock())
    options = argparse.Namespace(fail_fast=True, timeout=3 * STUCK, output="name", no_color=True)
    code = Waiting(api, "default", [Awaited("validate")], options).run()
    return code, round(clock.now)


@pytest.mark.parametrize(
    ("made", "pods"),
    [
        (job(NO_IMAGE, final=False), [pod(PULL, phase="Pending")]),
        (job(NO_IMAGE, final=False), Forbidden("no")),
        (job(LOOPS, final=False, spec=RETRIED), [pod(waiting("CrashLoopBackOff"))]),
    ],
)
def test_the_reporter_says_it_of_the_newest_pod(monkeypatch, capsys, made, pods) -> None:
    """It has waited itself: at once, and with its words in the form that was asked for."""
    assert (1, 0.0) == ends(monkeypatch, Api(made, pods))
    assert "job.batch/validate\n" == capsys.readouterr().out


@pytest.mark.parametrize(
    ("made", "shown"),
    [
        (job(), pod(PULL, phase="Pending")),
        (job(), pod(waiting("PodInitializing"), phase="Pending", reporter=PULL)),
        (job(), classic(running(), PULL)),
        (job(NO_IMAGE, final=False), named(pod(PULL, phase="Pending"), "second")),
    ],
    ids=["adapter", "reporter", "classic reporter", "newer Pod"],
)
def test_no_reporter_says_it(monkeypatch, capsys, made, shown) -> None:
    """Then the Pod does, once its container has not started for a minute."""
    assert (1, STUCK) == ends(monkeypatch, Api(made, [shown]))
    assert "ErrImagePull: not found" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("made", "shown"),
    [
        (
            job(WORKING, final=False, spec=RETRIED),
            pod(waiting("CrashLoopBackOff"), last_state=terminated(1), restarts=1),
        ),
        (job(WORKING, final=False), pod(PULL, phase="Pending")),
        (job(WORKING, final=False), SHIPPER),
        (job(rows.result(GOOD), final=False, spec=RETRIED), SHIPPER),
        (job(WORKING, final=False), pod(running(), reporter=waiting("CrashLoopBackOff"))),
        (job(NO_IMAGE, spec=RETRIED), named(pod(running()), "second")),
        (job(NO_IMAGE, spec=RETRIED), pod(terminated(128, "StartError"), phase="Failed")),
        (job(NO_IMAGE, final=False), named(pod(running()), "second")),
        (job(), SHIPPER),
        (job(), pod(waiting("ContainerCreating"), phase="Pending")),
    ],
)
def test_what_may_still_go_well(monkeypatch, made, shown) -> None:
    """A reporter at work decides, and what a retry may change is no end."""
    assert (3, 3 * STUCK) == ends(monkeypatch, Api(made, [shown]))


def test_trouble_that_passes(monkeypatch) -> None:
    """A registry that was overloaded for less than a minute, twice."""
    api = Api(job(), [])

    def list_page(*_: object, **__: object) -> argparse.Namespace:
        api.lists += 1
        shown = PULL if api.lists % 50 else waiting("ContainerCreating")
        return argparse.Namespace(items=[pod(shown, phase="Pending")])

    monkeypatch.setattr(api, "list_page", list_page)
    assert 3 == ends(monkeypatch, api)[0]


@pytest.mark.parametrize(
    ("made", "error", "lists"),
    [
        (job(WORKING, final=False), [], 0),
        (job(), Forbidden("no"), 1),
        (job(), Unavailable("away"), 3 * STUCK / PAUSE + 1),
    ],
)
def test_pods_are_asked_for_only_where_they_tell_something(
    monkeypatch, made, error, lists: int
) -> None:
    """Not while a reporter tells it, and not again after a refusal."""
    api = Api(made, error)
    ends(monkeypatch, api)
    assert lists == api.lists
