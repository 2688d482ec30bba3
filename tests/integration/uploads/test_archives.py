"""Archives as people make them, and what becomes of the ones we do not take."""

from __future__ import annotations

import gzip
import io
import os
import shutil
import stat
import subprocess
import tarfile
import time
from dataclasses import replace
from pathlib import Path

import pytest

from reporter.aggregator.uploads import Held, Refused, Stored
from reporter.core.run.entry import State
from tests.archives.tars import (
    END,
    GNU,
    file,
    folder,
    gnu_name,
    hard_link,
    header,
    link,
    pax,
    tgz,
)
from tests.integration.uploads.scene import (
    ARCHIVE,
    E2E,
    JSON,
    LIMITS,
    NODE1,
    Scene,
    play,
    sha,
)

GOOD = tgz(file(b"a.txt", b"A"), folder(b"d/"), file(b"d/b.txt", b"B"))
TREE = {"e2e/results/global/a.txt": b"A", "e2e/results/global/d/b.txt": b"B"}


def test_a6_unpacked(tmp_path: Path) -> None:
    """A6: the members, not the archive."""

    async def story(here: Scene) -> None:
        assert Stored(sha(GOOD)) == await here.put(E2E, GOOD, ARCHIVE)
        record = here.store.entry(E2E).record
        assert (True, ()) == (record.unpacked, record.notes)

    done = play(tmp_path, story)

    assert TREE == done.files()
    assert {sha(GOOD)} == done.blobs()


def test_a7_a8_a_bad_archive_then_a_good_one(tmp_path: Path) -> None:
    """A7, A8: refused and retrying; then taken; then held. Only the good data is there."""
    bad = tgz(file(b"x.txt", b"X"), link(b"l", b"."), file(b"l/y", b"Y"))

    async def story(here: Scene) -> None:
        assert Refused("not gzip") == await here.put(E2E, b'{"error":"x"}', ARCHIVE)
        assert isinstance(await here.put(E2E, bad, ARCHIVE), Refused)
        entry = here.store.entry(E2E)
        assert (2, True) == (entry.attempts, entry.retrying)
        assert Stored(sha(GOOD)) == await here.put(E2E, GOOD, ARCHIVE)
        assert not here.store.entry(E2E).retrying
        assert Held(sha(GOOD)) == await here.put(E2E, GOOD, ARCHIVE)

    done = play(tmp_path, story)

    assert TREE == done.files()
    assert [] == done.leftovers()


def test_a39_what_is_no_file_is_noted(tmp_path: Path) -> None:
    """A39, F2: every good member is there and readable, also those after a link."""
    body = tgz(
        file(b"first", b"1"),
        link(b"l", b"../../../etc/passwd"),
        header(b"device", 0, b"3"),
        header(b"block", 0, b"4"),
        header(b"pipe", 0, b"6"),
        hard_link(b"hard", b"first"),
        folder(b"locked", mode=0),
        file(b"locked/inside", b"2", mode=0),
        file(b"last", b"3"),
    )

    async def story(here: Scene) -> None:
        assert Stored(sha(body)) == await here.put(E2E, body, ARCHIVE)
        notes = (
            "l: symbolic link to ../../../etc/passwd, not created",
            "device: character device, not created",
            "block: block device, not created",
            "pipe: FIFO, not created",
            "hard: hard link to first, not created",
        )
        assert notes == here.store.entry(E2E).record.notes

    done = play(tmp_path, story)

    home = done.layout.result(E2E)
    assert {"first", "locked", "last"} == {path.name for path in home.iterdir()}
    assert b"2" == (home / "locked/inside").read_bytes()
    assert 0o700 == stat.S_IMODE((home / "locked").stat().st_mode)
    assert 0o600 == stat.S_IMODE((home / "locked/inside").stat().st_mode)


def test_a40_gzip_that_is_no_archive(tmp_path: Path) -> None:
    """A40: stored as it is under a name that does not claim to be one; else refused."""
    body = gzip.compress(b'{"a":1}')

    async def story(here: Scene) -> None:
        for name in ("", "a.tar.gz", "A.TGZ"):
            meta = replace(ARCHIVE, filename=name)
            assert Refused("no tar in it") == await here.put(E2E, body, meta)
        named = replace(ARCHIVE, filename="a.json.gz")
        assert Refused("the gzip stream is cut off") == await here.put(E2E, body[:-4], named)
        large = gzip.compress(os.urandom(1_000_000))
        assert Refused("the gzip stream is cut off") == await here.put(E2E, large[:-4], named)
        assert Stored(sha(body)) == await here.put(E2E, body, named)
        assert not here.store.entry(E2E).record.unpacked

    done = play(tmp_path, story)

    assert {"e2e/results/global/a.json.gz": body} == done.files()
    assert [] == done.leftovers()


