"""What is kept of the log: across kills, within bounds, without secrets."""

from __future__ import annotations

import errno
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reporter.aggregator.entry_log import EntryLog
from reporter.aggregator.run_log import RunLog
from reporter.common import log
from reporter.ledger.documents import KeptDocuments
from reporter.ledger.layout import Layout
from reporter.run.entry import Entry
from reporter.run.plan import GLOBAL, Key, Plan, Plugin
from reporter.run.record import Cause, Rank, Record
from reporter.run.state import Phase, Snapshot


@contextmanager
def kept(path: Path, **options: int) -> Iterator[RunLog]:
    """A log that goes on in this file."""
    run_log = RunLog(**options)
    run_log.open(path)
    try:
        yield run_log
    finally:
        run_log.close(60.0)


def lines(path: Path) -> list[dict[str, Any]]:
    """Its lines; each is whole."""
    text = path.read_text()
    assert text.endswith("\n")
    return [json.loads(line) for line in text.splitlines()]


def test_killed_in_the_middle_of_a_line(tmp_path: Path) -> None:
    """The next process goes on after the last whole one."""
    path = tmp_path / "run.log"
    path.write_text('{"a":1}\n{"b":')
    with kept(path) as run_log:
        run_log.write('{"c":3}')

    assert [{"a": 1}, {"c": 3}] == lines(path)
    assert 0o600 == path.stat().st_mode & 0o600


