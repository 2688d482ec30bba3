"""What is said of a snapshot among results."""

from pathlib import Path

import pytest

from reporter.runctl.archive import snapshot_lines
from tests.blackbox.ctl.test_results_command import packed, results

__all__ = ["results"]


def test_an_index_that_does_not_say_whether_it_is_complete(results: Path) -> None:
    (results / "resources").mkdir()
    (results / "resources" / "index.json").write_text("{}")

    assert ("the snapshot is not complete: see resources/index.json",) == snapshot_lines(results)


@pytest.mark.parametrize("index", ["{", "[]", '{"complete": true, "resources": [7]}'])
def test_a_snapshot_of_which_nothing_is_to_be_said(results: Path, index: str) -> None:
    """Whatever lies there under that name."""
    (results / "resources").mkdir()
    (results / "resources" / "index.json").write_text(index)

    assert () == snapshot_lines(packed(results)) == snapshot_lines(results)
