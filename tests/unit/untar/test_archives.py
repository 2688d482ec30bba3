"""Archives as people and their programs make them, and what is too large to be taken."""

from __future__ import annotations

import gzip
import io
import os
import shutil
import subprocess
import tarfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from reporter.untar import Archive, BadArchive, Caps, Kind, NotTar
from tests.archives.reading import checked, extracted
from tests.archives.tars import (
    END,
    GNU,
    file,
    folder,
    gnu_name,
    header,
    link,
    pax,
    tgz,
)


def files(body: bytes, target: Path) -> dict[str, bytes]:
    """The files of an archive that is accepted."""
    checked(body)
    found = extracted(body, target)
    return {os.fsdecode(path): data for path, data in found.items() if data is not None}


def refusal(body: bytes, caps: Caps | None = None) -> str:
    """Why an archive is not accepted."""
    with pytest.raises(BadArchive) as refused:
        checked(body, caps)
    return str(refused.value)


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

    assert NAMES == files(buffer.getvalue(), tmp_path / "new")


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

    assert names == files((tmp_path / "t.tgz").read_bytes(), tmp_path / "new")


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
            tgz(pax(path=b"p" * 200, size=b"2"), file(b"x", b"22", size_field=b"0000007")),
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
        pytest.param(
            tgz(
                *(file(b"%d" % at, numbers={at: b"1.5e9"}) for at in (100, 108, 116, 136, 329, 337))
            ),
            dict.fromkeys(("100", "108", "116", "136", "329", "337"), b""),
            id="numbers-that-are-not-read",
        ),
        pytest.param(tgz(file(b"./a//./b", b"1")), {"a/b": b"1"}, id="normalised"),
        pytest.param(tgz(folder(b"./"), file(b"a", b"1")), {"a": b"1"}, id="root"),
        pytest.param(tgz(folder(b"d"), folder(b"d/"), file(b"d/a")), {"d/a": b""}, id="twice"),
        pytest.param(tgz(file(b"d/e/f", b"1")), {"d/e/f": b"1"}, id="no-directory-members"),
    ],
)
def test_unusual_but_sound(tmp_path: Path, body: bytes, files: dict[str, bytes]) -> None:
    """What some writer does, and no reader should stumble over."""
    checked(body)
    found = extracted(body, tmp_path / "new")

    assert files == {os.fsdecode(path): data for path, data in found.items() if data is not None}


def test_prefix_of_the_star_program(tmp_path: Path) -> None:
    """It keeps times behind a shorter prefix."""
    head = header(b"a", 1, prefix=b"pre".ljust(131, b"\0") + b"00000000000")
    head = head[:508] + b"tar\0"
    blank = head[:148] + b" " * 8 + head[156:]
    body = tgz(head[:148] + b"%06o\0 " % sum(blank) + head[156:] + b"1".ljust(512, b"\0"))

    assert {"pre/a": b"1"} == files(body, tmp_path / "new")


def test_signed_checksums(tmp_path: Path) -> None:
    """Old writers summed up signed bytes."""
    head = header("ü".encode(), 1)
    blank = head[:148] + b" " * 8 + head[156:]
    signed = sum(byte - 256 if byte > 127 else byte for byte in blank)
    body = tgz(head[:148] + b"%06o\0 " % signed + head[156:] + b"1".ljust(512, b"\0"))

    assert {"ü": b"1"} == files(body, tmp_path / "new")


def test_a_gzip_member_that_ends_where_a_read_does(tmp_path: Path) -> None:
    """Of the next member only the first byte has been read by then."""
    tar = file(b"a", os.urandom(100_000)) + END
    # Not compressed, so that its length can be chosen: 64 KiB less one byte are read with it.
    cut = next(n for n in range(65_400, 65_536) if 65_535 == len(gzip.compress(tar[:n], 0)))
    body = gzip.compress(tar[:cut], 0) + gzip.compress(tar[cut:], 0)

    assert {"a": tar[512:100_512]} == files(body, tmp_path / "new")


class Dripping(io.BytesIO):
    """A source that gives one byte at a time."""

    def read(self, size: int | None = -1) -> bytes:
        return super().read(min(size or 0, 1))


