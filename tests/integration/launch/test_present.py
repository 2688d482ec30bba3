"""The launcher decides from what is, not from what it was shown before."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from reporter.launch import launcher as launching
from reporter.launch.decide import Decision, decide
from reporter.launch.mirror import Mirrors
from reporter.run.names import entry_name
from tests.integration.launch.cluster import ends
from tests.integration.launch.world import CHECK, HANG, RUN, World, on_loop

CHECK_JOB = entry_name(RUN, CHECK)
OVER = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}


class Stalled:
    """The API, whose first watch of a kind is dead: nothing comes, and nobody says so."""

    def __init__(self, api: Any, kind: str = "Pod") -> None:
        self._api, self._over, self._watches, self._kind = api, threading.Event(), 0, kind

    def __getattr__(self, name: str) -> Any:
        return getattr(self._api, name)

    def watch(self, kind: str, *args: Any, **kwargs: Any) -> Any:
        self._watches += kind == self._kind
        if (kind, self._watches) == (self._kind, 1):
            return self
        return self._api.watch(kind, *args, **kwargs)

    def __iter__(self) -> Iterator[Any]:
        self._over.wait(HANG)
        return iter(())

    def close(self) -> None:
        self._over.set()


@pytest.fixture
def begun(one: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """A run whose watch of Pods is dead, and what it shows soon old; its plugin fails."""
    monkeypatch.setattr("reporter.launch.mirror._FRESH", 0.5)
    one.api, one.passes = Stalled, lambda key: False
    one.cluster.fates["check"] = ends
    return one


async def failing(one: World) -> None:
    """Let the Job fail, and wait until the entry has, or what its Pod says is seen."""
    await one.until(lambda: one.entry(CHECK).launched_at and one.names("Pod"))
    job = one.fake.store.get("Job", "default", CHECK_JOB)
    one.fake.store.replace("Job", {**job, "status": {"conditions": [OVER]}})
    await one.until(
        lambda: (
            one.entry(CHECK).terminal or "exit code 1" in str(one.store.snapshot().pods.get(CHECK))
        )
    )


@on_loop
async def test_the_past_fails_nobody(begun: World) -> None:
    """A watch is dead long before it counts as such: the present is asked for before a failure."""
    async with begun.begun():
        await failing(begun)
        assert not begun.entry(CHECK).terminal


@on_loop
async def test_news_that_come_while_it_is_decided(
    begun: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are not in what was decided, so that is of the past all the same."""
    made = list[Mirrors]()
    slow = threading.Event()

    class Known(Mirrors):
        def __init__(self, *given: Any, **named: Any) -> None:
            super().__init__(*given, **named)
            made.append(self)

    def deciding(*given: Any, **named: Any) -> Decision:
        found = decide(*given, **named)
        if found.fail and not slow.is_set():
            slow.set()
            for mirror in (made[0].jobs, made[0].pods):
                before = mirror.heard_at
                mirror.refresh()
                while mirror.heard_at == before:
                    threading.Event().wait(0.01)
        return found

    monkeypatch.setattr(launching, "Mirrors", Known)
    monkeypatch.setattr(launching, "decide", deciding)
    async with begun.begun():
        await failing(begun)
        assert slow.is_set()
        assert not begun.entry(CHECK).terminal


@on_loop
async def test_a_job_that_no_watch_shows_is_removed(
    one: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was answered is known; once the API server knows it no more, the run is through."""
    monkeypatch.setattr("reporter.launch.requests._AGAIN", 0.2)
    one.api = lambda api: Stalled(api, "Job")
    async with one.begun():
        await one.until(lambda: one.launcher.through)
    assert ([CHECK_JOB], []) == (one.made("Job"), one.names("Job"))