def test_nothing_but_half_a_line(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_text('{"b":')
    with kept(path) as run_log:
        run_log.write('{"c":3}')

    assert [{"c": 3}] == lines(path)


def test_what_was_said_before_the_file_was_known(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    run_log = RunLog()
    run_log.write('{"first":1}')
    run_log.open(path)
    run_log.settle(60.0)

    assert [{"first": 1}] == lines(path)
    run_log.close()


def test_a_state_that_is_another_runs(tmp_path: Path) -> None:
    """No file is opened, and the end does not wait."""
    run_log = RunLog()
    run_log.write('{"first":1}')
    run_log.settle()
    run_log.close()


@pytest.mark.parametrize("written", ["json", "console"])
def test_every_event_is_kept_as_json(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], written: Any
) -> None:
    """Whatever standard output has, and without what a URL has of credentials."""
    path = tmp_path / "run.log"
    log.configure(written)
    try:
        with kept(path) as run_log:
            log.keep(run_log.write)
            error = ValueError('https://store/run?X-Amz-Signature=5f1d00d"quoted')
            log.get().warning("Upload failed", error=error, proxy="http://me:hunter2@proxy:1")
            log.get().debug("Too fine")
    finally:
        log.keep(None)
        log.configure()
    log.get().info("After the end")

    (event,) = lines(path)
    assert "Upload failed" == event["message"]
    assert 'ValueError: https://store/run?X-Amz-Signature=[redacted]"quoted' == event["error"]
    assert "http://[redacted]@proxy:1" == event["proxy"]
    assert "Upload failed" in capfd.readouterr().out


def test_a_log_that_is_too_long(tmp_path: Path) -> None:
    """It ends with a line that says so, once, also after a restart."""
    path = tmp_path / "run.log"
    for _ in range(2):
        with kept(path, largest=100) as run_log:
            for number in range(50):
                run_log.write(json.dumps({"number": number}))

    *numbers, last = [line for line in lines(path) if "number" in line or "level" in line]
    assert {"number": 0} == numbers[0]
    assert "Log truncated: size limit reached, only verdicts follow" == last["message"]
    assert path.stat().st_size < 500


def test_lines_that_are_missing_from_a_log_that_is_too_long(tmp_path: Path) -> None:
    """It does not grow by saying so."""
    path = tmp_path / "run.log"
    with kept(path, largest=400) as run_log:
        for number in range(50):
            run_log.write("no JSON")
            run_log.write(json.dumps({"number": number}))

    messages = [line.get("message") for line in lines(path)]
    assert "Log lines are missing here" in messages
    assert path.stat().st_size < 700


def test_a_verdict_is_in_a_log_that_somebody_has_filled(tmp_path: Path) -> None:
    """A tenth is kept for those on entries and on the run, also for the next process."""
    path, key = tmp_path / "run.log", Key("check", GLOBAL)
    records = [
        Record(Rank.AGGREGATOR, 1.0, cause=Cause.DEADLINE, text="late"),
        Record(Rank.WORKER, 2.0, text="boom"),
        Record(Rank.RESULT, 3.0, digest="ab"),
        Record(Rank.RESULT, 3.0, digest="ab", verdict="failed"),
        Record(Rank.LOST, 4.0, text="the blob is gone"),
    ]
    run = Snapshot(Plan("r", (Plugin("check"),)), 1, Phase.RUNNING, 0.0, {key: Entry(key)}, {}, {})
    entry_log = EntryLog(run, lambda _: (key,), lambda: 0.0)
    for _ in range(2):
        with kept(path, largest=20_000) as run_log:
            log.keep(run_log.write)
            try:
                for number in range(500):
                    log.get().warning("Request refused", number=number)
                for record in records:
                    [*entry_log.look(replace(run, entries={key: Entry(key, record)}))]
                for words in ("Run closed: the set of results is final", "Run finished"):
                    log.get().info(words, key="")
            finally:
                log.keep(None)

    verdicts = [line["message"] for line in lines(path) if "key" in line]
    assert (
        2
        * [
            "Result given up",
            "Worker reported an error",
            "Result stored",
            "Result judged",
            "Result lost",
            "Run closed: the set of results is final",
            "Run finished",
        ]
        == verdicts
    )
    assert path.stat().st_size < 20_000


def test_a_place_where_nothing_can_be_written(tmp_path: Path) -> None:
    """Nobody waits or fails; what was lost is counted once there is room."""
    path = tmp_path / "missing" / "run.log"
    with kept(path) as run_log:
        run_log.write('{"lost":1}')
        run_log.write("no JSON: ://")
        run_log.settle(60.0)
        path.parent.mkdir()
        run_log.write('{"found":1}')

    missing, found = lines(path)
    assert ("Log lines are missing here", 2) == (missing["message"], missing["lines"])
    assert {"found": 1} == found


@pytest.mark.parametrize("taken", [0, 5])
def test_a_disk_that_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken: int) -> None:
    """It takes nothing, or half a line: none stays half there, and what was lost is counted."""
    path, write, full = tmp_path / "run.log", os.write, threading.Event()

    def until_full(fd: int, data: bytes) -> int:
        if not full.is_set() or not os.path.samestat(os.fstat(fd), path.stat()):
            return write(fd, data)
        if not taken:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(fd, data[:taken])

    monkeypatch.setattr("reporter.aggregator.run_log.os.write", until_full)
    with kept(path) as run_log:
        run_log.write('{"first":1}')
        run_log.settle(60.0)
        full.set()
        run_log.write('{"lost":1}')
        run_log.write('{"lost":2}')
        run_log.settle(60.0)
        assert [{"first": 1}] == lines(path)
        full.clear()
        run_log.write('{"found":1}')

    first, missing, found = lines(path)
    assert ({"first": 1}, 2, {"found": 1}) == (first, missing["lines"], found)


def test_only_the_reserve_is_left(tmp_path: Path) -> None:
    """It is not for the log: no file of the run's state grows for it."""
    path, layout = tmp_path / "run.log", Layout(tmp_path, tmp_path, reserve=2**62)
    run_log = RunLog()
    run_log.open(path, layout.check_room)
    run_log.write('{"lost":1}')
    run_log.close(60.0)

    assert "" == path.read_text()


@pytest.mark.parametrize(("reserve", "there"), [(0, b"x"), (2**62, None)])
def test_documents_for_the_page_leave_the_reserve(
    tmp_path: Path, reserve: int, there: bytes | None
) -> None:
    layout = Layout(tmp_path / "state", tmp_path / "output", reserve=reserve)
    layout.prepare()
    documents = KeptDocuments(layout)
    documents.write("p", "source", b"x")
    assert there == documents.read("p", "source")
    assert [] == [*layout.staging.iterdir()]


def test_a_disk_that_is_too_slow(tmp_path: Path) -> None:
    """Only so many lines wait for it."""
    path, run_log = tmp_path / "run.log", RunLog(waiting=10)
    for number in range(15):
        run_log.write(json.dumps({"number": number}))
    run_log.open(path)
    run_log.close(60.0)

    missing, *rest = lines(path)
    assert 5 == missing["lines"]
    assert [{"number": number} for number in range(10)] == rest
