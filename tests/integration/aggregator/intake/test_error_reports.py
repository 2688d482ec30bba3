"""Error reports of workers, errors of our own, and what replaces what."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import FrameType

import pytest

from reporter.errors import InvalidPayload
from reporter.run.entry import State
from reporter.run.error_report import SILENT, parse_report
from reporter.run.record import Cause, Rank
from reporter.run.upload import Meta
from tests.archives.tars import file, folder, tgz
from tests.integration.aggregator.intake.scene import (
    ARCHIVE,
    E2E,
    JSON,
    NODE1,
    NODE2,
    REPORT,
    Scene,
    held,
    play,
    refused,
    sha,
    stored,
)

SONOBUOY = b'{"error":"x"}'
PARTIAL = replace(ARCHIVE, error=True)
TIMEOUT = "Plugin timeout while waiting for results"


@pytest.mark.parametrize("kind", ["application/gzip", "application/json", ""])
def test_a41_sonobuoys_error_object(tmp_path: Path, kind: str) -> None:
    """A41, F8: whatever its type, an error and no result."""

    async def story(here: Scene) -> None:
        meta = Meta(content_type=kind, length=len(SONOBUOY))
        assert stored(sha(SONOBUOY)) == await here.put(E2E, SONOBUOY, meta)
        entry = here.store.entry(E2E)
        assert (State.FAILED, Cause.WORKER_ERROR) == (entry.state, entry.record.cause)
        assert ("x", Rank.WORKER) == (entry.record.text, entry.record.rank)

    done = play(tmp_path, story)

    assert {"e2e/errors/global/error.json": SONOBUOY} == done.files()


@pytest.mark.parametrize(
    ("body", "meta"),
    [
        pytest.param(SONOBUOY, JSON, id="with-a-file-name"),
        pytest.param(b'{"error":"x","more":1}', Meta(), id="more-members"),
        pytest.param(b'{"error":1}', Meta(), id="no-text"),
        pytest.param(b'["error"]', Meta(), id="no-object"),
        pytest.param(b'{"error":', Meta(), id="no-json"),
        pytest.param(b'{"error":"' + b"x" * 65536 + b'"}', Meta(), id="too-large"),
        pytest.param(b"{" * 60_000, Meta(), id="deep"),
    ],
)
def test_results_that_look_like_errors(tmp_path: Path, body: bytes, meta: Meta) -> None:
    """Only exactly Sonobuoy's shape is taken for an error unless the head says so."""

    async def story(here: Scene) -> None:
        await here.put(E2E, body, meta)
        assert State.COMPLETE == here.store.entry(E2E).state

    play(tmp_path, story)


@pytest.mark.parametrize(
    ("status", "adapter", "verdict"),
    [
        pytest.param("failure", True, "failed", id="the sidecar says failure"),
        pytest.param("unknown", True, "unknown", id="the sidecar cannot tell"),
        pytest.param(None, True, "failed", id="it says nothing of it"),
        pytest.param([], True, "failed", id="no word"),
        pytest.param("unknown", False, "", id="another worker's report"),
    ],
)
def test_the_verdict_of_a_report(
    tmp_path: Path, status: object, adapter: bool, verdict: str
) -> None:
    """Only a reporter's own report is understood; it is an error in any case."""
    body = json.dumps({"error": "node drained", "cause": "AdapterEvicted", "status": status})

    async def story(here: Scene) -> None:
        await here.put(E2E, body.encode(), replace(REPORT, adapter=adapter))
        record = here.store.entry(E2E).record
        assert (State.FAILED, Cause.WORKER_ERROR) == (here.store.entry(E2E).state, record.cause)
        assert (verdict, "AdapterEvicted", "node drained") == (
            record.verdict,
            record.reason,
            record.text,
        )

    play(tmp_path, story)


FILLED = b'"evidence":[' + b"[]," * 30_000 + b"[]]"


@pytest.mark.parametrize("filler", [b'"evidence":[]', FILLED], ids=["small", "large"])
@pytest.mark.parametrize(
    ("members", "expected"),
    [
        (b'"error":"it\\nbroke","cause":"Oom","status":"unknown"', ("it broke", "Oom", True)),
        (b'"error":"","cause":7,"status":["unknown"]', (SILENT.text, "", False)),
        (b'"error":["x"]', None),
        (b'"cause":"Oom"', None),
        (b'"error":"x",', None),
    ],
)
def test_a_report_of_any_size_says_the_same(members: bytes, filler: bytes, expected) -> None:
    """A large one is read by parts, so that no thread waits for it."""
    body = b"{" + filler + b"," + members + b"}"
    if expected is None:
        with pytest.raises(InvalidPayload):
            parse_report(body)
    else:
        found = parse_report(body)
        assert expected == (found.text, found.reason, found.unknown)


