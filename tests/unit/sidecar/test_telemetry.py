"""How often what is said, and what becomes a metric."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reporter.common import log
from reporter.errors import Conflict, Denied, Forbidden, KubeError, Unavailable
from reporter.sidecar import telemetry
from reporter.sidecar.metrics import Metrics
from reporter.sidecar.telemetry import REPEAT, Telemetry
from reporter.verdict.case import Observation
from reporter.verdict.condition import Attempt, Note, Standing, Statement
from reporter.verdict.facts import (
    Container,
    FileAbsent,
    FileIdentity,
    FileValid,
    Job,
    Pod,
    PodSeen,
    PodUnknown,
    Progress,
    ResultPayload,
    Running,
    Terminated,
)
from reporter.verdict.history import History
from reporter.verdict.rows import Report

OBSERVATION = Observation(
    now=0.0, pod=PodUnknown(), file=FileAbsent(), history=History(0.0, 0.0), job=None
)
STATEMENT = Statement(
    report=Report("X", "False", "AdapterExitedWithError", "exited with code 1"),
    final=True,
    attempt=Attempt("pod", "uid", 1.0, 1.0),
    evidence={"file": {"state": "absent"}},
    wall=2.0,
)


class Listener:
    """A telemetry with a clock of its own, and all it said."""

    def __init__(self, logs: list[dict[str, Any]]) -> None:
        self.now = 0.0
        self.metrics = Metrics("0.1.0")
        self.telemetry = Telemetry(self.metrics, lambda: self.now)
        self.logs = logs

    def said(self, message: str) -> list[dict[str, Any]]:
        return [event for event in self.logs if event["message"] == message]

    @property
    def page(self) -> str:
        return self.metrics.render().body.decode()


@pytest.fixture
def listener():
    with log.capture() as logs:
        yield Listener(logs)


def seen(container: Container, **fields: Any) -> Observation:
    """An observation of a Pod with this adapter."""
    return replace(OBSERVATION, pod=PodSeen(Pod("pod", adapter=container, **fields)))


def test_the_same_failure_is_said_every_half_minute(listener: Listener) -> None:
    """An outage of an hour is 120 lines, not thousands."""
    for second in range(3600):
        listener.now = float(second)
        listener.telemetry.failed("job", Unavailable("away"))

    assert 3600 / REPEAT == len(listener.said("Request failed"))
    assert 'failures_total{failure="unavailable"} 3600.0' in listener.page


def test_another_failure_is_said_at_once(listener: Listener) -> None:
    """Of another class, or of another request."""
    listener.telemetry.failed("job", Unavailable("away"))
    listener.telemetry.failed("job", Forbidden("no"))
    listener.telemetry.failed("getPod", Forbidden("no"))

    assert [("job", "unavailable"), ("job", "forbidden"), ("getPod", "forbidden")] == [
        (event["request"], event["failure"]) for event in listener.said("Request failed")
    ]


@pytest.mark.parametrize(
    ("error", "hint"), [(Forbidden("no"), "Role"), (Denied("no"), "admission policy or webhook")]
)
def test_a_refusal_names_what_to_look_at(listener: Listener, error: Forbidden, hint: str) -> None:
    """No Role helps against an admission webhook."""
    listener.telemetry.failed("job", error)

    (event,) = listener.said("Request failed")
    assert hint in event["hint"]
    assert ("Role" in event["hint"]) == (type(error) is Forbidden)
    assert f'failures_total{{failure="{error.failure}"}} 1.0' in listener.page


@pytest.fixture
def left(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is left in the termination message, one after the other."""
    said = list[str]()
    monkeypatch.setattr(telemetry, "leave_message", said.append)
    return said


@pytest.mark.parametrize(
    ("error", "how"),
    [
        (Forbidden("no"), "; writing it was forbidden: no"),
        (Denied("no"), "; writing it failed: no"),
        (Unavailable("away"), "; writing it failed: away"),
        (None, "; writing it failed: no answer"),
    ],
)
def test_a_verdict_that_cannot_be_written_is_left_behind(
    listener: Listener, left: list[str], error: KubeError | None, how: str
) -> None:
    """In the termination message, with why the last write failed, once."""
    if error:
        listener.telemetry.failed("job", error)
    listener.telemetry.failed("pod", Forbidden("of something else"))
    listener.telemetry.withheld(STATEMENT.report, {})
    listener.telemetry.withheld(STATEMENT.report, {})

    assert [f"the verdict was False AdapterExitedWithError: exited with code 1{how}"] == left


def test_a_write_that_is_accepted_takes_back_what_was_left(
    listener: Listener, left: list[str]
) -> None:
    """By this process or one before; and what had failed until then is no cause any more."""
    listener.telemetry.published(STATEMENT, 0.0)
    listener.telemetry.failed("job", Forbidden("the RoleBinding came late"))
    listener.telemetry.published(STATEMENT, 0.0)
    listener.telemetry.withheld(STATEMENT.report, {})
    assert ["", "no answer"] == [words.rpartition(": ")[2] for words in left]

    listener.telemetry.found(Standing(Job(), "1", "True", "Fine"))
    assert "" == left[-1]


