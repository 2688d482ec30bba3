"""The progress file on a real file system: the newest good progress, bad progress only remarked."""

import os

import pytest

from reporter.sidecar.files import ProgressFile
from reporter.verdict.adapter_files import MAX_PROGRESS_BYTES
from reporter.verdict.facts import Progress


@pytest.fixture
def path(tmp_path):
    """Where the progress is expected."""
    return tmp_path / "progress.json"


@pytest.fixture
def remarks():
    """What was said about bad progress."""
    return []


@pytest.fixture
def progress(path, remarks):
    """The source under test."""
    return ProgressFile(path, remarks.append)


def test_no_file_is_no_progress(progress, remarks):
    """Most adapters write none."""
    assert (None, []) == (progress.look(), remarks)


def test_the_newest_progress_counts(path, progress, remarks):
    """Also when it is written in place, as fast as possible."""
    for done in range(200):
        path.write_text(f'{{"total": 200, "completed": {done:3}}}')
        assert Progress(total=200, completed=done) == progress.look()
    assert [] == remarks


def test_the_same_progress_is_the_same_value(path, progress):
    """Nothing is decoded twice."""
    path.write_text('{"msg": "m"}')
    assert progress.look() is progress.look()


def test_malformed_progress_keeps_the_last_good_and_is_told_once(path, progress, remarks):
    """Never a verdict, never a flood in the log."""
    path.write_text('{"completed": 1}')
    progress.look()
    for text in ('{"completed": "2"}', '{"compl', "[]"):
        path.write_text(text)
        assert Progress(completed=1) == progress.look()
    assert ["completed: must be an integer"] == remarks
    path.write_text('{"completed": 3}')
    assert Progress(completed=3) == progress.look()


def test_progress_that_is_taken_away_is_still_the_newest(path, progress):
    """An adapter may clean up behind itself."""
    path.write_text('{"completed": 1}')
    progress.look()
    path.unlink()
    assert Progress(completed=1) == progress.look()


def test_too_much_progress_is_malformed(path, progress, remarks):
    """64 KiB and not a byte more."""
    path.write_bytes(b"{}".ljust(MAX_PROGRESS_BYTES))
    assert (Progress(), []) == (progress.look(), remarks)
    path.write_bytes(b"{}".ljust(MAX_PROGRESS_BYTES + 1))
    progress.look()
    assert [f"the file is larger than {MAX_PROGRESS_BYTES} bytes"] == remarks


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/zero", path)])
def test_what_is_no_file_is_malformed_and_no_hang(path, progress, remarks, make):
    """The same care as for the result."""
    make(path)
    assert progress.look() is None
    assert 1 == len(remarks)
    assert remarks[0].endswith("not a regular file")