@pytest.mark.parametrize(
    "body",
    [b'{"error":"x","score":NaN}', b'\xef\xbb\xbf{"error":"x"}', '{"error":"x"}'.encode("utf-16")],
)
def test_a_small_report_is_read_as_libraries_write_it(body: bytes) -> None:
    """What is no JSON at the letter is no reason to lose why something failed."""
    assert "x" == parse_report(body).text


@pytest.fixture
def readers() -> Iterator[set[str]]:
    """Give the names of the threads in which a report or an adapter's result has been read."""
    names: set[str] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_name in ("parse_report", "decode_result"):
            names.add(threading.current_thread().name.rstrip("0123456789"))

    threading.setprofile(note)
    yield names
    threading.setprofile(None)


@pytest.mark.parametrize(
    ("filler", "threads"),
    [(b"[]", {"intake-disk_", "intake-verify_"}), (FILLED[11:], {"intake-read_"})],
    ids=["small", "large"],
)
def test_of_large_ones_one_is_read_at_a_time(
    tmp_path: Path, readers: set[str], filler: bytes, threads: set[str]
) -> None:
    """Reports, those in archives, adapters' results: all of them in the thread that is for them."""
    report = b'{"evidence":' + filler + b',"error":"no space"}'
    result = b'{"details":' + filler + b',"status":"success"}'

    async def story(here: Scene) -> None:
        await asyncio.gather(
            here.put(E2E, report, REPORT),
            here.put(NODE1, result, replace(JSON, adapter=True)),
            here.put(NODE2, tgz(file(b"error.json", report)), PARTIAL),
        )
        assert "passed" == here.store.entry(NODE1).record.verdict
        assert ["no space"] * 2 == [here.store.entry(key).record.text for key in (E2E, NODE2)]

    play(tmp_path, story)

    assert threads == readers


def test_a42_reports_and_results(tmp_path: Path) -> None:
    """A42: failed; held; then a result replaces it; nothing replaces that."""
    report = b'{"error":"no space","cause":"OutOfDisk","evidence":{"node":"n"}}'

    async def story(here: Scene) -> None:
        assert stored(sha(report)) == await here.put(E2E, report, REPORT)
        record = here.store.entry(E2E).record
        assert ("no space", "OutOfDisk") == (record.text, record.reason)
        assert {"e2e/errors/global/error.json": report} == here.files()
        assert held(sha(report)) == await here.put(E2E, b'{"error":"other"}', REPORT)
        assert stored(sha(b"1")) == await here.put(E2E, b"1", JSON)
        assert State.COMPLETE == here.store.entry(E2E).state
        assert held(sha(b"1")) == await here.put(E2E, report, REPORT)

    done = play(tmp_path, story)

    assert {"e2e/results/global/a.json": b"1"} == done.files()
    assert {"e2e/global/error.json": report} == done.files("superseded")
    assert sorted([sha(report), sha(b"1")]) == done.blobs()


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"not json", 'not an error report: no JSON object with a text "error"'),
        (b"[]", 'not an error report: no JSON object with a text "error"'),
        (b'{"error":null}', 'not an error report: no JSON object with a text "error"'),
        (b"", 'not an error report: no JSON object with a text "error"'),
        (b'{"error":"' + b"x" * 2**20 + b'"}', "an error report larger than 1048576 bytes"),
    ],
)
def test_what_is_no_report(tmp_path: Path, body: bytes, reason: str) -> None:
    """Refused with the reason, and nothing of it is left."""

    async def story(here: Scene) -> None:
        assert refused(reason) == await here.put(E2E, body, REPORT)
        assert here.store.entry(E2E).retrying

    done = play(tmp_path, story)

    assert ({}, [], []) == (done.files(), done.blobs(), done.leftovers())


def test_a_report_with_partial_output(tmp_path: Path) -> None:
    """The output is beside the report."""
    report = b'{"error":"crashed","cause":"Exit1"}'
    body = tgz(file(b"error.json", report), file(b"out/log.txt", b"log"))

    async def story(here: Scene) -> None:
        assert stored(sha(body)) == await here.put(E2E, body, PARTIAL)
        record = here.store.entry(E2E).record
        assert ("crashed", "Exit1", "") == (record.text, record.reason, record.document)

    done = play(tmp_path, story)

    files = {"e2e/errors/global/error.json": report, "e2e/errors/global/out/log.txt": b"log"}
    assert files == done.files()