def test_a_source_that_gives_little_at_a_time() -> None:
    """Two gzip members, the second header torn apart."""
    body = gzip.compress(file(b"a", b"1")) + gzip.compress(file(b"b", b"2") + END)
    archive = Archive(Dripping(body), len(body), Caps())

    assert [(b"a",), (b"b",)] == [member.path for member in archive]


def test_members_one_after_the_other() -> None:
    """What is not read of one is passed over; a file that comes again says so."""
    parts = (folder(b"d"), file(b"a", b"1" * 600), link(b"l", b"t"), file(b"a", b"22"))
    body = tgz(*parts, header(b"p", 0, b"6"), file(b"odd", b"x", kind=b"Z"))
    archive = Archive(io.BytesIO(body), len(body), Caps())
    found = [
        (member.kind, member.path, member.again, b"".join(archive.content()))
        for member in archive
        if member.size != 600
    ]

    assert [
        (Kind.DIRECTORY, (b"d",), False, b""),
        (Kind.LINK, (b"l",), False, b""),
        (Kind.FILE, (b"a",), True, b"22"),
        (Kind.OTHER, (b"p",), False, b""),
        (Kind.OTHER, (b"odd",), False, b"x"),
    ] == found
    notes = (
        "l: symbolic link to t, not created",
        "p: FIFO, not created",
        "odd: member of type Z, not created",
    )
    assert notes == archive.notes


def test_a40_gzip_that_is_no_archive() -> None:
    """A40: told from an archive that is damaged, also where no tar would be found in it."""
    body = gzip.compress(b'{"a":1}')
    with pytest.raises(NotTar, match="not a tar archive"):
        checked(body)
    assert "the gzip data is cut off" == refusal(body[:-4])
    assert "the gzip data is cut off" == refusal(gzip.compress(os.urandom(1_000_000))[:-4])


def test_a_header_and_then_none() -> None:
    """A cut archive is damaged, and not a file that is no archive."""
    assert "a tar header is damaged" == refusal(tgz(pax(path=b"a"), b"x" * 2048, end=b""))


CPU = 2.0  # seconds


