"""Real Jobs with our image on the real node: each situation shows the right condition.

The situations are in the tables beside this file, the checks that all of them share in
`scenarios/run.py`: one canonical line per final verdict, no wrong final verdict on the way, no Pod
that never ends. `status-ctl explain` is asked in each (`scenarios_asked.py`). They run
several at a time, in the order of the tables.
"""

from __future__ import annotations

from concurrent.futures import Future

import pytest

from tests.blackbox.cluster.scenarios_asked import Scenario, asked
from tests.blackbox.cluster.scenarios_interrupted import INTERRUPTED
from tests.blackbox.cluster.scenarios_restarts import RESTARTS
from tests.blackbox.cluster.scenarios_results import RESULTS
from tests.blackbox.cluster.scenarios_settings import SETTINGS
from tests.blackbox.cluster.scenarios_starting import STARTING
from tests.blackbox.scenarios.run import Run, check, explained
from tests.blackbox.scenarios.stage import Stage

Runs = dict[tuple[str, str], tuple[Run, Future[None]]]

# Those that take long by their nature begin first.
SCENARIOS = [*STARTING, *RESTARTS, *INTERRUPTED, *SETTINGS, *RESULTS]
CASES = [
    pytest.param(scenario, form, id=f"{scenario.name}-{form}")
    for scenario in SCENARIOS
    for form in scenario.forms
]


@pytest.fixture(scope="module")
def runs(request: pytest.FixtureRequest, stage: Stage) -> Runs:
    """All chosen scenarios, on their way."""
    chosen = [
        (item.callspec.params["scenario"], item.callspec.params["form"])
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.originalname == "test_scenario"
    ]
    return stage.play_all([(asked(scenario), form) for scenario, form in chosen])


@pytest.mark.node
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("scenario", "form"), CASES)
def test_scenario(runs: Runs, scenario: Scenario, form: str) -> None:
    """The Job shows what the table says and nothing wrong on the way, and `explain` tells it."""
    run, done = runs[scenario.name, form]
    with explained(run):
        done.result()
        check(run, scenario)


def test_names_of_scenarios_are_unique() -> None:
    """Two of one name would share a Job."""
    names = [scenario.name for scenario in SCENARIOS]

    assert sorted(set(names)) == sorted(names)
