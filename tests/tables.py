"""Tables of cases, each under its name."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest


def table(names: Sequence[str] | str, cases: Mapping[str, Any]) -> pytest.MarkDecorator:
    """Run a test once for each case: what its arguments of these names are."""
    return pytest.mark.parametrize(names, list(cases.values()), ids=list(cases))
