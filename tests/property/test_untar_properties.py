"""Any bytes: the reader of archives refuses, or gives a tree inside its directory."""

from __future__ import annotations

import gzip
import io
import os
import stat
import tempfile
from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from reporter.runctl.retrieve import TARBALL
from reporter.untar import Archive, BadArchive, Caps, Kind, check, extract
from tests.archives.packing import Packing, archive
from tests.archives.reading import tree
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
)

CAPS = Caps(members=200, file_bytes=5000, content_bytes=20_000, free_bytes=60_000, path_bytes=1_000)

# Few names, so that members get in each other's way.
PART = st.sampled_from([b"a", b"b", b"c", b"d", b"A", b"a ", b"\xff", b"n" * 120, b".", b"", b".."])
SHORT = st.lists(PART, min_size=1, max_size=3).map(b"/".join)
DEEP = st.integers(60, 80).map(lambda depth: b"/".join([b"a"] * depth))
NAME = st.one_of(SHORT, SHORT, DEEP)
DATA = st.binary(max_size=700)
KIND = st.sampled_from([b"0", b"\0", b"1", b"2", b"3", b"5", b"6", b"7", b"S", b"V", b"Z"])
MEMBER = st.one_of(
    st.builds(file, SHORT, DATA),
    st.builds(folder, SHORT),
    st.builds(link, SHORT, SHORT),
    st.builds(hard_link, SHORT, SHORT),
    st.builds(header, SHORT, st.integers(0, 2000), KIND),
    st.builds(lambda name, data: pax(path=name) + file(b"x", data), NAME, DATA),
    st.builds(lambda name, data: gnu_name(name) + file(b"x", data, magic=GNU), NAME, DATA),
    st.builds(lambda name: gnu_name(name) + folder(b"x", magic=GNU), NAME),
    st.builds(lambda size: pax(size=b"%d" % size) + file(b"x", b"y"), st.integers(0, 700)),
)
TAR = st.builds(
    lambda members, end: b"".join(members) + end,
    st.lists(MEMBER, min_size=1, max_size=8),
    st.sampled_from([END, END, b"", END[:512]]),
)
SOUND = TAR.map(lambda tar: gzip.compress(tar, 1, mtime=0))


@st.composite
def dented(draw: st.DrawFn, whole: st.SearchStrategy[bytes]) -> bytes:
    """Bytes of which one or two are others, and the end may be missing."""
    data = draw(whole)
    changed, last = bytearray(data), len(data) - 1
    for at in draw(st.lists(st.integers(0, last), min_size=1, max_size=2)):
        changed[at] ^= draw(st.integers(1, 255))
    return bytes(changed[: draw(st.sampled_from([last, last // 2, last + 1, last + 1]))])


BODY = st.one_of(
    SOUND,
    SOUND,
    dented(TAR).map(lambda tar: gzip.compress(tar, 1, mtime=0)),
    dented(SOUND),
    st.binary(max_size=3000),
    st.binary(max_size=3000).map(lambda data: gzip.compress(data, mtime=0)),
)


@given(BODY)
def test_what_is_accepted_can_be_extracted(body: bytes) -> None:
    """And only that; inside, within the caps, the last of each name; else nothing is there."""
    with tempfile.TemporaryDirectory() as name:
        top = Path(name)
        try:
            said = check(io.BytesIO(body), len(body), CAPS).notes
        except BadArchive as error:
            said = (str(error),)
            refused = said
        else:
            refused = None
        assert all(text.isprintable() for text in said)
        try:
            done = extract(io.BytesIO(body), len(body), top / "tree", CAPS)
        except BadArchive as error:
            again = (str(error),)
            assert again == refused
            assert [] == os.listdir(top)
            return
        assert (refused, done.notes) == (None, said)
        assert ["tree"] == os.listdir(top)
        found = tree(top / "tree")
        assert expected(body) == found
        assert done.files == sum(data is not None for data in found.values())
        assert CAPS.content_bytes >= sum(len(data or b"") for data in found.values())
        for path in (top / "tree").rglob("*"):
            mode = path.lstat().st_mode
            assert stat.S_ISDIR(mode) or stat.S_ISREG(mode)


def expected(body: bytes) -> dict[bytes, bytes | None]:
    """The tree that the members of an archive make, by plain dictionaries."""
    found: dict[bytes, bytes | None] = {}
    archive = Archive(io.BytesIO(body), len(body), CAPS)
    for member in archive:
        if member.kind not in (Kind.FILE, Kind.DIRECTORY):
            continue
        for depth in range(1, len(member.path)):
            found[b"/".join(member.path[:depth])] = None
        if member.kind is Kind.FILE:
            assert member.again is (b"/".join(member.path) in found)
            found[b"/".join(member.path)] = b"".join(archive.content())
        elif member.path:
            found[b"/".join(member.path)] = None
    return found


@given(SOUND)
def test_larger_caps_refuse_nothing_more(body: bytes) -> None:
    """What was accepted once can be read later, also where the caps were raised meanwhile."""
    try:
        notes = check(io.BytesIO(body), len(body), CAPS).notes
    except BadArchive:
        return
    larger = replace(CAPS, members=10**6, file_bytes=10**9, content_bytes=10**9, path_bytes=10**4)
    assert notes == check(io.BytesIO(body), len(body), larger).notes


@given(SOUND)
def test_a_tarball_can_be_extracted(body: bytes) -> None:
    """What was accepted of a worker is there after retrieve --extract, file by file."""
    try:
        check(io.BytesIO(body), len(body), CAPS)
    except BadArchive:
        return
    with tempfile.TemporaryDirectory() as name:
        top = Path(name)
        packing = Packing(top, body)
        packing.make(archive(body))
        extract(io.BytesIO(body), len(body), top / "direct", CAPS)
        with packing.target.open("rb") as tarball:
            extract(tarball, packing.target.stat().st_size, top / "out", TARBALL)

        assert tree(top / "direct") == tree(top / "out/plugins/e2e/results/global")
