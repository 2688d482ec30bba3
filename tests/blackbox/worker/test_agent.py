"""The agent as a process against real TLS: gatherers run, one archive, what a signal does."""

import json
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.aggregators.scripted import Scripted
from tests.archives.tars import contents
from tests.blackbox.worker.process import Process, running

LAUNCHER = Path("cmd/status-agent.py").absolute()
ENDED = "Agent exits"


@pytest.fixture
def scripted() -> Iterator[Scripted]:
    with Scripted() as aggregator:
        yield aggregator


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    (tmp_path / "gatherers.d").mkdir()
    return tmp_path / "gatherers.d"


def agent(scripted: Scripted, programs: Path, **variables: str) -> AbstractContextManager[Process]:
    """Start `status-agent gather` on a node, with just this environment."""
    place = programs.parent
    return running(
        *(str(LAUNCHER), "gather", "--out", str(place / "out")),
        *("--gatherers", str(programs), "--host", "/"),
        environ={
            **scripted.environment(),
            "AGGREGATOR_SCOPE": "node",
            "NODE_NAME": "node1",
            **variables,
        },
    )


def script(programs: Path, name: str, text: str) -> None:
    """Put a gatherer there, in sh."""
    (programs / name).write_text(f"#!/bin/sh\n{text}\n")
    (programs / name).chmod(0o755)


def test_what_gatherers_write_is_delivered_as_one_archive(
    scripted: Scripted, programs: Path
) -> None:
    """One that fails costs the others nothing."""
    script(programs, "10-fails", "echo half >$GATHER_OUT/half; exit 7")
    script(programs, "20-tells", 'echo "$NODE_NAME in $GATHER_HOST_ROOT" >$GATHER_OUT/told')

    with agent(scripted, programs) as process:
        (put,) = scripted.heard(1, "results")
        code = process.join()

    files = contents(put.body)
    assert (0, "") == (code, process.errors)
    assert "/api/v1/results/by-node/node1/e2e" == put.target
    assert (b"half\n", b"node1 in /\n") == (files["fails/half"], files["tells/told"])


def test_the_agent_says_how_far_it_is_and_that_it_lives(scripted: Scripted, programs: Path) -> None:
    """One that takes long is neither silent nor taken for dead."""
    pipes = [programs.parent / name for name in ("one", "two")]
    for number, pipe in enumerate(pipes, 1):
        os.mkfifo(pipe)
        script(programs, f"{number}0-{pipe.name}", f"cat {pipe}")

    with agent(scripted, programs, WORKER_HEARTBEAT_SECONDS="1") as process:
        scripted.heard(1, "progress")
        pipes[0].write_bytes(b"")
        scripted.heard(2, "progress")
        scripted.heard(2, "health")
        pipes[1].write_bytes(b"")
        told = [json.loads(each.body) for each in scripted.heard(3, "progress")]
        scripted.heard(1, "results")
        assert 0 == process.join()

    said = [(each["msg"], each["completed"], each["total"]) for each in told]
    assert [("gathering: one", 0, 2), ("gathered: one", 1, 2), ("gathered: two", 2, 2)] == said


def test_all_gatherers_failing_is_a_failure(scripted: Scripted, programs: Path) -> None:
    """What they have left goes along with the report."""
    script(programs, "10-fails", "echo half >$GATHER_OUT/half; exit 7")

    with agent(scripted, programs) as process:
        (put,) = scripted.heard(1, "results")
        code = process.join()

    assert (1, "error") == (code, put.headers["result-outcome"])
    assert b"half\n" == contents(put.body)["output/fails/half"]
    assert b"every gatherer has failed: fails" in contents(put.body)["error.json"]


def test_without_gatherers_there_is_a_report_at_once(scripted: Scripted, programs: Path) -> None:
    with agent(scripted, programs) as process:
        (put,) = scripted.heard(1, "results")

        assert 1 == process.join()
    assert b"there are no gatherers in" in contents(put.body)["error.json"]


def test_a_signal_ends_what_runs_and_what_is_there_is_sent(
    scripted: Scripted, programs: Path
) -> None:
    """Not as a result: nobody could tell it from a complete one."""
    ready = programs.parent / "ready"
    os.mkfifo(ready)
    script(programs, "10-tells", "echo told >told")
    script(programs, "20-hangs", f"echo half >half; echo >{ready}; sleep 600")

    with agent(scripted, programs) as process:
        ready.read_bytes()
        process.signal()
        (put,) = scripted.heard(1, "results")
        code = process.join()

    files = contents(put.body)
    assert (1, "error") == (code, put.headers["result-outcome"])
    assert b"terminated before hangs had ended" in files["error.json"]
    assert (b"told\n", b"half\n") == (files["output/tells/told"], files["output/hangs/half"])


def test_no_gatherer_sees_the_key_of_the_agent(scripted: Scripted, programs: Path) -> None:
    script(programs, "10-looks", "env >env")

    with agent(scripted, programs, MY_OPTION="1") as process:
        (put,) = scripted.heard(1, "results")
        process.join()

    names = {line.partition(b"=")[0] for line in contents(put.body)["looks/env"].splitlines()}
    assert {b"MY_OPTION", b"NODE_NAME", b"GATHER_DEADLINE", b"PATH"} <= names
    assert not {b"CLIENT_KEY", b"CLIENT_CERT", b"CA_CERT", b"AGGREGATOR_URL"} & names


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"SNAPSHOT_SECONDS": "0"}, b"SNAPSHOT_SECONDS: must be an integer from 1"),
        ({}, b"KUBERNETES_SERVICE_HOST"),
    ],
    ids=["invalid settings", "no cluster"],
)
def test_a_snapshot_that_cannot_begin_is_reported_at_once(
    scripted: Scripted, tmp_path: Path, variables: dict[str, str], said: bytes
) -> None:
    command = (str(LAUNCHER), "snapshot", "--out", str(tmp_path / "out"))
    with running(*command, environ={**scripted.environment(), **variables}) as process:
        (put,) = scripted.heard(1, "results")

        assert 1 == process.join()
    assert "/api/v1/results/global/e2e" == put.target
    assert said in contents(put.body)["error.json"]
