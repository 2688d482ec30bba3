"""Unpacking: one new directory, all of it or nothing."""

from __future__ import annotations

import errno
import io
import os
import subprocess
from pathlib import Path

import pytest

from reporter.untar import BadArchive, Caps, Extracted, extract
from tests.archives.reading import extracted, tree
from tests.archives.tars import END, file, folder, gnu_name, link, tgz

DEEP = tgz(
    *(
        part
        for name in (b"/".join([b"d" * 200] * 20), b"/".join([b"d"] * 2000))
        for part in (gnu_name(name + b"/f"), file(b"f", b"1"), file(b"x", b"2"))
    )
)


def test_files_and_directories(tmp_path: Path) -> None:
    """Parents are made; of two files of one name the last counts, once."""
    parts = (file(b"a", b"1"), folder(b"e"), file(b"d/x", b"2"), file(b"a", b"3"), link(b"l", b"a"))
    body = tgz(*parts)
    target = tmp_path / "on/the/way/new"

    done = extract(io.BytesIO(body), len(body), target, Caps())

    assert Extracted(2, ("l: symbolic link to a, not created",)) == done
    assert {b"a": b"3", b"d": None, b"d/x": b"2", b"e": None} == tree(target)
    assert ["new"] == os.listdir(target.parent)


def test_modes_are_the_users_own(tmp_path: Path) -> None:
    """What the archive says does not matter."""
    body = tgz(folder(b"d", mode=0), file(b"d/x", b"1", mode=0o6777))
    old = os.umask(0o027)
    try:
        extracted(body, tmp_path / "new")
    finally:
        os.umask(old)

    paths = (tmp_path / "new", tmp_path / "new/d", tmp_path / "new/d/x")
    assert [0o750, 0o750, 0o640] == [path.stat().st_mode & 0o7777 for path in paths]


def test_a_deep_tree(tmp_path: Path) -> None:
    """Deeper than any recursion and longer than any path may be."""
    try:
        done = extract(io.BytesIO(DEEP), len(DEEP), tmp_path / "new", Caps())

        assert 3 == done.files
        fd = os.open(tmp_path / "new", os.O_RDONLY)
        for _ in range(2000):
            below = os.open("d", os.O_RDONLY, dir_fd=fd)
            os.close(fd)
            fd = below
        assert ["f"] == os.listdir(fd)
        os.close(fd)
    finally:
        # It is too deep for pytest.
        subprocess.run(["rm", "-rf", tmp_path / "new"], check=True)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(tgz(file(b"a", b"1"), file(b"../b", b"2")), id="small"),
        pytest.param(DEEP[:-9], id="deep"),
        pytest.param(b"rubbish", id="rubbish"),
    ],
)
def test_a_bad_archive_leaves_nothing(tmp_path: Path, body: bytes) -> None:
    with pytest.raises(BadArchive):
        extracted(body, tmp_path / "new")

    assert [] == os.listdir(tmp_path)


class Failing(io.BytesIO):
    """A source that cannot be read to its end."""

    def read(self, size: int | None = -1) -> bytes:
        if self.tell():
            raise OSError(errno.EIO, "Input/output error")
        return super().read(size)


def test_a_failing_disk_leaves_nothing(tmp_path: Path) -> None:
    body = tgz(file(b"a", b"1"), file(b"d/b", os.urandom(300_000)))
    with pytest.raises(OSError, match="Input/output"):
        extract(Failing(body), len(body), tmp_path / "new", Caps())

    assert [] == os.listdir(tmp_path)


@pytest.mark.parametrize("what", ["directory", "file", "link"])
def test_a_target_that_is_there(tmp_path: Path, what: str) -> None:
    """Nothing is mixed with what lies there."""
    target = tmp_path / "new"
    if what == "directory":
        target.mkdir()
    elif what == "file":
        target.write_bytes(b"")
    else:
        target.symlink_to("nowhere")

    with pytest.raises(FileExistsError) as error:
        extracted(tgz(), target)

    assert str(target) == error.value.filename
    assert ["new"] == os.listdir(tmp_path)


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    """Neither by what was unpacked nor by what was refused."""
    before = len(os.listdir("/dev/fd"))
    extracted(tgz(file(b"a/b/c", b"1"), file(b"a/d", b"2"), file(b"e/f/g", END)), tmp_path / "one")
    for n in range(20):
        with pytest.raises(BadArchive):
            extracted(tgz(file(b"a/b/c", b"1"), file(b"a/b/c/d", b"2")), tmp_path / f"{n}")

    assert before == len(os.listdir("/dev/fd"))
