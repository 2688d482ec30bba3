"""The defects that the soak has to find still fit the code that they are made in."""

from __future__ import annotations

import ast

import pytest

from tests.bed.product_image import PROJECT
from tests.defects.__main__ import Defect, read

DEFECTS = read()


def test_there_are_at_least_twenty_with_different_names():
    assert len({each.name for each in DEFECTS}) == len(DEFECTS) >= 20


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda each: each.name)
def test_its_text_stands_there_once_and_what_it_becomes_is_code(defect: Defect):
    changed = defect.apply((PROJECT / defect.file).read_text())
    ast.parse(changed)
