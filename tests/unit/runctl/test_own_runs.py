"""The runs that a user has started, as they are noted."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from reporter.runctl.own_runs import note, noted

HERE, THERE = "https://here:6443", "https://there:6443"


def names(server: str, environ: dict[str, str]) -> list[str]:
    return [name for _, _, name in noted(server, environ)]


def test_the_newest_first_and_no_more_than_twenty_of_each_cluster(tmp_path: Path) -> None:
    environ = {"XDG_STATE_HOME": str(tmp_path)}
    note(THERE, "ns", "other", "a", environ)
    for number in range(25):
        word = f"b{25 - number}"
        note(HERE, "ns", f"run-{number}", word, environ)
        os.utime(tmp_path / "status-reporter" / "runs" / word, (number, number))

    assert [f"run-{number}" for number in range(24, 4, -1)] == names(HERE, environ)
    assert ["other"] == names(THERE, environ)


def test_runs_that_are_started_at_the_same_time(tmp_path: Path) -> None:
    """None is lost."""
    environ = {"XDG_STATE_HOME": str(tmp_path)}
    with ThreadPoolExecutor(10) as threads:
        for number in range(10):
            threads.submit(note, HERE, "ns", f"run-{number}", f"word{number}", environ)
    assert {f"run-{number}" for number in range(10)} == set(names(HERE, environ))


@pytest.mark.parametrize("content", [b"\xff\xfe", b"two words", None])
def test_what_cannot_be_read_or_written_is_no_failure(
    tmp_path: Path, content: bytes | None
) -> None:
    """The run is there; it only has to be named."""
    place = tmp_path / "status-reporter"
    if content is None:
        place.write_text("a file where the directory should be")
    else:
        (place / "runs").mkdir(parents=True)
        (place / "runs" / "word").write_bytes(content)
    environ = {"XDG_STATE_HOME": str(tmp_path)}

    assert [] == noted(HERE, environ)
    note(HERE, "ns", "first", "another", environ)
    assert (["first"] if content else []) == names(HERE, environ)
