"""The tree: no file is so long that nobody reads it as a whole."""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(("folder", "most"), [("reporter", 350), ("tests", 500)])
def test_no_file_has_more_lines_than_a_person_reads(folder: str, most: int) -> None:
    """One that grows beyond is split by concern; what the parts of a test share is beside them."""
    lines = {
        str(path.relative_to(ROOT)): path.read_text(encoding="utf-8").count("\n")
        for path in (ROOT / folder).rglob("*.py")
    }

    assert lines
    assert {} == {path: count for path, count in lines.items() if count > most}
