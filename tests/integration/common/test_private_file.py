"""Private files: whole or not at all, whoever else writes, whoever was killed."""

import os
import threading
from pathlib import Path

import pytest

from reporter.common.private_file import write_private

WRITERS, WRITES = 4, 25


def test_several_writers_of_one_file_do_not_tear_it(tmp_path: Path) -> None:
    """Each write succeeds, a reader always sees one of them whole, nothing is left beside it."""
    path = tmp_path / "key.pem"
    errors: list[OSError] = []
    seen: set[bytes] = set()
    contents = [bytes([letter]) * 20_000 for letter in b"abcd"]
    write_private(path, contents[0])

    def write(data: bytes) -> None:
        for _ in range(WRITES):
            try:
                write_private(path, data)
            except OSError as error:
                errors.append(error)
            seen.add(path.read_bytes())

    threads = [threading.Thread(target=write, args=(data,)) for data in contents[:WRITERS]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [] == errors
    assert seen <= set(contents)
    assert ["key.pem"] == [each.name for each in tmp_path.iterdir()]
    assert 0o600 == path.stat().st_mode & 0o777


def test_what_a_killed_writer_has_left_goes(tmp_path: Path) -> None:
    """Once it is old enough to be nobody's; what others keep there stays."""
    path = tmp_path / "key.pem"
    old, young = tmp_path / ".key.pem.12345678.new", tmp_path / ".key.pem.abcdefgh.new"
    other = tmp_path / ".other.pem.12345678.new"
    for each in (old, young, other):
        each.write_bytes(b"half")
    for each in (old, other):
        os.utime(each, (1, 1))
    write_private(path, b"whole")

    assert {path, young, other} == set(tmp_path.iterdir())
    assert b"whole" == path.read_bytes()


def test_a_file_planted_beside_it_is_not_written_to(tmp_path: Path) -> None:
    """Nor is a link followed: somebody could keep a way to read what is written."""
    path, elsewhere = tmp_path / "key.pem", tmp_path / "elsewhere"
    elsewhere.write_bytes(b"")
    (tmp_path / ".key.pem.new").symlink_to(elsewhere)
    path.symlink_to(elsewhere)
    write_private(path, b"secret")

    assert (b"", b"secret") == (elsewhere.read_bytes(), path.read_bytes())
    assert not path.is_symlink()


def test_an_error_leaves_nothing_beside_it(tmp_path: Path) -> None:
    """A directory stands where the file should be."""
    (tmp_path / "key.pem").mkdir()
    with pytest.raises(OSError, match="directory"):
        write_private(tmp_path / "key.pem", b"secret")

    assert ["key.pem"] == [each.name for each in tmp_path.iterdir()]
