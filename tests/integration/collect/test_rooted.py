"""Reading below a directory: links are resolved there, and none leads out."""

import errno
import os
from pathlib import Path

import pytest

from reporter.collect.rooted import Rooted


@pytest.fixture
def rooted(tmp_path: Path) -> Rooted:
    """A root with links of all kinds; the same names stand outside."""
    root = tmp_path / "root"
    (root / "etc").mkdir(parents=True)
    (root / "etc/name").write_text("inside")
    for name in ("etc", "name"):
        (tmp_path / name).write_text("outside")
    for name, to in {
        "absolute": "/etc/name",
        "relative": "etc/name",
        "up": "../../../../../etc/name",
        "etc/back": "../etc/./name",
        "twice": "absolute",
        "directory": "/etc",
        "loop": "loop",
        "outside": str(tmp_path / "name"),
        "gone": "nowhere",
    }.items():
        (root / name).symlink_to(to)
    os.mkfifo(root / "pipe")
    return Rooted(root)


@pytest.mark.parametrize(
    "path",
    [
        "etc/name",
        "absolute",
        "relative",
        "up",
        "etc/back",
        "twice",
        "directory/name",
        "directory/back",
        "../etc/name",
        "directory/../etc/name",
    ],
)
def test_a_path_that_stays_inside(rooted: Rooted, path: str) -> None:
    assert ("inside", "etc/name") == (rooted.text(path), rooted.target(path))
    assert rooted.exists(path)


@pytest.mark.parametrize(
    ("path", "number"),
    [
        ("outside", errno.ENOENT),
        ("gone", errno.ENOENT),
        ("../name", errno.ENOENT),
        ("loop", errno.ELOOP),
        ("pipe", errno.EINVAL),
        ("etc", errno.EINVAL),
        ("etc/name/x", errno.ENOTDIR),
    ],
)
def test_a_path_that_leads_nowhere(rooted: Rooted, path: str, number: int) -> None:
    with pytest.raises(OSError, match=rf"\[Errno {number}\]"):
        rooted.read(path)


def test_directories(rooted: Rooted) -> None:
    assert (["back", "name"], True, False) == (
        rooted.names("directory"),
        rooted.is_directory("directory"),
        rooted.is_directory("relative"),
    )
    assert rooted.space("etc").f_blocks
    assert "etc" in rooted.names("")


def test_only_so_many_bytes(rooted: Rooted) -> None:
    assert b"in" == rooted.read("etc/name", 2)


def test_a_root_that_goes_away_meanwhile(rooted: Rooted, monkeypatch: pytest.MonkeyPatch) -> None:
    """That is what is said, and no descriptor is closed twice: it may be another thread's."""
    plain, opened = os.open, []

    def open_once(path: str | Path, flags: int, **rest: int) -> int:
        if path == rooted._root and opened:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        opened.append(plain(path, flags, **rest))
        return opened[-1]

    monkeypatch.setattr(os, "open", open_once)
    before = os.listdir("/proc/self/fd")
    with pytest.raises(FileNotFoundError):
        rooted.read("absolute")
    assert before == os.listdir("/proc/self/fd")
