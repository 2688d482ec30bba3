"""The API server is away when the adapter ends: that costs delay, never the verdict."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.blackbox.cluster.scenarios_results import exited
from tests.blackbox.scenarios.jobs import FORMS, writes
from tests.blackbox.scenarios.run import Run, check, explained, touch
from tests.blackbox.scenarios.scenario import Scenario, result
from tests.blackbox.scenarios.stage import Stage

AWAY = 20.0  # seconds
GO = "until [ -e /results/go ]; do sleep 0.1; done"
# Long enough to live through the outage after SIGTERM, as in the native form.
GRACE = 60

SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        Scenario("outage-at-the-result", f"{GO}; {writes()}", result(), grace=GRACE),
        Scenario("outage-at-a-crash", f"{GO}; exit 3", exited(3), grace=GRACE),
        Scenario("result-before-an-outage", f"{GO}; {writes()}; sleep 30", result(), grace=GRACE),
    )
}
CASES = [(name, form) for name in SCENARIOS for form in FORMS]


@pytest.fixture(scope="module")
def outage(stage: Stage) -> Iterator[dict[tuple[str, str], Run]]:
    """All cases together through one outage; their adapters go on two seconds into it."""
    runs = {}
    for name, form in CASES:
        runs[name, form] = stage.new_run(f"{name}-{form}")
        runs[name, form].start(SCENARIOS[name], form)
    pods = {run: run.wait_reported() for run in runs.values()}
    stage.controlplane.stop_apiserver()
    try:
        time.sleep(2)
        for run, pod in pods.items():
            touch(run.node, pod, "results", "go")
        time.sleep(AWAY - 2)
    finally:
        stage.controlplane.start_apiserver()
    yield runs
    for run in runs.values():
        run.delete()


@pytest.mark.node
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("name", "form"), CASES)
def test_api_server_away_for_20_s_around_the_verdict(
    outage: dict[tuple[str, str], Run], name: str, form: str
) -> None:
    """The right verdict stands soon after the server's return, written once."""
    run = outage[name, form]
    with explained(run):
        run.wait_ended(120)
        check(run, SCENARIOS[name])