def test_partial_output_alone(tmp_path: Path) -> None:
    """There is an error.json all the same."""
    body = tgz(file(b"log.txt", b"log"))

    async def story(here: Scene) -> None:
        await here.put(E2E, body, PARTIAL)
        assert Cause.WORKER_ERROR == here.store.entry(E2E).record.cause

    done = play(tmp_path, story)

    text = json.loads(done.files()["e2e/errors/global/error.json"])["error"]
    assert "the worker reported an error without saying which" == text
    assert b"log" == done.files()["e2e/errors/global/log.txt"]


@pytest.mark.parametrize(
    ("member", "reason"),
    [
        (folder(b"error.json"), "error.json is a directory"),
        (file(b"error.json", b"[]"), 'not an error report: no JSON object with a text "error"'),
        (file(b"error.json", b" " * 2**21), "error.json is larger than 1048576 bytes"),
    ],
)
def test_partial_output_with_a_bad_report(tmp_path: Path, member: bytes, reason: str) -> None:
    """Refused, nothing left."""

    async def story(here: Scene) -> None:
        assert refused(reason) == await here.put(E2E, tgz(member), PARTIAL)

    done = play(tmp_path, story)

    assert ({}, [], []) == (done.files(), done.blobs(), done.leftovers())


def test_a_report_that_is_gzip_but_no_archive(tmp_path: Path) -> None:
    """A report is JSON or an archive."""

    async def story(here: Scene) -> None:
        assert refused("not gzip") == await here.put(E2E, b'{"error":"x"}', PARTIAL)

    play(tmp_path, story)


def test_a31_a_late_result(tmp_path: Path) -> None:
    """A31, F9: our error, then the result, then another: late, the error kept, held."""

    async def story(here: Scene) -> None:
        await here.give_up(E2E, "gone quiet", Cause.DEADLINE)
        error = {"error": f"{TIMEOUT}: gone quiet", "cause": "deadline"}
        assert ["e2e/errors/global/error.json"] == list(here.files())
        assert error == json.loads(here.files()["e2e/errors/global/error.json"])
        assert stored(sha(b"1")) == await here.put(E2E, b"1", JSON)
        assert here.store.entry(E2E).late
        assert held(sha(b"1")) == await here.put(E2E, b"2", JSON)

    done = play(tmp_path, story)

    assert {"e2e/results/global/a.json": b"1"} == done.files()
    kept = json.loads(done.files("superseded")["e2e/global/error.json"])
    assert "deadline" == kept["cause"]


def test_all_three_ranks_one_after_the_other(tmp_path: Path) -> None:
    """Never more than one kind under plugins; the newest replaced error is kept."""

    async def story(here: Scene) -> None:
        await here.give_up(E2E, "pod gone")
        await here.put(E2E, SONOBUOY, Meta())
        assert {"e2e/errors/global/error.json": SONOBUOY} == here.files()
        kept = json.loads(here.files("superseded")["e2e/global/error.json"])
        assert "pod gone" == kept["error"]
        await here.put(E2E, b"1", JSON)

    done = play(tmp_path, story)

    assert {"e2e/results/global/a.json": b"1"} == done.files()
    assert {"e2e/global/error.json": SONOBUOY} == done.files("superseded")


def test_a_report_replaced_by_an_archive(tmp_path: Path) -> None:
    """Partial output goes to superseded with its report; then the good archive is in place."""
    partial = tgz(file(b"error.json", SONOBUOY), file(b"part", b"p"))
    good = tgz(file(b"whole", b"w"))

    async def story(here: Scene) -> None:
        await here.put(E2E, partial, PARTIAL)
        await here.put(E2E, good, ARCHIVE)

    done = play(tmp_path, story)

    assert {"e2e/results/global/whole": b"w"} == done.files()
    kept = {"e2e/global/error.json": SONOBUOY, "e2e/global/part": b"p"}
    assert kept == done.files("superseded")


def test_an_error_of_ours_over_a_result_is_ignored(tmp_path: Path) -> None:
    """It changes nothing."""

    async def story(here: Scene) -> None:
        await here.put(E2E, b"1", JSON)
        assert "ignored" == await here.give_up(E2E, "late pod error")

    done = play(tmp_path, story)

    assert {"e2e/results/global/a.json": b"1"} == done.files()


def test_unprintable_words_of_a_worker(tmp_path: Path) -> None:
    """The row holds text that every reader takes; the report itself is kept byte by byte."""
    report = b'{"error":"a\\ud800\\u0000b\\nc","cause":"\\u001b[2J"}'

    async def story(here: Scene) -> None:
        await here.put(E2E, report, REPORT)
        record = here.store.entry(E2E).record
        assert ("a\ufffdb c", "[2J") == (record.text, record.reason)

    assert {"e2e/errors/global/error.json": report} == play(tmp_path, story).files()
