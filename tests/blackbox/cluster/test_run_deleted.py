"""`status-ctl delete` on a real node, in each phase of a run."""

from __future__ import annotations

import os
import subprocess
from time import monotonic
from typing import Any

import pytest

from tests.aggregators.bucket import Bucket
from tests.blackbox.cluster.scene import (
    BOUND,
    FIRST,
    SLEEPS,
    SONOBUOYS,
    Person,
    gateway,
    phases,
    wait_pods,
    write,
)
from tests.scripted_server import Silence

OBEYS = SONOBUOYS.replace(
    "&& while true; do sleep 3600; done", "; trap 'exit 0' TERM; sleep 3600 & wait"
)
"""As above, but it ends when it is asked to: nobody waits for its grace period."""
pytestmark = [
    pytest.mark.node,
    pytest.mark.timeout(900),
    # Begins now, so that it is over when its tests come.
    pytest.mark.usefixtures("slow_run"),
]


@pytest.mark.parametrize("time", range(int(os.environ.get("DELETIONS", "1"))))
class TestDeletesInEachPhase:
    """L3: nothing of the run is left, whatever it was doing; DELETIONS=10 tries each ten times."""

    def start(self, person: Person, run: str, *more: str) -> subprocess.Popen[str]:
        sonobuoys = write(person.home, "systemd-logs.yaml", OBEYS)
        files = ("-f", str(FIRST), "-f", sonobuoys)
        return person.start("run", *files, "--name", run, "--storage", "none", *more)

    def test_before_the_aggregator_is_ready(self, person: Person, run: str, time: int) -> None:
        """The command that started it has been killed."""
        with self.start(person, run) as process:
            assert process.stderr is not None
            assert any("created in new namespace" in line for line in process.stderr)
            process.kill()

        assert 0 == person.run("delete", run, "--yes")[0]
        assert [] == person.left_of(run)

    def test_while_plugins_start(self, person: Person, run: str, time: int) -> None:
        sleeps = write(person.home, "sleeps.yaml", SLEEPS)
        code, _, err = person.run("run", "-f", sleeps, "--name", run, "--storage", "none")
        assert 0 == code, err

        code, _, err = person.run("delete", run)
        assert (1, True) == (code, "it is still running" in err)
        code, _, err = person.run("delete", run, "--yes")
        assert 0 == code, err
        assert [] == person.left_of(run)

    def test_while_plugins_run(self, person: Person, run: str, time: int) -> None:
        sleeps = write(person.home, "sleeps.yaml", SLEEPS)
        code, _, err = person.run("run", "-f", sleeps, "--name", run, "--storage", "none")
        assert 0 == code, err
        wait_pods(person, run, lambda pods: phases(pods) == ["Running"] * 2)

        code, _, err = person.run("delete", run, "--yes")
        assert 0 == code, err
        assert [] == person.left_of(run)

    def test_while_it_cleans_up(self, person: Person, run: str, time: int) -> None:
        """The first of its Jobs are being removed."""
        with self.start(person, run, "--wait") as process:
            seen = [0]

            def fewer(pods: list[Any]) -> bool:
                seen.append(len(pods))
                return seen[-1] < max(seen)

            wait_pods(person, run, fewer)
            process.kill()

        code, _, err = person.run("delete", run, "--yes")
        assert 0 == code, err
        assert [] == person.left_of(run)

    def test_while_its_upload_hangs(self, person: Person, run: str, time: int) -> None:
        """The store takes the tarball and never answers: nobody waits for it."""
        greeting = write(person.home, "greeting.yaml", FIRST.read_text().partition("\n---\n")[0])
        address = gateway(person.cluster)
        with Bucket(person.home / "store", Silence(), address=address) as store:
            code, _, err = person.run(
                *("run", "-f", greeting, "--name", run, "--storage", "none"), *store.flags
            )
            assert 0 == code, err
            (request,) = store.heard(1, timeout=BOUND)
            assert "PUT" == request.method

            code, _, err = person.run("delete", run)
            assert (1, True) == (code, "it is still running" in err)
            began = monotonic()
            code, _, err = person.run("delete", run, "--yes")
            print(f"deleted while its upload hung: {monotonic() - began:.1f} s")
            assert 0 == code, err
            assert [] == person.left_of(run)
            assert 1 == len(store.requests)

    def test_when_it_is_over(self, person: Person, run: str, time: int) -> None:
        with self.start(person, run, "--wait") as process:
            process.communicate(timeout=BOUND)

        code, _, err = person.run("delete", run)
        assert (1, True) == (code, "its results were not downloaded" in err)
        assert 0 == person.run("delete", run, "--yes")[0]
        assert [] == person.left_of(run)
