"""Reading below a directory: links are resolved there, and none leads out."""

import errno
import os
from pathlib import Path

import pytest

from reporter.collect.rooted import Below


@pytest.fixture
def below(tmp_path: Path) -> Below:
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
    return Below(root)


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
def test_a_path_that_stays_inside(below: Below, path: str) -> None:
    assert ("inside", "etc/name") == (below.text(path), below.target(path))
    assert below.exists(path)


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
def test_a_path_that_leads_nowhere(below: Below, path: str, number: int) -> None:
    with pytest.raises(OSError, match=rf"\[Errno {number}\]"):
        below.read(path)


def test_directories(below: Below) -> None:
    assert (["back", "name"], True, False) == (
        below.names("directory"),
        below.is_directory("directory"),
        below.is_directory("relative"),
    )
    assert below.space("etc").f_blocks
    assert "etc" in below.names("")


def test_only_so_many_bytes(below: Below) -> None:
    assert b"in" == below.read("etc/name", 2)
