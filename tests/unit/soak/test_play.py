"""Lanes side by side, and what ends them."""

from __future__ import annotations

import threading
import time
from collections import Counter

import pytest

from tests.blackbox.soak.found import Contradiction
from tests.blackbox.soak.play import play

HANGS = 60.0


class Patient:
    """Waits in every game until it is stopped."""

    at_once = 2

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.stopped = threading.Event()
        self.begun = threading.Barrier(3)

    def play(self, number: int) -> None:
        """Say that it is there, and wait."""
        self.begun.wait(HANGS)
        if not self.stopped.wait(HANGS):
            raise TimeoutError("not stopped")
        raise InterruptedError(str(number))

    def stop(self) -> None:
        """End the games."""
        self.stopped.set()


class Finder:
    """Finds something once all the others are in a game."""

    at_once = 1

    def __init__(self, others: Patient) -> None:
        self.counts: Counter[str] = Counter()
        self._others = others

    def play(self, number: int) -> None:
        """Raise a Contradiction."""
        self._others.begun.wait(HANGS)
        raise Contradiction(f"found in {number}")

    def stop(self) -> None:
        """Nothing is under way."""


def test_the_first_contradiction_stops_the_other_lanes() -> None:
    patient = Patient()

    with pytest.raises(Contradiction, match="found in 0"):
        play([patient, Finder(patient)], time.monotonic() + HANGS)

    assert patient.stopped.is_set()
