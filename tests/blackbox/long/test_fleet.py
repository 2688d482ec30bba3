"""A hundred Jobs in each form whose adapter quits right after writing: as many right verdicts."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.blackbox.scenarios.jobs import FORMS, writes
from tests.blackbox.scenarios.run import Shown, check, explained, play
from tests.blackbox.scenarios.scenario import Scenario, result
from tests.blackbox.scenarios.stage import Stage

pytestmark = [pytest.mark.long, pytest.mark.node]

JOBS = 100
AT_ONCE = 8


def verdict(stage: Stage, form: str, number: int) -> Shown:
    """Run one Job and return its final verdict, which is checked to be its own."""
    message = f"number {number}"
    scenario = Scenario(f"fleet-{number}", writes(message=message), result(message=message))
    run = stage.new_run(f"fleet-{form}-{number}")
    with explained(run):
        play(run, scenario, form)
        check(run, scenario)
    return run.history()[-1]


@pytest.mark.timeout(900)
@pytest.mark.parametrize("form", FORMS)
def test_100_jobs_whose_adapter_quits_right_after_writing(
    stage: Stage, form: str, figures: Callable[[str], None]
) -> None:
    """Not one result is missed, taken for an older one's or written twice."""
    began = time.monotonic()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        verdicts = list(pool.map(lambda number: verdict(stage, form, number), range(JOBS)))

    figures(f"{form}: {len(verdicts)} right verdicts in {time.monotonic() - began:.0f} s")
    assert [f"number {n}" for n in range(JOBS)] == [v.condition["message"] for v in verdicts]
