"""The reporter is killed at a random instant of a Job: the verdict stays right.

KILL_SEED=NUMBER in the environment repeats a series.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from tests.blackbox.cluster.scenarios_results import exited
from tests.blackbox.scenarios.actions import kill_reporter
from tests.blackbox.scenarios.jobs import REPORTER, writes
from tests.blackbox.scenarios.run import Run, check, container_status, explained, play
from tests.blackbox.scenarios.scenario import Scenario, result
from tests.blackbox.scenarios.stage import Stage

pytestmark = [pytest.mark.long, pytest.mark.node]

JOBS = 40
AT_ONCE = 8
LATEST = 4.0  # seconds after the reporter's start; the adapter lives longer than its restart takes
SEED = int(os.environ.get("KILL_SEED", "0")) or random.SystemRandom().randrange(1, 10**6)

WITH_RESULT = Scenario("killed-with-a-result", f"sleep 2; {writes()}; sleep 8", result())
WITH_CRASH = Scenario("killed-with-a-crash", "sleep 10; exit 3", exited(3))


def kill_after(seconds: float, run: Run) -> None:
    """Wait for the reporter's process and kill it so long after its start."""
    status = run.wait(
        lambda: container_status(run.pod(), REPORTER).get("containerID"), "the reporter's start"
    )
    assert status
    time.sleep(seconds)
    kill_reporter(run, run.pod()["metadata"]["name"])


def killed(stage: Stage, number: int, seconds: float) -> Run:
    """One Job whose reporter is killed; its verdict is checked."""
    kind = (WITH_RESULT, WITH_CRASH)[number % 2]
    scenario = replace(
        kind,
        act=lambda run: kill_after(seconds, run),
        # The second start finds what the first one wrote, and may find it before it was logged.
        lines=(0, 1),
    )
    run = stage.new_run(f"{kind.name}-{number}")
    with explained(run):
        play(run, scenario, "native")
        check(run, scenario)
        assert 1 == max(
            container_status(seen.object, REPORTER).get("restartCount", 0) for seen in run.pods()[0]
        )
    return run


@pytest.mark.timeout(900)
def test_reporter_killed_at_a_random_instant_of_40_jobs(
    stage: Stage, figures: Callable[[str], None]
) -> None:
    """Each Job has its right final verdict once, whenever the kill came."""
    chance = random.Random(SEED)
    instants = [chance.uniform(0, LATEST) for _ in range(JOBS)]
    figures(f"kill series: KILL_SEED={SEED}")
    with ThreadPoolExecutor(AT_ONCE) as pool:
        done = list(pool.map(lambda each: killed(stage, *each), enumerate(instants)))

    found = [run for run in done if "Final verdict is already" in json.dumps(run.log())]
    figures(f"{len(done)} verdicts right, {len(found)} of them found by the second start")
    assert JOBS == len(done)
