"""Label selectors: the notation of kubectl, and what each operator matches."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reporter.common.label_selector import Requirement, parse

LABELS = {"disk": "ssd", "zone": "", "cores": "16", "example.com/rack": "r1", "odd": "0x10"}


@pytest.mark.parametrize(
    ("text", "selected"),
    [
        ("", True),
        ("  ", True),
        ("disk", True),
        ("gpu", False),
        ("!gpu", True),
        ("! disk", False),
        ("disk=ssd", True),
        ("disk == ssd", True),
        ("disk=hdd", False),
        ("disk!=hdd", True),
        ("gpu!=a100", True),
        ("zone=", True),
        ("disk=", False),
        ("disk in (hdd, ssd)", True),
        ("disk in (hdd)", False),
        ("gpu in (a100)", False),
        ("zone in ()", True),
        ("disk notin (hdd,nvme)", True),
        ("gpu notin (a100)", True),
        ("disk notin(ssd)", False),
        ("cores>15", True),
        ("cores > 16", False),
        ("cores<17", True),
        ("cores<16", False),
        ("gpu>1", False),
        ("disk>1", False),
        ("odd>1", False),
        ("example.com/rack=r1", True),
        ("disk=ssd,cores>8,!gpu", True),
        ("disk in (ssd,hdd),gpu", False),
    ],
)
def test_a_selector_selects(text: str, selected: bool) -> None:
    assert selected is all(requirement.matches(LABELS) for requirement in parse(text))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a,", "'' is not a label requirement"),
        ("-a", "'-a' is not a label requirement"),
        ("a b", "'a b' is not a label requirement"),
        ("a in b", "'a in b' is not a label requirement"),
        ("a in (b", "'a in (b' is not a label requirement"),
        ("a in (b c)", "'b c' is not a label value"),
        ("a=b=c", "'a=b=c' is not a label requirement"),
        ("a>b", "'b' is not an integer"),
        ("a>", "'' is not an integer"),
        ("x" * 200 + " y", repr("x" * 80) + " is not a label requirement"),
    ],
)
def test_what_is_no_selector(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match="is not") as caught:
        parse(text)
    assert problem == str(caught.value)


@pytest.mark.parametrize(
    ("requirement", "matches"),
    [
        (Requirement("cores", "Gt", ("15",)), True),
        (Requirement("cores", "Gt", ()), False),
        (Requirement("cores", "Gt", ("a",)), False),
        (Requirement("cores", "Near", ("16",)), False),
    ],
)
def test_operators_that_the_api_would_refuse_match_nothing(
    requirement: Requirement, matches: bool
) -> None:
    assert matches is requirement.matches(LABELS)


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(ValueError):
        assert parse(text) or not text.strip()


@given(st.dictionaries(st.sampled_from("abc"), st.sampled_from(["", "1", "2"])))
def test_opposite_requirements_part_all_labels(labels: dict[str, str]) -> None:
    for one, other in (("a", "!a"), ("a=1", "a!=1"), ("a in (1,2)", "a notin (1,2)")):
        (first,), (second,) = parse(one), parse(other)
        assert first.matches(labels) is not second.matches(labels)