NAMES = {
    "plain.txt": b"p",
    "deep/er/file": b"d" * 1500,
    "n" * 80 + "/" + "o" * 60 + "/" + "m" * 90: b"long",
    "ümlaut ß.txt": b"u",
    "empty": b"",
}


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_archives_of_pythons_tarfile(tmp_path: Path, form: int) -> None:
    """All three forms, with names that need the extensions of each."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", format=form) as archive:
        for name, data in NAMES.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            info.mtime = 1.5
            archive.addfile(info, io.BytesIO(data))

    async def story(here: Scene) -> None:
        assert Stored(sha(buffer.getvalue())) == await here.put(E2E, buffer.getvalue(), ARCHIVE)

    done = play(tmp_path, story)

    assert {f"e2e/results/global/{name}": data for name, data in NAMES.items()} == done.files()


@pytest.mark.skipif(shutil.which("tar") is None, reason="no tar program on this machine")
@pytest.mark.parametrize("form", ["gnu", "oldgnu", "pax", "posix", "ustar", "v7"])
def test_archives_of_the_tar_program(tmp_path: Path, form: str) -> None:
    """What people's own tar writes, in each of its formats."""
    source = tmp_path / "source"
    names = {name: data for name, data in NAMES.items() if form != "v7" or len(name) < 90}
    for name, data in names.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_bytes(data)
    command = ["tar", "-C", str(source), f"--format={form}", "-czf", str(tmp_path / "t.tgz"), "."]
    subprocess.run(command, check=True)
    body = (tmp_path / "t.tgz").read_bytes()

    async def story(here: Scene) -> None:
        assert Stored(sha(body)) == await here.put(E2E, body, ARCHIVE)

    done = play(tmp_path, story)

    assert {f"e2e/results/global/{name}": data for name, data in names.items()} == done.files()


@pytest.mark.parametrize(
    ("body", "files"),
    [
        pytest.param(tgz(), {}, id="empty"),
        pytest.param(tgz(end=b""), {}, id="nothing-inflated"),
        pytest.param(tgz(file(b"a", b"1"), end=b""), {"a": b"1"}, id="no-end-marker"),
        pytest.param(gzip.compress(header(b"a", 1) + b"1"), {"a": b"1"}, id="no-padding"),
        pytest.param(tgz(file(b"a", b"1"), END, file(b"b", b"2")), {"a": b"1"}, id="after-the-end"),
        pytest.param(tgz(file(b"a", b"1"), end=bytes(512)), {"a": b"1"}, id="half-an-end"),
        pytest.param(tgz(file(b"a", b"1")) + b"junk", {"a": b"1"}, id="after-the-gzip"),
        pytest.param(
            gzip.compress(file(b"a", b"1")[:700])
            + gzip.compress(file(b"a", b"1")[700:] + file(b"b", b"2") + END),
            {"a": b"1", "b": b"2"},
            id="gzip-of-two-members",
        ),
        pytest.param(
            tgz(file(b"a", b"1"), file(b"a", b"22"), file(b"a", b"3")), {"a": b"3"}, id="last-wins"
        ),
        pytest.param(
            tgz(pax(path=b"p" * 200, size=b"2"), file(b"x", b"22", size_field=b"0000009")),
            {"p" * 200: b"22"},
            id="pax-size",
        ),
        pytest.param(
            tgz(pax(comment=b"c", path=b""), file(b"x", b"1")), {"x": b"1"}, id="pax-takes-back"
        ),
        pytest.param(
            tgz(pax(b"g", comment=b"0123"), file(b"x", b"1")), {"x": b"1"}, id="global-comment"
        ),
        pytest.param(
            tgz(gnu_name(b"g" * 250), file(b"x", b"1", magic=GNU)), {"g" * 250: b"1"}, id="gnu-name"
        ),
        pytest.param(
            tgz(gnu_name(b"t" * 300, b"K"), link(b"l", b"t"), file(b"x", b"1")),
            {"x": b"1"},
            id="gnu-target",
        ),
        pytest.param(tgz(file(b"a", b"1", prefix=b"pre/fix")), {"pre/fix/a": b"1"}, id="prefix"),
        pytest.param(
            tgz(file(b"a", b"1", magic=GNU, prefix=b"12345")), {"a": b"1"}, id="gnu-has-no-prefix"
        ),
        pytest.param(tgz(file(b"a", b"1", magic=bytes(8))), {"a": b"1"}, id="v7"),
        pytest.param(tgz(header(b"d/", 0, b"\0"), file(b"d/a")), {"d/a": b""}, id="v7-directory"),
        pytest.param(tgz(header(b"a", 0, b"\0")), {"a": b""}, id="v7-file"),
        pytest.param(tgz(file(b"a", b"1", kind=b"7")), {"a": b"1"}, id="contiguous"),
        pytest.param(
            tgz(file(b"V", b"vv", kind=b"V"), file(b"a", b"1")), {"a": b"1"}, id="volume-label"
        ),
        pytest.param(
            tgz(file(b"a", b"1", size_field=b"\x80" + bytes(10) + b"\x01")),
            {"a": b"1"},
            id="binary-size",
        ),
        pytest.param(
            tgz(header(b"h", 512, b"1", target=b"a"), file(b"a", b"1")),
            {"a": b"1"},
            id="link-with-a-size",
        ),
        pytest.param(tgz(file(b"./a//./b", b"1")), {"a/b": b"1"}, id="normalised"),
        pytest.param(tgz(folder(b"./"), file(b"a", b"1")), {"a": b"1"}, id="root"),
        pytest.param(tgz(folder(b"d"), folder(b"d/"), file(b"d/a")), {"d/a": b""}, id="twice"),
        pytest.param(tgz(file(b"d/e/f", b"1")), {"d/e/f": b"1"}, id="no-directory-members"),
    ],
)
def test_unusual_but_sound(tmp_path: Path, body: bytes, files: dict[str, bytes]) -> None:
    """What some writer does, and no reader should stumble over."""

    async def story(here: Scene) -> None:
        assert Stored(sha(body)) == await here.put(E2E, body, ARCHIVE)

    done = play(tmp_path, story)

    assert {f"e2e/results/global/{name}": data for name, data in files.items()} == done.files()
    assert [] == done.leftovers()


