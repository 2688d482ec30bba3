"""F1, A10, A11: hostile archives. What lies outside is compared before and after each."""

from __future__ import annotations

import io
import os
import stat
from pathlib import Path

import pytest

from reporter.untar import BadArchive, Caps, extract
from tests.archives.hostile import NAMES, hostile
from tests.archives.reading import checked, extracted
from tests.archives.tars import file, hard_link, tgz


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A directory beside ours with things one could want to change."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "target").write_bytes(b"untouched")
    (folder / "link").symlink_to("target")
    return folder


def everything(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Every path below a directory: type and mode, content or target."""
    found = {}
    for path in folder.rglob("*"):
        status = path.lstat()
        content = b""
        if path.is_symlink():
            content = os.fsencode(path.readlink())
        elif path.is_file():
            content = path.read_bytes()
        found[str(path.relative_to(folder))] = (status.st_mode, content)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_hostile(tmp_path: Path, outside: Path, name: str) -> None:
    """F1: refused without a trace, or inside; no link, no device, nothing else changed."""
    body, outcome = hostile(os.fsencode(outside))[name]
    before = everything(tmp_path)

    if isinstance(outcome, str):
        with pytest.raises(BadArchive) as refused:
            checked(body)
        assert outcome == str(refused.value)
        with pytest.raises(BadArchive) as refused:
            extracted(body, tmp_path / "new")
        assert outcome == str(refused.value)
        assert before == everything(tmp_path)
        return
    checked(body)
    old = os.umask(0o077)
    try:
        done = extract(io.BytesIO(body), len(body), tmp_path / "new", Caps())
    finally:
        os.umask(old)
    found = everything(tmp_path / "new")
    assert len(outcome) == done.files
    assert outcome == {path: data for path, (mode, data) in found.items() if stat.S_ISREG(mode)}
    for path, (mode, _) in found.items():
        assert stat.S_IFMT(mode) in (stat.S_IFREG, stat.S_IFDIR), path
        assert stat.S_IMODE(mode) == (0o700 if stat.S_ISDIR(mode) else 0o600), path
    after = everything(tmp_path)
    assert before == {path: after[path] for path in before}
    assert {path.split("/")[0] for path in after} == {"outside", "new"}


def test_a10_an_absolute_path_and_a_hard_link(tmp_path: Path) -> None:
    """A10: stored without its slash; not created but noted."""
    body = tgz(file(b"/abs.txt", b"1"), hard_link(b"h", b"abs.txt"))

    assert ("h: hard link to abs.txt, not created",) == checked(body).notes
    assert {b"abs.txt": b"1"} == extracted(body, tmp_path / "new")
