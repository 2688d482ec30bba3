"""The runs that a user has started, as they are noted."""

from pathlib import Path

import pytest

from reporter.runctl.own_runs import OwnRun, note, noted


def test_the_newest_first_and_no_more_than_twenty(tmp_path: Path) -> None:
    environ = {"XDG_STATE_HOME": str(tmp_path)}
    for number in range(25):
        note(OwnRun("ns", f"run-{number}", "word"), environ)

    assert [f"run-{number}" for number in range(24, 4, -1)] == [
        each.name for each in noted(environ)
    ]


@pytest.mark.parametrize("content", [b"\xff\xfe", b"two words\n\n", None])
def test_what_cannot_be_read_or_written_is_no_failure(
    tmp_path: Path, content: bytes | None
) -> None:
    """The run is there; it only has to be named."""
    place = tmp_path / "status-reporter"
    if content is None:
        place.write_text("a file where the directory should be")
    else:
        place.mkdir()
        (place / "runs").write_bytes(content)
    environ = {"XDG_STATE_HOME": str(tmp_path)}

    assert [] == noted(environ)
    note(OwnRun("ns", "first", "word"), environ)
    assert (["first"] if content else []) == [each.name for each in noted(environ)]
