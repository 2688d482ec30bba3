"""What can be looked up."""

import pytest

from reporter.common.host_name import is_host


@pytest.mark.parametrize(
    "text", ["a", "a.b", "a.b.", "x" * 63, "10.0.0.7", "fd00::7", "bücher.example", "a_b", "-a"]
)
def test_a_host(text: str) -> None:
    assert is_host(text)


@pytest.mark.parametrize(
    "text", ["", ".", "..", "a..b", ".a", "x" * 64, "é..b", "ü" * 60, ".".join(["x" * 50] * 5)]
)
def test_what_no_name_service_could_know(text: str) -> None:
    assert not is_host(text)
