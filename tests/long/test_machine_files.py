"""200,000 damaged files of a machine: none crashes a parser."""

import pytest

from tests.property.machine_files import check, mutations

COUNT = 200_000
EACH = 50  # of which one is checked by the schema, which takes longer than all parsers

pytestmark = pytest.mark.long


@pytest.mark.timeout(600)
def test_no_damaged_file_crashes_a_parser() -> None:
    for at, text in enumerate(mutations(1, COUNT)):
        check(text, by_schema=at % EACH == 0)