def _bomb(size: int) -> bytes:
    """A gzip'd gigabyte of zeros in a megabyte, without the seconds of packing them."""
    piece = gzip.compress(bytes(16 * 1024 * 1024), mtime=0)
    return piece * (size // (16 * 1024 * 1024))


def _deep(name: bytes) -> bytes:
    """A member whose name alone makes two thousand directories."""
    return gnu_name(name + b"/d" * 2000) + file(b"f")


# Made where they are tried: every worker of a run imports this module.
BOMBS: dict[str, tuple[Callable[[], bytes], int | str]] = {
    "one-gigabyte-file": (lambda: gzip.compress(header(b"big", 2**30)) + _bomb(2**30), 0),
    "one-gigabyte-of-end-markers": (lambda: _bomb(2**30), 64 * 2**20),
    "two-files-of-half-a-gigabyte": (
        lambda: gzip.compress(file(b"small", b"1") + header(b"big", 2**29)) + _bomb(2**29),
        0,
    ),
    "30000-members": (
        lambda: tgz(*(file(b"m%d" % n) for n in range(30_000))),
        "more than 20000 members",
    ),
    "40000-directories-in-20-members": (
        lambda: tgz(*(_deep(b"%d" % n) for n in range(20))),
        "more than 20000 directories",
    ),
    "70-KiB-pax-header": (
        lambda: tgz(pax(comment=b"c" * 70 * 1024), file(b"a")),
        "a tar header is too large",
    ),
    "endless-extended-headers": (
        lambda: tgz(pax(comment=b"c") * 10_000),
        "a tar header is too large",
    ),
    "sparse-4-GiB": (
        lambda: tgz(header(b"s", 0, b"S", magic=GNU)),
        "sparse files are not supported",
    ),
    "sparse-by-pax": (
        lambda: tgz(pax(GNU__sparse__realsize=b"4294967296"), file(b"s")),
        "sparse files are not supported",
    ),
    "64-KiB-name": (
        lambda: tgz(gnu_name(b"n" * 64 * 1024), file(b"a")),
        "a tar header is too large",
    ),
    "60-KiB-name": (
        lambda: tgz(gnu_name(b"n" * 60 * 1024), file(b"a")),
        "a path is longer than 4096 bytes",
    ),
    "file-over-its-cap": (
        lambda: gzip.compress(header(b"big", 2**30 + 1)),
        "a file is larger than 1073741824 bytes",
    ),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a38_bombs(name: str) -> None:
    """A38: refused with little work."""
    make, reason = BOMBS[name]
    body = make()
    if isinstance(reason, int):
        # The content that is announced; or, with none announced, what the stream inflates to.
        reason = f"unpacks to more than {max(64 * 2**20, 200 * len(body)) + reason} bytes"
    began = time.process_time()

    assert reason == refusal(body)
    assert CPU > time.process_time() - began


def test_reading_that_takes_too_long() -> None:
    """It ends at its deadline."""
    ticks = iter(range(0, 10**6, 25))

    with pytest.raises(BadArchive, match="takes too long"):
        checked(tgz(file(b"a", os.urandom(2**20))), clock=lambda: float(next(ticks)))


@pytest.mark.parametrize(
    ("caps", "reason"),
    [
        ({"members": 2}, "more than 2 members"),
        ({"file_bytes": 9}, "a file is larger than 9 bytes"),
        ({"content_bytes": 29}, "unpacks to more than 29 bytes"),
        ({"path_bytes": 1}, "a path is longer than 1 bytes"),
        ({"members": 3, "file_bytes": 10, "content_bytes": 30, "path_bytes": 2}, None),
    ],
)
def test_caps_to_the_byte(caps: dict[str, int], reason: str | None) -> None:
    """Exactly at a cap it is taken, one beyond it is not."""
    body = tgz(*(file(b"f%d" % n, b"0123456789") for n in range(3)))
    if reason is None:
        checked(body, replace(Caps(), **caps))
    else:
        assert reason == refusal(body, replace(Caps(), **caps))


def test_very_many_notes_are_cut() -> None:
    """The first hundred, and how many more."""
    notes = checked(tgz(*(link(b"l%d" % n, b"x" * 90) for n in range(250)))).notes

    assert (101, "and 150 more") == (len(notes), notes[-1])


def test_notes_are_safe_to_show() -> None:
    """One line of printable text, whatever a name is."""
    name = b"\x1b[2J\n" + "\u202e\u00a0ü".encode() + b"\xff" + b"n" * 90
    (note,) = checked(tgz(link(name, b"\r"))).notes

    assert note.startswith("\\x1b[2J\\x0a\\x202e\\xa0ü\\xffnnn")
    assert note.endswith("nnn: symbolic link to \\x0d, not created")
    assert note.isprintable()


class TestWanted:
    """One small file at the top is given back."""

    @pytest.mark.parametrize(
        ("parts", "found"),
        [
            ((file(b"log", b"L"),), None),
            ((file(b"e.json", b"{}"), file(b"x")), b"{}"),
            ((file(b"./e.json", b"old"), file(b"e.json", b"new")), b"new"),
            ((file(b"e.json", b"too large"), file(b"e.json", b"small")), b"small"),
            ((file(b"d/e.json", b"x"),), None),
            ((link(b"e.json", b"log"), file(b"log")), None),
            ((header(b"e.json", 0, b"6"),), None),
            ((link(b"e.json/l", b"x"),), None),
        ],
        ids=["none", "there", "twice", "first too large", "below", "link", "pipe", "implied"],
    )
    def test_found(self, parts: tuple[bytes, ...], found: bytes | None) -> None:
        assert found == checked(tgz(*parts), wanted="e.json", wanted_bytes=8).wanted

    @pytest.mark.parametrize(
        ("parts", "reason"),
        [
            ((file(b"e.json", b"123456789"),), "e.json is larger than 8 bytes"),
            ((file(b"e.json", b"1"), file(b"e.json", b"123456789")), "e.json is larger than"),
            ((folder(b"e.json"),), "e.json is a directory"),
            ((file(b"e.json/x"),), "e.json is a directory"),
        ],
        ids=["too large", "later too large", "directory", "implied directory"],
    )
    def test_refused(self, parts: tuple[bytes, ...], reason: str) -> None:
        with pytest.raises(BadArchive, match=reason):
            checked(tgz(*parts), wanted="e.json", wanted_bytes=8)
