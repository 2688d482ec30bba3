"""Players side by side, each with some games at a time, until the first contradiction."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Protocol

from tests.blackbox.soak.found import Contradiction


class Player(Protocol):
    """Who draws and plays one kind of game. `counts` says what was played, and how it ended."""

    at_once: int
    counts: Counter[str]

    def play(self, number: int) -> None:
        """Play one game, the n-th; raises Contradiction."""

    def stop(self) -> None:
        """End what is under way in other threads, soon, with whatever error."""


def play(
    players: Sequence[Player], until: float, told: Callable[[Contradiction], None] | None = None
) -> None:
    """Begin games until the time (monotonic) is over, then wait for the last ones.

    The first Contradiction stops the others, and is raised; with `told` it is told and played on.
    """
    over = threading.Event()

    def games(player: Player, first: int) -> None:
        number = first
        while time.monotonic() < until and not over.is_set():
            try:
                player.play(number)
            except Contradiction as error:
                if told is None:
                    raise
                told(error)
            number += player.at_once

    lanes = [(player, lane) for player in players for lane in range(player.at_once)]
    with ThreadPoolExecutor(len(lanes), "soak") as pool:
        try:
            for done in as_completed([pool.submit(games, *lane) for lane in lanes]):
                done.result()
        except BaseException:
            over.set()
            for player in players:
                player.stop()
            raise


def summary(players: Sequence[Player]) -> str:
    """What was played, by kind, fault and end."""
    counts: Counter[str] = sum((player.counts for player in players), Counter[str]())
    return "soak: " + ", ".join(f"{n} {what}" for what, n in sorted(counts.items()))