def test_signed_checksums(tmp_path: Path) -> None:
    """Old writers summed up signed bytes."""
    head = header("ü".encode(), 1)
    blank = head[:148] + b" " * 8 + head[156:]
    signed = sum(byte - 256 if byte > 127 else byte for byte in blank)
    body = tgz(head[:148] + b"%06o\0 " % signed + head[156:] + b"1".ljust(512, b"\0"))

    async def story(here: Scene) -> None:
        assert Stored(sha(body)) == await here.put(E2E, body, ARCHIVE)

    assert {"e2e/results/global/ü": b"1"} == play(tmp_path, story).files()


def test_a_gzip_member_that_ends_where_a_read_does(tmp_path: Path) -> None:
    """Of the next member only the first byte has been read by then."""
    tar = file(b"a", os.urandom(100_000)) + END
    # Not compressed, so that its length can be chosen: 64 KiB less one byte are read with it.
    cut = next(n for n in range(65_400, 65_536) if 65_535 == len(gzip.compress(tar[:n], 0)))
    body = gzip.compress(tar[:cut], 0) + gzip.compress(tar[cut:], 0)

    async def story(here: Scene) -> None:
        assert Stored(sha(body)) == await here.put(E2E, body, ARCHIVE)

    assert {"e2e/results/global/a": tar[512:100_512]} == play(tmp_path, story).files()


CPU = 2.0  # seconds


def _cpu_refused(tmp_path: Path, body: bytes, reason: str) -> float:
    seconds = [0.0]

    async def story(here: Scene) -> None:
        began = time.process_time()
        assert Refused(reason) == await here.put(E2E, body, ARCHIVE)
        seconds[0] = time.process_time() - began
        assert here.store.entry(E2E).retrying

    done = play(tmp_path, story)

    assert ({}, set(), []) == (done.files(), done.blobs(), done.leftovers())
    assert {"e2e/global/body", "e2e/global/why.json"} == set(done.files("quarantine"))
    return seconds[0]


