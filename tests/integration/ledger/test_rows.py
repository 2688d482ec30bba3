"""Several writers of one database: each knows before it decides what the others have done."""

from __future__ import annotations

import itertools
import random
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from reporter.ledger.lifecycle import Run
from reporter.ledger.rows import TABLES, Commit, Rows
from reporter.run import entry as rules
from reporter.run.entry import Entry
from reporter.run.plan import Key
from reporter.run.progress import Progress, StoredProgress, take
from reporter.run.record import Record
from reporter.run.upload import UploadOutcome
from tests.integration.ledger.world import E2E, HANG, NODE1, NOW, PLAN, appending, result


class Replica:
    """A writer, and what it was told of the run."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._rows = Rows(connection)
        self.entries: dict[Key, Entry] = {}
        self.progress: dict[Key, StoredProgress] = {}
        self.revisions: list[int] = []
        _, _, commit = self._rows.open(PLAN, Run(NOW, NOW, NOW))
        self.hear(commit)

    def hear(self, commit: Commit) -> None:
        """Take in what is new."""
        for revision, key, value in commit.changes:
            self.revisions.append(revision)
            if isinstance(value, Entry):
                self.entries[key] = value
            else:
                self.progress[key] = value

    def offer(self, key: Key, record: Record) -> UploadOutcome:
        """A result."""
        answers, commit = self._rows.commit(
            [lambda batch: batch.update([key], lambda e: rules.receive(e, record, closed=False))]
        )
        self.hear(commit)
        return answers[0][key]

    def append(self, key: Key, update: Progress) -> None:
        """An update that adds to what is there."""
        _, commit = self._rows.commit(
            [lambda batch: batch.put_progress(key, take(batch.progress(key), update, None, NOW))]
        )
        self.hear(commit)

    def look(self) -> None:
        """Change nothing."""
        self.hear(self._rows.commit([])[1])


def connect(path: Path) -> sqlite3.Connection:
    """Open the database for any thread."""
    return sqlite3.connect(path, isolation_level=None, timeout=HANG, check_same_thread=False)


@pytest.fixture
def replicas(quick_folder: Path) -> Iterator[list[Replica]]:
    """Three writers of one run."""
    path = quick_folder / "run.db"
    with ExitStack() as open_until_then:
        connections = [open_until_then.enter_context(closing(connect(path))) for _ in range(3)]
        for statement in TABLES:
            connections[0].execute(statement)
        yield [Replica(connection) for connection in connections]


def test_of_rivals_at_several_writers_the_first_wins(replicas: list[Replica]):
    first, second, third = replicas
    assert UploadOutcome.ACCEPTED == first.offer(E2E, result("aa"))
    assert UploadOutcome.DUPLICATE == second.offer(E2E, result("bb"))
    third.look()
    assert ["aa"] * 3 == [replica.entries[E2E].record.digest for replica in replicas]


def test_appends_at_several_writers_all_count(replicas: list[Replica]):
    for number in range(12):
        replicas[number % 3].append(NODE1, appending(1, f"t{number}"))
    assert 12 == replicas[2].progress[NODE1].progress.completed
    assert [f"t{number}" for number in range(12)] == [
        *replicas[2].progress[NODE1].progress.failures
    ]


def test_writers_in_threads_take_turns(replicas: list[Replica]):
    """Nobody decides on what another is just changing, and nobody is refused."""

    def work(replica: Replica) -> None:
        for _ in range(50):
            replica.append(NODE1, appending(1))

    with ThreadPoolExecutor() as threads:
        list(threads.map(work, replicas))
    replicas[0].look()
    assert 150 == replicas[0].progress[NODE1].progress.completed


def test_all_writers_are_told_the_same_in_the_same_order(replicas: list[Replica]):
    """And no revision has two meanings, or comes after a greater one."""
    chance = random.Random(7)
    for number in range(200):
        key, replica = chance.choice(PLAN.keys), chance.choice(replicas)
        if chance.random() < 0.5:
            replica.append(key, appending(1))
        else:
            replica.offer(key, result(f"{number:02x}"))
    for replica in replicas:
        replica.look()
        assert all(one < other for one, other in itertools.pairwise(replica.revisions))
        assert replicas[0].entries == replica.entries
        assert replicas[0].progress == replica.progress
