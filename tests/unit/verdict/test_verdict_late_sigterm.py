"""A busy kubelet sends SIGTERM seconds after the Pod's deletion: the adapter is heard as long."""

from __future__ import annotations

import pytest

from reporter.verdict.case import Policy
from reporter.verdict.facts import Form
from tests.situations import deleted, later, observed, pod, rows_of, running, valid, verdict

CLASSIC, NATIVE = Policy(form=Form.CLASSIC), Policy(form=Form.NATIVE)
DELETED = deleted(pod(running()), second=20, grace=5)


@pytest.mark.parametrize(("second", "row"), [(24.9, "N"), (25, "N!")])
def test_classic_form_hears_the_adapter_for_the_grace_that_begins_with_sigterm(
    second: float, row: str
) -> None:
    """Deleted at 20, told at 23, killed at 28: settled with 3 s left for the write."""
    o = later(observed((20, DELETED), (23, DELETED), stopped=23), second)

    assert [row] == rows_of([verdict(o, CLASSIC)])


def test_result_written_on_a_late_sigterm_is_heard() -> None:
    """As long as nothing is settled the file has the last word."""
    o = observed((20, DELETED), (24.5, DELETED, valid(24)), stopped=23)

    assert ["R!"] == rows_of([verdict(o, CLASSIC)])


def test_native_form_settles_with_its_sigterm() -> None:
    """The adapter is dead by then, and most of the grace may be used up."""
    o = observed((20, DELETED), (23, DELETED), stopped=23)

    assert ["N!"] == rows_of([verdict(o, NATIVE)])
