"""The side of the store's kill tests that survives."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from reporter.run.plan import Key
from reporter.run.record import Rank
from reporter.run.state import Snapshot

ROOT = Path(__file__).parents[3]


class Player:
    """Has runs played in processes that may be killed, and hears what was acknowledged."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def play(self, mode: str, folder: Path, number: int) -> list[list[Any]]:
        """Play one and return everything it said."""
        self._ask(mode, folder, number)
        return list(self._said())

    def killed(self, folder: Path, seed: int, chance: random.Random) -> list[list[Any]]:
        """Let the load run for a random time, kill it and return everything it said."""
        self._ask("load", folder, seed)
        said, pid = [], 0
        for fact in self._said():
            said.append(fact)
            if fact[0] == "pid":
                pid = fact[1]
            if fact[0] == "ready":
                delay = chance.uniform(0.0, 0.15)
                timer = threading.Timer(delay, os.kill, (pid, signal.SIGKILL))
                timer.start()
        timer.join()
        return said

    def _ask(self, mode: str, folder: Path, number: int) -> None:
        assert self._process.stdin
        self._process.stdin.write(f"{mode} {folder} {number}\n".encode())
        self._process.stdin.flush()

    def _said(self) -> Iterator[list[Any]]:
        assert self._process.stdout
        for line in self._process.stdout:
            fact = json.loads(line)
            if fact == ["ended"]:
                return
            assert "failed" != fact[0], fact
            yield fact


@contextmanager
def player() -> Iterator[Player]:
    """A program that plays runs; it is imported once and forks for each."""
    command = [sys.executable, "-m", "tests.integration.ledger.story"]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        try:
            yield Player(process)
        finally:
            assert process.stdin
            process.stdin.close()


class Acknowledged:
    """Everything that was acknowledged over many kills, held against what is there."""

    def __init__(self) -> None:
        self.digests: dict[Key, str] = {}
        self.appended: dict[Key, int] = {}
        self.tried: dict[Key, int] = {}
        self.cuts: dict[Key, str] = {}
        self.given_up: set[Key] = set()
        self.revision = 0

    def hear(self, said: list[list[Any]]) -> None:
        """Take in what one process said."""
        for what, *fact in said:
            match what:
                case "accepted":
                    self.digests[Key(*fact[:2])] = fact[2]
                    self.revision = max(self.revision, fact[3])
                case "duplicate":
                    raise AssertionError(f"nothing was held for {fact}")
                case "trying":
                    self.tried[Key(*fact[:2])] = fact[2]
                case "appended":
                    self.appended[Key(*fact[:2])] = fact[2]
                    self.revision = max(self.revision, fact[3])
                case "tried":
                    self.cuts[Key(*fact[:2])] = fact[2]
                case "given-up":
                    self.given_up.add(Key(*fact))

    def check(self, snapshot: Snapshot) -> None:
        """Compare with the run as it is after the last kill."""
        entries = snapshot.entries
        held = {key: entries[key].record for key in self.digests}
        assert self.digests == {key: record and record.digest for key, record in held.items()}
        counts = {key: sent.progress.completed for key, sent in snapshot.progress.items()}
        for key, number in self.appended.items():
            assert number <= counts.get(key, 0) <= self.tried[key], key
        for key, text in self.cuts.items():
            window = entries[key].window
            assert entries[key].terminal or (window and window.text == text), key
        for key in self.given_up:
            records = (entries[key].record, entries[key].superseded)
            assert Rank.AGGREGATOR in {record.rank for record in records if record}, key
        assert snapshot.revision >= self.revision