def test_the_file_of_the_termination_message(tmp_path: Path) -> None:
    """The kubelet makes it; where there is none nobody would read it."""
    path = tmp_path / "termination-log"
    telemetry.leave_message("nobody", str(path))
    assert not path.exists()
    path.touch()
    for words in ("a long one", "short", ""):
        telemetry.leave_message(words, str(path))
        assert words == path.read_text()


def test_a_conflict_is_no_warning(listener: Listener) -> None:
    """The Job's controller writes to the same status: one of both tries again."""
    for failure in (Conflict("409"), Unavailable("away")):
        listener.telemetry.failed("job", failure)

    assert ["info", "warning"] == [each["level"] for each in listener.said("Request failed")]


def test_a_failure_after_a_success_is_new(listener: Listener) -> None:
    """It has nothing to do with the one before."""
    listener.telemetry.failed("job", Unavailable("away"))
    listener.telemetry.published(STATEMENT, 0.1)
    listener.telemetry.failed("job", Unavailable("away"))

    assert 2 == len(listener.said("Request failed"))


def test_only_failures_of_the_job_are_failed_publishes(listener: Listener) -> None:
    """The Pod's are counted by class alone."""
    listener.telemetry.failed("watchPod", Unavailable("away"))
    listener.telemetry.failed("job", Unavailable("away"))

    assert 'publishes_total{result="failed"} 1.0' in listener.page


@pytest.mark.parametrize(("final", "message"), [(True, "Verdict"), (False, "Condition written")])
def test_only_a_final_write_is_a_verdict(listener: Listener, final: bool, message: str) -> None:
    """One canonical line per verdict."""
    listener.telemetry.published(replace(STATEMENT, final=final), 0.12345678)

    (event,) = [event for event in listener.logs if "evidence" in event]
    assert (message, final, 0.1235) == (event["message"], event["final"], event["publishSeconds"])
    assert f"status_reporter_verdict_final {float(final)}" in listener.page


def test_a_verdict_of_an_earlier_start_is_shown(listener: Listener) -> None:
    """In the metrics as if we had written it; the log says that we did not."""
    note = Note(Attempt("pod", "uid", 1.0, 1.0), True, "R")
    listener.telemetry.found(
        Standing(job=Job(), resource_version="1", status="True", reason="AllGood", note=note)
    )

    assert [] == listener.said("Verdict")
    assert 'verdict{reason="FromResult"} 1.0' in listener.page
    assert "status_reporter_verdict_final 1.0" in listener.page


def test_the_adapters_state_is_said_when_it_changes(listener: Listener) -> None:
    """Not with every look; a new run is a change."""
    running, ended = Container("a", Running()), Container("a", Terminated(3, "Error"))
    for container in (running, running, ended, ended, replace(running, restarts=1)):
        listener.telemetry.observed(seen(container))

    assert [("running", 0), ("terminated", 0), ("running", 1)] == [
        (event["state"], event["restarts"]) for event in listener.said("Adapter state")
    ]


def test_the_exit_code_is_that_of_the_last_ended_run(listener: Listener) -> None:
    """Before the first end there is none; while the next run goes on it is the one before."""
    first = Terminated(3)
    listener.telemetry.observed(seen(Container("a", Running())))
    assert "adapter_exit_code" not in listener.page
    listener.telemetry.observed(seen(Container("a", first)))
    assert "adapter_exit_code 3.0" in listener.page
    listener.telemetry.observed(seen(Container("a", Running(), last=first, restarts=1)))
    assert "adapter_exit_code 3.0" in listener.page


def test_remarks_are_said_once(listener: Listener) -> None:
    """On the file, on how the adapter was found, on the settings, on the Job."""
    file = FileValid(ResultPayload(True, "r", "m", ("key 'Status'",)), FileIdentity(1, 2, 3, 4))
    odd = seen(Container("a", Running()), remarks=("guessed",), misfit="no such container")
    for _ in range(3):
        listener.telemetry.observed(replace(odd, file=file, job=Job(parallel=True)))

    assert 4 == len([event for event in listener.logs if event["level"] == "warning"])


@pytest.mark.parametrize(("index", "count"), [(None, 1), (0, 0)])
def test_several_completions_without_an_index_are_warned_about(
    listener: Listener, index: int | None, count: int
) -> None:
    look = seen(Container("a", Running()), index=index)
    listener.telemetry.observed(replace(look, job=Job(completions=3)))

    assert count == len([event for event in listener.logs if event["level"] == "warning"])


def test_progress_becomes_metrics(listener: Listener) -> None:
    """Numbers only."""
    progress = Progress(msg="secret", total=5, completed=2, failures=("a",), errors=())
    listener.telemetry.observed(replace(OBSERVATION, progress=progress))

    for line in ("completed 2.0", "expected 5.0", "failures 1.0", "errors 0.0"):
        assert f"status_reporter_progress_{line}" in listener.page
    assert "secret" not in listener.page
