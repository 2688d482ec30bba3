"""An exception that nobody caught: when the work begins again, and what is kept until then."""

from typing import Any

import pytest

from reporter.common.lifecycle import Stop
from reporter.sidecar import main as sidecar
from reporter.verdict.case import Case, Policy
from reporter.verdict.facts import Form
from tests.situations import observed, pod, running


class Crashing:
    """A life of the reporter that ends in an exception."""

    def __init__(self, case: Case | None = None) -> None:
        self.case = case

    def run(self) -> int:
        raise RuntimeError("nobody has thought of this")


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long it would have waited before each new beginning; SIGTERM comes during the eighth."""
    found: list[float] = []

    def wait(stop: Stop, timeout: float) -> None:
        found.append(timeout)
        if len(found) == 8:
            stop.request()

    monkeypatch.setattr(Stop, "wait", wait)
    return found


def test_the_pauses_double_up_to_a_minute(
    monkeypatch: pytest.MonkeyPatch, pauses: list[float]
) -> None:
    """Time is counted from the start of the process, and the last try comes after SIGTERM."""
    began = []

    def prepared(*given: Any) -> Crashing:
        began.append(given[-1])
        return Crashing()

    monkeypatch.setattr(sidecar, "_prepared", prepared)

    assert 0 == sidecar.main([], {}, Stop())
    assert [1, 2, 4, 8, 16, 32, 60, 60] == pauses
    assert (9, 1) == (len(began), len(set(began)))


def test_what_an_earlier_life_has_seen_decides_the_exit_code(
    monkeypatch: pytest.MonkeyPatch, pauses: list[float]
) -> None:
    """Later ones crash before their first look."""
    known = Case(observed((0, pod(running()))), Policy(wait=1e9, form=Form.CLASSIC))
    lives = iter([Crashing(known)])
    monkeypatch.setattr(sidecar, "_prepared", lambda *_: next(lives, Crashing()))

    assert 1 == sidecar.main([], {}, Stop())
    assert 8 == len(pauses)
