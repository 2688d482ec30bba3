"""L9: the API server is away for a minute while runs start, work and clean up: delay only.

These tests come after those of the slow run, whose times an outage would change.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.bed.controlplane import ControlPlane
from tests.blackbox.cluster.scene import (
    BOUND,
    FIRST,
    SLEEPS,
    Person,
    entries,
    go_on,
    phases,
    wait_pods,
    wait_reachable,
    write,
)

AWAY = 60.0  # seconds
PHASES = ("launch", "work", "clean-up")
SLEEP_KEYS = ("sleeps-result-file/global", "sleeps-done-file/global")
RIGHT = dict.fromkeys(SLEEP_KEYS, ("complete", "passed"))
FIRSTS = {
    "greeting/global": ("complete", "passed"),
    "quota/global": ("complete", "failed"),
    "kernel/node1": ("complete", "passed"),
}

pytestmark = [pytest.mark.node, pytest.mark.timeout(900)]


class Uids:
    """The objects of a run's plugins: whatever is made twice, or anew, shows."""

    def __init__(self, person: Person, run: str) -> None:
        self._person, self._run = person, run

    def seen(self, kind: str) -> dict[str, str]:
        """Return their UIDs, by name."""
        where = ("-n", f"status-reporter-{self._run}", "-l", "status-reporter.io/plugin")
        listed = json.loads(self._person.cluster.kubectl("get", kind, *where, "-o", "json"))
        return {e["metadata"]["name"]: e["metadata"]["uid"] for e in listed["items"]}


@pytest.fixture
def runs(person: Person) -> Iterator[dict[str, str]]:
    """A run for each phase, by name; gone after the test, whatever became of it."""
    names = {phase: f"away-at-{phase}" for phase in PHASES}
    yield names
    for name in names.values():
        person.run("delete", name, "--yes")


@pytest.fixture
def person(cluster: ControlPlane, tmp_path: Any) -> Person:
    """Somebody in an empty folder."""
    return Person(cluster, tmp_path)


def working(pods: list[Any]) -> bool:
    """Return whether both sleepers are at work."""
    return phases(pods) == ["Running"] * 2


def test_the_api_server_is_away_for_a_minute(person: Person, runs: dict[str, str]) -> None:
    """Nothing is made twice, every verdict is right, and nothing is left."""
    sleeps = write(person.home, "sleeps.yaml", SLEEPS)
    for phase in ("work", "clean-up"):
        code, _, err = person.run("run", "-f", sleeps, "--name", runs[phase], "--storage", "none")
        assert 0 == code, err
    at_work = Uids(person, runs["work"])
    sleepers = {each: wait_pods(person, runs[each], working) for each in ("work", "clean-up")}
    before = at_work.seen("pods")
    with person.start(
        *("run", "-f", str(FIRST), "--name", runs["launch"], "--storage", "none")
    ) as process:
        # The first of them is there, its Pod is not, and the others are to come.
        wait_pods(person, runs["launch"], bool)
        for run in runs.values():
            wait_reachable(person, run)
        go_on(person, sleepers["clean-up"])
        person.cluster.stop_apiserver()
        try:
            time.sleep(AWAY)
        finally:
            person.cluster.start_apiserver()
        _, err = process.communicate(timeout=BOUND)

    assert before == at_work.seen("pods")
    go_on(person, sleepers["work"])
    for phase in PHASES:
        wanted = FIRSTS if phase == "launch" else RIGHT
        code, out, err = person.run("wait", f"run/{runs[phase]}", "--timeout", "4m", "-o", "json")
        if (int(phase == "launch"), wanted) != (code, entries(out)):
            # Whole: what pytest shows of a comparison would be cut.
            logs = person.run("logs", runs[phase])
            pytest.fail("\n".join((phase, out, err, *map(str, logs))))
    for run in runs.values():
        assert {} == Uids(person, run).seen("jobs"), run
        code, _, err = person.run("delete", run, "--yes")
        assert 0 == code, err
        assert [] == person.left_of(run)
