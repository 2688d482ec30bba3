"""Results as they arrive: what is stored where, who wins, what failed tries leave."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from reporter.aggregator.api.headers import filename_of
from reporter.run.entry import State
from reporter.run.state import Phase
from reporter.run.upload import Meta, UploadEnded, UploadOutcome
from tests.archives.tars import file, tgz
from tests.integration.aggregator.intake.scene import (
    ARCHIVE,
    CLOSED,
    CUT,
    E2E,
    JSON,
    NODE1,
    NODE2,
    NOW,
    STALLED,
    Scene,
    held,
    pieces,
    play,
    refused,
    sha,
    stored,
    too_large,
)


def test_a1_a_body_without_any_header(tmp_path: Path) -> None:
    """A1: stored as `result`, bytes exact, entry complete."""

    async def story(here: Scene) -> None:
        assert stored(sha(b"foo")) == await here.put(NODE1, b"foo")
        assert State.COMPLETE == here.store.entry(NODE1).state

    done = play(tmp_path, story)

    assert {"sysd/results/node1/result": b"foo"} == done.files()
    assert [sha(b"foo")] == done.blobs()
    assert [] == done.leftovers()


ADAPTER = replace(JSON, adapter=True)
NOT_PARSED = "Failed to parse adapter result: "


@pytest.mark.parametrize(
    ("body", "verdict", "reason", "message"),
    [
        pytest.param(
            b'{"status":"success","reason":"AllGood","message":"fine"}',
            *("passed", "AllGood", "fine"),
            id="success",
        ),
        pytest.param(
            b'{"status":"failure","reason":"DiskSlow","message":"a\\nb","details":{"ms":80}}',
            *("failed", "DiskSlow", "a b"),
            id="failure",
        ),
        pytest.param(
            b'{"status":"failure"}',
            *("failed", "NoReasonProvided", "No message provided"),
            id="nothing but the status",
        ),
        pytest.param(
            b'{"status":"Success"}',
            *("unknown", "InvalidResultFormat"),
            NOT_PARSED + "status: must be either 'success' or 'failure'",
            id="another word",
        ),
        pytest.param(
            b"",
            *("unknown", "InvalidResultFormat"),
            NOT_PARSED + "line 1, column 1: the document is empty",
            id="empty",
        ),
        pytest.param(
            b'{"status":"failure"}' + b" " * 1_048_576,
            *("unknown", "InvalidResultFormat"),
            NOT_PARSED + "larger than 1048576 bytes",
            id="larger than a result may be",
        ),
    ],
)
def test_an_adapters_result_is_understood(
    tmp_path: Path, body: bytes, verdict: str, reason: str, message: str
) -> None:
    """Stored as it is whatever it says; what is no such result is no pass."""

    async def story(here: Scene) -> None:
        assert stored(sha(body)) == await here.put(E2E, body, ADAPTER)
        entry = here.store.entry(E2E)
        assert State.COMPLETE == entry.state
        record = entry.record
        assert (verdict, reason, message) == (record.verdict, record.reason, record.message)

    assert {"e2e/results/global/a.json": body} == play(tmp_path, story).files()


def test_an_archive_is_no_adapters_result(tmp_path: Path) -> None:
    """It is unpacked, and nobody takes it for a pass."""

    async def story(here: Scene) -> None:
        await here.put(E2E, tgz(file(b"a", b"x")), replace(ARCHIVE, adapter=True))
        record = here.store.entry(E2E).record
        assert ("unknown", NOT_PARSED + "an archive") == (record.verdict, record.message)

    assert {"e2e/results/global/a": b"x"} == play(tmp_path, story).files()


def test_a_result_that_nobody_announced_is_a_file_that_came(tmp_path: Path) -> None:
    """Whatever it looks like: a worker of Sonobuoy may send any JSON."""

    async def story(here: Scene) -> None:
        await here.put(E2E, b'{"status":"failure"}', JSON)
        record = here.store.entry(E2E).record
        assert ("passed", "", "", {"passed": 1}) == (
            record.verdict,
            record.reason,
            record.message,
            record.counts,
        )

    play(tmp_path, story)


def test_a2_a_second_body_changes_nothing(tmp_path: Path) -> None:
    """A2: held, with the digest of the first."""

    async def story(here: Scene) -> None:
        await here.put(NODE1, b"foo")
        assert held(sha(b"foo")) == await here.put(NODE1, b"bar")

    done = play(tmp_path, story)

    assert {"sysd/results/node1/result": b"foo"} == done.files()
    assert [sha(b"foo")] == done.blobs()
    assert [] == done.leftovers()


@pytest.mark.parametrize(
    ("meta", "name"),
    [
        pytest.param(JSON, "a.json", id="A4"),
        pytest.param(Meta(content_type="application/x-gzip"), "result", id="A9-x-gzip"),
        pytest.param(Meta(content_type="application/gzip; x=y"), "result", id="A9-parameter"),
        pytest.param(Meta(filename="r.tar.gz", disposition=True), "r.tar.gz", id="A9-by-name"),
    ],
)
def test_an_opaque_file_keeps_its_name(tmp_path: Path, meta: Meta, name: str) -> None:
    """A4, A9: only the exact type means an archive."""

    async def story(here: Scene) -> None:
        await here.put(E2E, b'{"a":1}', meta)

    assert {f"e2e/results/global/{name}": b'{"a":1}'} == play(tmp_path, story).files()


@pytest.mark.parametrize(
    ("header", "name"),
    [
        pytest.param("attachment;filename=a.json", "a.json", id="A4"),
        pytest.param('attachment; filename="../../../../x"', "x", id="A12"),
        pytest.param("attachment; filename=a b.txt", "a b.txt", id="A13-spaces"),
        pytest.param("attachment; filename=a b.txt; size=3", "a b.txt", id="up-to-the-semicolon"),
        pytest.param(None, "", id="A13-missing"),
        pytest.param("attachment", "", id="A13-no-name"),
        pytest.param("attachment; filename=", "", id="empty"),
        pytest.param("filename=a.json", "", id="no-type"),
        pytest.param('attachment; filename=""', "", id="empty-quoted"),
        pytest.param('attachment; filename="a;b.txt"', "a;b.txt", id="quoted-semicolon"),
        pytest.param(r'attachment; filename="a\"b.txt"', 'a"b.txt', id="escaped-quote"),
        pytest.param(r'attachment; filename="C:\dir\x.txt"', "x.txt", id="backslashes"),
        pytest.param("attachment; filename=..", "", id="dots"),
        pytest.param("attachment; filename=.", "", id="dot"),
        pytest.param("attachment; filename=a/", "", id="ends-with-slash"),
        pytest.param("attachment; filename=\x01a\x7f\x85.txt", "a.txt", id="control"),
        pytest.param("attachment; FileName=A.json", "A.json", id="letter-case"),
        pytest.param("attachment; filename=a; filename=b", "a", id="twice"),
        pytest.param("attachment; filename*=utf-8''%c3%bc.txt; filename=u", "ü.txt", id="5987"),
        pytest.param("attachment; filename=u; filename*=UTF-8'de'a%20b", "a b", id="5987-second"),
        pytest.param("attachment; filename*=iso-8859-1''%fc", "ü", id="5987-latin"),
        pytest.param("attachment; filename*=utf-8''%ff; filename=u", "u", id="5987-bad-bytes"),
        pytest.param("attachment; filename*=koi8-r''x; filename=u", "u", id="5987-charset"),
        pytest.param("attachment; filename*=utf-8''..%2f..%2fx", "x", id="5987-slash"),
        pytest.param("attachment; filename*=utf-8''a%00b", "ab", id="5987-nul"),
        pytest.param("attachment; filename=\udcff.txt", "?.txt", id="no-utf-8"),
        pytest.param(f"attachment; filename={'ü' * 200}", "ü" * 127, id="cut-at-a-character"),
        pytest.param(f"a; filename=a; x={'y' * 4_079}", "a", id="4-kib"),
        pytest.param(f"a; filename=a; x={'y' * 4_080}", "", id="longer-than-4-kib"),
    ],
)
def test_file_names(header: str | None, name: str) -> None:
    """The base name, made fit for a file; empty where there is none."""
    assert name == filename_of(header)


def test_a12_a_name_cannot_lead_out(tmp_path: Path) -> None:
    """A12: what is left of it is inside."""
    meta = replace(JSON, filename=filename_of('attachment; filename="../../../../x"'))

    async def story(here: Scene) -> None:
        await here.put(E2E, b"1", meta)

    assert {"e2e/results/global/x": b"1"} == play(tmp_path, story).files()


@pytest.mark.parametrize("chunks", [(b"ab", b"", b"c"), (b"",), ()])
def test_a16_bodies_in_chunks(tmp_path: Path, chunks: tuple[bytes, ...]) -> None:
    """A16: exact bytes; an empty body is an empty file."""
    body = b"".join(chunks)

    async def story(here: Scene) -> None:
        verdict = await here.send(NODE1, Meta(), pieces(*chunks))
        assert stored(sha(body)) == verdict

    assert {"sysd/results/node1/result": body} == play(tmp_path, story).files()


@pytest.mark.parametrize("size", [1, 5000])
def test_many_small_and_large_pieces(tmp_path: Path, size: int) -> None:
    """More pieces than one call of the kernel takes, and more bytes than are kept in memory."""
    body = os.urandom(size * 700)
    chunks = [body[at : at + size] for at in range(0, len(body), size)]

    async def story(here: Scene) -> None:
        assert stored(sha(body)) == await here.put(NODE1, b"", Meta(), *chunks)

    assert {"sysd/results/node1/result": body} == play(tmp_path, story).files()


def test_a18_two_at_once(tmp_path: Path) -> None:
    """A18: one is stored, one held, one copy."""

    async def story(here: Scene) -> None:
        verdicts = await asyncio.gather(here.put(NODE1, b"foo"), here.put(NODE1, b"foo"))
        assert {stored(sha(b"foo")), held(sha(b"foo"))} == set(verdicts)

    done = play(tmp_path, story)

    assert {"sysd/results/node1/result": b"foo"} == done.files()
    assert [sha(b"foo")] == done.blobs()


def test_a47_fifty_at_once(tmp_path: Path) -> None:
    """A47: one stored, 49 held, nothing left of them."""
    body = os.urandom(100_000)

    async def story(here: Scene) -> None:
        verdicts = await asyncio.gather(*(here.put(E2E, body, JSON) for _ in range(50)))
        assert [held(sha(body))] * 49 == sorted(
            (v for v in verdicts if v.outcome is UploadOutcome.DUPLICATE), key=repr
        )
        assert 1 == verdicts.count(stored(sha(body)))

    done = play(tmp_path, story)

    assert {"e2e/results/global/a.json": body} == done.files()
    assert [] == done.leftovers()


def test_rivals_with_other_bytes_leave_no_blob(tmp_path: Path) -> None:
    """What lost the race is removed, what won is kept."""

    async def story(here: Scene) -> None:
        verdicts = await asyncio.gather(*(here.put(E2E, b"%d" % n, JSON) for n in range(20)))
        (won,) = (v.digest for v in verdicts if v.outcome is UploadOutcome.ACCEPTED)
        assert [won] == here.blobs()

    assert [] == play(tmp_path, story).leftovers()


def test_the_same_bytes_for_two_keys(tmp_path: Path) -> None:
    """Each has a blob of its own, and a rival of one of them takes nothing from the other."""

    async def story(here: Scene) -> None:
        await here.put(NODE1, b"same", JSON)
        await asyncio.gather(here.put(NODE2, b"same", JSON), here.put(NODE2, b"same", JSON))
        await here.put(E2E, b"other", JSON)
        assert held(sha(b"other")) == await here.put(E2E, b"same", JSON)

    done = play(tmp_path, story)

    assert sorted([sha(b"same"), sha(b"same"), sha(b"other")]) == done.blobs()
    assert b"same" == done.files()["sysd/results/node2/a.json"]


def test_a44_declared_digests(tmp_path: Path) -> None:
    """A44: a wrong one is refused, with the entry retrying; the retry is taken."""

    async def story(here: Scene) -> None:
        right = replace(JSON, digest=sha(b"1"))
        assert stored(sha(b"1")) == await here.put(NODE1, b"1", right)
        verdict = await here.put(E2E, b"2", right)
        assert refused("the body does not match its Content-Digest") == verdict
        assert here.store.entry(E2E).retrying
        assert stored(sha(b"1")) == await here.put(E2E, b"1", right)

    done = play(tmp_path, story)

    assert {"e2e/results/global/a.json", "sysd/results/node1/a.json"} == set(done.files())


@pytest.mark.parametrize("length", [2, 4])
def test_a_body_that_is_not_as_long_as_it_said(tmp_path: Path, length: int) -> None:
    """Not taken for whole."""

    async def story(here: Scene) -> None:
        assert CUT == await here.put(E2E, b"abc", replace(JSON, length=length))

    assert {} == play(tmp_path, story).files()


def test_a36_over_the_cap(tmp_path: Path) -> None:
    """A36: an endless body ends at the cap; the entry is retrying with the reason."""
    limits = {"max_result_bytes": 1_000_000}

    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield bytes(10_000)

    async def story(here: Scene) -> None:
        assert too_large(1_000_000) == await here.send(E2E, JSON, endless())
        window = here.store.entry(E2E).window
        assert "exceeds 1000000 bytes" == window.text
        exact = bytes(1_000_000)
        assert stored(sha(exact)) == await here.put(NODE1, exact, JSON)

    done = play(tmp_path, story, limits=limits)

    assert [] == done.leftovers()
    assert [sha(bytes(1_000_000))] == done.blobs()


@pytest.mark.parametrize(
    ("error", "verdict", "text"),
    [
        (UploadEnded(UploadOutcome.STALLED, "upload stalled"), STALLED, "upload stalled"),
        (UploadEnded(UploadOutcome.CUT, "upload cut off"), CUT, "upload cut off"),
    ],
)
@pytest.mark.parametrize("sent", [0, 10, 2_000_000])
def test_a_body_that_stops(
    tmp_path: Path, error: Exception, verdict: object, text: str, sent: int
) -> None:
    """Wherever it stops: a failed try at the time it stopped, and nothing of it is left."""

    async def stopping() -> AsyncIterator[bytes]:
        yield bytes(sent // 2)
        yield bytes(sent // 2)
        raise error

    async def story(here: Scene) -> None:
        assert verdict == await here.send(E2E, JSON, stopping())
        entry = here.store.entry(E2E)
        assert (1, text, NOW) == (entry.attempts, entry.window.text, entry.window.first)

    done = play(tmp_path, story)

    assert ([], []) == (done.leftovers(), done.blobs())


def test_cancelled_while_the_body_comes(tmp_path: Path) -> None:
    """Nothing of it is left, and the key is free."""

    async def story(here: Scene) -> None:
        begun = asyncio.Event()

        async def slow() -> AsyncIterator[bytes]:
            for _ in range(3):
                yield bytes(400_000)
            begun.set()
            await asyncio.Event().wait()

        task = asyncio.create_task(here.send(E2E, JSON, slow()))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert [] == here.leftovers()
        assert stored(sha(b"x")) == await here.put(E2E, b"x", JSON)

    play(tmp_path, story)


def test_cancelled_after_the_body_came(tmp_path: Path) -> None:
    """It is stored all the same: the answer was lost, not the result."""

    async def story(here: Scene) -> None:
        task: asyncio.Task[object]

        async def last() -> AsyncIterator[bytes]:
            yield b"x"
            asyncio.get_running_loop().call_later(0, task.cancel)

        task = asyncio.create_task(here.send(E2E, JSON, last()))
        with pytest.raises(asyncio.CancelledError):
            await task

    done = play(tmp_path, story)

    assert {"e2e/results/global/a.json": b"x"} == done.files()


def test_everything_is_ours_only(tmp_path: Path) -> None:
    """Directories 0700, files 0600, whatever the umask is."""

    async def story(here: Scene) -> None:
        await here.put(E2E, b"x", JSON)
        await here.put(NODE1, b"no archive", Meta(content_type="application/gzip"))

    old = os.umask(0)
    try:
        done = play(tmp_path, story)
    finally:
        os.umask(old)

    paths = [
        path for top in (done.layout.state, done.layout.output) for path in (top, *top.rglob("*"))
    ]
    assert {0o700} == {stat.S_IMODE(p.stat().st_mode) for p in paths if p.is_dir()}
    assert {0o600} == {stat.S_IMODE(p.stat().st_mode) for p in paths if p.is_file()}


def test_a_closed_run_takes_nothing(tmp_path: Path) -> None:
    """A body that arrives while the run closes is not kept."""

    async def story(here: Scene) -> None:
        for key in (NODE1, NODE2):
            await here.put(key, b"x", JSON)
        await here.give_up(E2E, "gone")

        async def late() -> AsyncIterator[bytes]:
            yield b"late"
            await here.store.advance_run(Phase.POST_PROCESSING)

        verdict = await here.send(E2E, JSON, late())
        assert CLOSED == verdict

    done = play(tmp_path, story)

    assert [sha(b"x")] * 2 == done.blobs()
    assert [] == done.leftovers()


def test_room_above_the_reserve(tmp_path: Path) -> None:
    """A length is only accepted while the reserve stays free."""

    async def story(here: Scene) -> None:
        free = here.layout.free()
        assert here.intake.free_for(0)
        assert not here.intake.free_for(2 * free)

    play(tmp_path, story)


def test_no_directory_no_room(tmp_path: Path) -> None:
    """A disk that is gone has no room."""

    async def story(here: Scene) -> None:
        here.layout.state = tmp_path / "gone"
        assert not here.intake.free_for(0)
        here.layout.state = tmp_path / "state"

    play(tmp_path, story)
