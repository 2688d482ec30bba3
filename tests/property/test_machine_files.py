"""Whatever a file of a machine holds, the facts are JSON of the published schema."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.property.machine_files import SEEDS, check, mutations


@given(st.text(st.characters(exclude_categories=()), max_size=200))
def test_any_text(text):
    check(text, by_schema=True)


@pytest.mark.parametrize("text", SEEDS)
def test_sound_files(text):
    check(text, by_schema=True)


def test_damaged_files():
    for text in mutations(7, 300):
        check(text, by_schema=True)
