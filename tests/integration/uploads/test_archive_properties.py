"""Any bytes: the archive reader gives a tree inside its directory, or refuses."""

from __future__ import annotations

import gzip
import os
import stat
import tempfile
import time
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reporter.aggregator.store.files import remove_tree, walk
from reporter.aggregator.uploads.limits import Limits
from reporter.aggregator.uploads.unpack import unpack
from reporter.untar.gunzip import BadArchive
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

CAPS = Limits(
    archive_members=30, archive_file_bytes=5000, archive_bytes=20_000, archive_free_bytes=60_000
)

# Few names, so that members get in each other's way.
PART = st.sampled_from([b"a", b"b", b"c", b"d", b"A", b"a ", b"\xff", b"n" * 120, b".", b"", b".."])
NAME = st.lists(PART, min_size=1, max_size=3).map(b"/".join)
DATA = st.binary(max_size=700)
KIND = st.sampled_from([b"0", b"\0", b"1", b"2", b"3", b"5", b"6", b"7", b"S", b"V", b"Z"])
MEMBER = st.one_of(
    st.builds(file, NAME, DATA),
    st.builds(folder, NAME),
    st.builds(link, NAME, NAME),
    st.builds(hard_link, NAME, NAME),
    st.builds(header, NAME, st.integers(0, 2000), KIND),
    st.builds(lambda name, data: pax(path=name) + file(b"x", data), NAME, DATA),
    st.builds(lambda name, data: gnu_name(name) + file(b"x", data, magic=GNU), NAME, DATA),
    st.builds(lambda size: pax(size=b"%d" % size) + file(b"x", b"y"), st.integers(0, 700)),
)


@st.composite
def archives(draw: st.DrawFn) -> bytes:
    """Members that go together or not; in half of them the tar or the gzip is damaged."""
    members = draw(st.lists(MEMBER, min_size=1, max_size=8))
    tar = b"".join(members) + draw(st.sampled_from([END, END, b"", END[:512]]))
    damaged = draw(st.sampled_from(["nothing", "nothing", "tar", "gzip"]))
    packed = gzip.compress(_dented(draw, tar) if damaged == "tar" else tar, 1, mtime=0)
    return _dented(draw, packed) if damaged == "gzip" else packed


def _dented(draw: st.DrawFn, data: bytes) -> bytes:
    changed, last = bytearray(data), len(data) - 1
    for at in draw(st.lists(st.integers(0, last), min_size=1, max_size=2)):
        changed[at] ^= draw(st.integers(1, 255))
    return bytes(changed[: draw(st.sampled_from([last, last // 2, last + 1, last + 1]))])


def check(body: bytes) -> None:
    """Unpack some bytes beside something that must stay as it is."""
    with tempfile.TemporaryDirectory() as name:
        top = Path(name)
        (top / "outside").write_bytes(b"untouched")
        (top / "body").write_bytes(body)
        fd = os.open(top / "body", os.O_RDONLY)
        try:
            said = unpack(fd, len(body), top / "tree", CAPS, deadline=1e9, clock=time.monotonic)
        except BadArchive as error:
            said = (str(error),)
            assert not (top / "tree").exists()
        else:
            inspect(top / "tree")
            remove_tree(top / "tree")
        finally:
            os.close(fd)
        assert all(text.isprintable() for text in said)
        assert {"outside", "body"} == {path.name for path in top.iterdir()}
        assert b"untouched" == (top / "outside").read_bytes()


def inspect(tree: Path) -> None:
    """Only our files and directories, within the caps."""
    found = [status for _, _, status in walk(tree)]
    files = [status for status in found if stat.S_ISREG(status.st_mode)]
    assert {0o600} >= {stat.S_IMODE(status.st_mode) for status in files}
    assert {0o600, 0o700} >= {stat.S_IMODE(status.st_mode) for status in found}
    assert CAPS.archive_bytes >= sum(status.st_size for status in files)
    # What is neither a file nor a directory would be missing in the walk.
    assert len(found) == 1 + sum(len(names) + len(rest) for _, names, rest in os.walk(tree))


@settings(deadline=None, max_examples=300, suppress_health_check=list(HealthCheck))
@given(archives())
def test_any_archive(body: bytes) -> None:
    """Sound or broken members in any order."""
    check(body)


@settings(deadline=None, max_examples=100)
@given(st.binary(max_size=3000))
def test_any_bytes(body: bytes) -> None:
    """Any body, and any content of a sound gzip."""
    check(body)
    check(gzip.compress(body, mtime=0))
