"""Whose handshake is next, and who is sent away while all places are taken."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from typing import Any

import pytest

from reporter.aggregator.server.peers import Handshakes
from tests.aggregators.listening import constants

ONE = {"HANDSHAKES": 1, "HANDSHAKES_PER_ADDRESS": 1}


class Door:
    """Handshakes that begin and never end by themselves; peers are known by their names."""

    def __init__(self, waiting: int) -> None:
        self.begun: list[str] = []
        self.failed: list[str] = []
        self._names: dict[socket.socket, str] = {}
        self._theirs: list[socket.socket] = []
        self._last: Any = None
        self.handshakes = Handshakes(
            self._begin, lambda _: True, lambda *said: self.failed.append(said[2]), waiting
        )

    def _begin(self, peer: Any) -> asyncio.Task[None]:
        self._last = peer
        self.begun.append(self._names[peer.socket])
        return asyncio.create_task(asyncio.sleep(0))

    async def comes(self, name: str, *, says: bytes = b"hello") -> None:
        """Let a peer come; its address is the first letter of its name."""
        ours, theirs = socket.socketpair()
        self._names[ours] = name
        self._theirs.append(theirs)
        self.handshakes.wait_for_turn(ours, name[0])
        theirs.send(says)
        await asyncio.sleep(0.01)

    def ends(self) -> None:
        """End the handshake that began last."""
        self.handshakes.leave(self._last)

    def gone(self) -> list[str]:
        """Who has been sent away."""
        return [name for ours, name in self._names.items() if ours.fileno() < 0]

    def close(self) -> None:
        self.handshakes.close()
        for each in (*self._names, *self._theirs):
            with contextlib.suppress(OSError):
                each.close()


@pytest.fixture
def run():
    """Runs a story with as many handshakes at a time as a constant says."""

    def play(story: Any, waiting: int = 10) -> None:
        async def told() -> None:
            with contextlib.closing(Door(waiting)) as door:
                await story(door)

        with constants(**ONE):
            asyncio.run(told())

    return play


def test_addresses_have_their_turn_one_after_the_other(run) -> None:
    """Whoever comes with many waits behind the first of others."""

    async def story(door: Door) -> None:
        for name in ("a1", "a2", "a3", "b1", "c1"):
            await door.comes(name)
        for _ in range(4):
            door.ends()
        assert ["a1", "a2", "b1", "c1", "a3"] == door.begun

    run(story)


@pytest.mark.parametrize("says", [b"", b"hello"])
def test_who_is_sent_away_when_there_are_too_many(run, says: bytes) -> None:
    """Of the address with most, whoever says nothing before who waits longest."""

    async def story(door: Door) -> None:
        await door.comes("b1")
        for name in ("a1", "b2"):
            await door.comes(name)
        await door.comes("a2", says=says)
        await door.comes("c1")
        assert (["b1"], ["a1" if says else "a2"]) == (door.begun, door.gone())
        assert ["too many connections wait for their handshake"] == door.failed

    run(story, waiting=3)