def _bomb(size: int) -> bytes:
    """A gzip'd gigabyte of zeros in a megabyte, without the seconds of packing them."""
    piece = gzip.compress(bytes(64 * 1024 * 1024), mtime=0)
    return b"".join([piece] * (size // (64 * 1024 * 1024)))


def _deep(name: bytes) -> bytes:
    """A member whose name alone makes two thousand directories."""
    return gnu_name(name + b"/d" * 2000) + file(b"f")


BOMBS = {
    "one-gigabyte-file": (gzip.compress(header(b"big", 2**30)) + _bomb(2**30), 0),
    "one-gigabyte-of-end-markers": (_bomb(2**30), 64 * 2**20),
    "two-files-of-half-a-gigabyte": (
        gzip.compress(file(b"small", b"1") + header(b"big", 2**29)) + _bomb(2**29),
        0,
    ),
    "100000-members": (
        tgz(*(file(b"m%d" % n) for n in range(100_000))),
        "more than 20000 members",
    ),
    "40000-directories-in-20-members": (
        tgz(*(_deep(b"%d" % n) for n in range(20))),
        "too many directories",
    ),
    "70-KiB-pax-header": (
        tgz(pax(comment=b"c" * 70 * 1024), file(b"a")),
        "an extended header is too large",
    ),
    "endless-extended-headers": (
        tgz(*(pax(comment=b"c") for _ in range(10_000))),
        "an extended header is too large",
    ),
    "sparse-4-GiB": (
        tgz(header(b"s", 0, b"S", magic=GNU)),
        "sparse members are not supported",
    ),
    "sparse-by-pax": (
        tgz(pax(GNU__sparse__realsize=b"4294967296"), file(b"s")),
        "sparse members are not supported",
    ),
    "64-KiB-name": (
        tgz(gnu_name(b"n" * 64 * 1024), file(b"a")),
        "an extended header is too large",
    ),
    "60-KiB-name": (
        tgz(gnu_name(b"n" * 60 * 1024), file(b"a")),
        "a member's name is too long",
    ),
    "file-over-its-cap": (
        gzip.compress(header(b"big", 2**30 + 1)),
        "a member is larger than 1073741824 bytes",
    ),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a38_bombs(tmp_path: Path, name: str) -> None:
    """A38: refused with little work, and nothing of it outside the quarantine."""
    body, reason = BOMBS[name]
    if isinstance(reason, int):
        # The content that is announced; or, with none announced, what the stream inflates to.
        reason = f"unpacks to more than {max(64 * 2**20, 200 * len(body)) + reason} bytes"
    assert CPU > _cpu_refused(tmp_path, body, reason)


def test_unpacking_that_takes_too_long(tmp_path: Path) -> None:
    """It ends at its deadline."""
    ticks = iter(range(0, 10**6, 25))

    async def story(here: Scene) -> None:
        refused = Refused("unpacking takes too long")
        assert refused == await here.put(E2E, tgz(file(b"a", os.urandom(2**20))), ARCHIVE)

    play(tmp_path, story, clock=lambda: float(next(ticks)))


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        ({"archive_members": 2}, "more than 2 members"),
        ({"archive_file_bytes": 9}, "a member is larger than 9 bytes"),
        ({"archive_bytes": 29}, "unpacks to more than 29 bytes"),
        ({"archive_path_bytes": 1}, "a member's name is too long"),
        ({"archive_members": 3, "archive_file_bytes": 10, "archive_bytes": 30}, None),
    ],
)
def test_caps_to_the_byte(tmp_path: Path, limits: dict[str, int], reason: str | None) -> None:
    """Exactly at a cap it is taken, one beyond it is not."""
    body = tgz(*(file(b"f%d" % n, b"0123456789") for n in range(3)))

    async def story(here: Scene) -> None:
        expected = Stored(sha(body)) if reason is None else Refused(reason)
        assert expected == await here.put(E2E, body, ARCHIVE)

    play(tmp_path, story, limits=replace(LIMITS, **limits))


def test_very_many_notes_are_cut(tmp_path: Path) -> None:
    """A row stays small: the first hundred, and how many more."""
    body = tgz(*(link(b"l%d" % n, b"x" * 90) for n in range(250)))

    async def story(here: Scene) -> None:
        await here.put(E2E, body, ARCHIVE)
        notes = here.store.entry(E2E).record.notes
        assert (101, "and 150 more") == (len(notes), notes[-1])

    play(tmp_path, story)


def test_a_deep_tree_can_be_removed_again(tmp_path: Path) -> None:
    """Deeper than any recursion and longer than any path may be, and still not in the way."""
    parts = b"/".join([b"d" * 200] * 20), b"/".join([b"d"] * 2000)
    body = tgz(*(part for name in parts for part in (gnu_name(name + b"/f"), file(b"f", b"1"))))

    async def story(here: Scene) -> None:
        assert Stored(sha(body)) == await here.put(E2E, body, ARCHIVE)
        home = here.layout.result(E2E)
        assert sorted(["d" * 200, "d"]) == sorted(path.name for path in home.iterdir())
        await here.intake.clear()
        assert [] == list(here.layout.plugins.iterdir())

    assert [] == play(tmp_path, story).leftovers()


def test_a_worker_of_another_key_is_not_disturbed(tmp_path: Path) -> None:
    """A bad archive of one key leaves the result of another alone."""

    async def story(here: Scene) -> None:
        await here.put(NODE1, b"1", JSON)
        await here.put(E2E, GOOD[:-20], ARCHIVE)
        assert State.RUNNING == here.store.entry(E2E).state

    assert {"sysd/results/node1/a.json": b"1"} == play(tmp_path, story).files()
