"""The report for a person: a Job in memory, and the lines that tell what happens to it."""

import io
from dataclasses import replace

import pytest
import yaml

from reporter.author.terminal import JobInMemory, Timeline
from reporter.sidecar.job import JobCondition
from reporter.verdict.case import Observation
from reporter.verdict.condition import Attempt, Statement
from reporter.verdict.facts import (
    Container,
    FileAbsent,
    Pod,
    PodSeen,
    Progress,
    Running,
    Terminated,
)
from reporter.verdict.history import History
from reporter.verdict.rows import Report

ATTEMPT = Attempt("pod", "uid-1", 100.0, 100.0)
RUNNING = Report("A", "Unknown", "AdapterRunning", "Adapter container is running")
FINE = Report("R", "True", "Fine", "It works")


def statement(report, wall):
    return Statement(report, report.row == "R", ATTEMPT, {}, wall)


def observation(state=None, file=None, progress=None):
    pod = PodSeen(Pod("pod", adapter=Container("adapter", state or Running(100.0))))
    return Observation(1.0, pod, file or FileAbsent(), History(0.0, 100.0), progress=progress)


@pytest.fixture
def job():
    return JobInMemory("default", "try")


@pytest.fixture
def sink(job):
    condition = JobCondition(job, "default", "try", "Available")
    condition.read()
    return condition


@pytest.fixture
def out():
    return io.StringIO()


def lines(out):
    """What was printed, without the header and the times."""
    printed = out.getvalue().splitlines()[1:]
    assert {} == {line: 0 for line in printed if not line.startswith("# ")}
    return [line.split("s  ", 1)[1] for line in printed]


def test_the_condition_is_merged_as_the_api_server_does(job, sink):
    """One condition of our type, its transition time kept while the status stays."""
    sink.write(statement(RUNNING, 1000.0))
    sink.write(statement(replace(RUNNING, message="more"), 2000.0))
    sink.write(statement(FINE, 3000.0))
    sink.write(statement(replace(FINE, message="still"), 4000.0))

    (condition,) = job.shown["status"]["conditions"]
    assert {
        "type": "Available",
        "status": "True",
        "reason": "Fine",
        "message": "still",
        "lastProbeTime": "1970-01-01T01:06:40Z",
        "lastTransitionTime": "1970-01-01T00:50:00Z",
    } == condition
    assert "5" == job.shown["metadata"]["resourceVersion"]


def test_the_annotation_alone_leaves_the_condition(job, sink):
    """As when the adapter's end contradicts its result."""
    sink.write(statement(FINE, 1000.0))
    before = job.shown["status"]
    sink.annotate("after", {"exitCode": 1})

    assert before == job.shown["status"]
    note = yaml.safe_load(job.shown["metadata"]["annotations"]["status-reporter.io/Available"])
    assert {"exitCode": 1} == note["after"]


def test_each_write_is_one_line_of_comment(out):
    """Status, whether it is final, reason, message."""
    timeline = Timeline(out, colour=False)
    timeline.published(statement(RUNNING, 1.0), 0.001)
    timeline.published(statement(FINE, 1.0), 0.001)

    assert [
        "Unknown  no     AdapterRunning            Adapter container is running",
        "True     yes    Fine                      It works",
    ] == lines(out)


def test_what_the_adapter_does_is_told_once(out):
    """Progress when it changes, the end with its signal."""
    timeline = Timeline(out, colour=False)
    ended = Terminated(137, "OOMKilled", signal=9)
    for o in (
        observation(),
        observation(progress=Progress(total=3, completed=1)),
        observation(progress=Progress(total=3, completed=1)),
        observation(progress=Progress()),
        observation(ended),
        observation(ended),
    ):
        timeline.observed(o)

    assert [
        "progress: 1 of 3 completed",
        "progress: nothing said",
        "the adapter exited with code 137 (OOMKilled, SIGKILL)",
    ] == lines(out)


def test_a_command_that_cannot_be_started_says_why(out):
    """The runtime's message is all there is."""
    Timeline(out, colour=False).observed(observation(Terminated(128, "StartError", "no such file")))

    assert ["the adapter exited with code 128 (StartError): no such file"] == lines(out)


def test_a_remark_cannot_leave_its_comment(out):
    """Nothing from outside may break the line or reach the terminal's controls."""
    Timeline(out, colour=False).remark("one\ntwo\x1b[31m")

    assert ["one two[31m"] == lines(out)


def test_colours_are_for_terminals_only(out):
    """And the status alone is coloured."""
    Timeline(out, colour=True).published(statement(FINE, 1.0), 0.0)

    assert "\x1b[32mTrue   \x1b[0m  yes" in out.getvalue()
