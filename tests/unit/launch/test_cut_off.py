"""What becomes of a Pod that cannot reach the aggregator, by what its log says."""

import pytest

from reporter.jobs.reporter_log import unreached
from reporter.launch.decide import HEARD
from reporter.launch.world import Obstacle
from reporter.run.names import entry_name
from reporter.run.plan import Plugin
from reporter.run.record import Cause
from tests.unit.launch.cluster import (
    CHECK,
    NOW,
    Launcher,
    api_job,
    api_pod,
    check_run,
    ended,
    run_of,
    running,
)
from tests.unit.launch.test_ends import judged_job

JOB = api_job(CHECK)
POD = f"{entry_name('r', CHECK)}-x7k2p"
WHY = "cannot resolve r.ns.svc: Name or service not known"
SAID = f"Cannot reach the aggregator: {WHY}"
LINE = f'{{"level":"warning","message":"Cannot reach the aggregator","error":"{WHY}"}}\n'
REACHED = '{"level":"info","message":"Reached the aggregator"}\n'


def begun(contract="done-file", **fields):
    """A launcher whose plugin's container has begun."""
    return Launcher(check_run(contract, **fields)).launch(CHECK).started(CHECK)


def seen(*, at=None, plugin=None, ours=None, contract="done-file", job=JOB, heard=()):
    """A Pod at work, whose log has said at that moment after the launch that it is cut off."""
    pod = api_pod(CHECK, plugin or running(), ours or running(), phase="Running", contract=contract)
    obstacles = {} if at is None else {CHECK: Obstacle(WHY, NOW + at)}
    world = {"jobs": [job], "pods": [pod], "obstacles": obstacles}
    return {**world, "heard": frozenset(heard)}


@pytest.mark.parametrize("contract", ["result-file", "done-file", "link"])
def test_it_is_shown_at_once_and_fails_later(contract):
    """And not before its log says the same then: it may be over, and nobody has looked."""
    launcher = begun(contract)
    shown = launcher.look(10, **seen(at=10, contract=contract))
    assert {} == shown.fail
    assert ("AggregatorUnreachable", WHY) == (shown.pods[CHECK].reason, shown.pods[CHECK].message)
    assert {} == launcher.look(99, **seen(at=99, contract=contract)).fail
    assert {} == launcher.look(105, **seen(at=99, contract=contract)).fail
    failure = launcher.look(106, **seen(at=105, contract=contract)).fail[CHECK]
    expected = (Cause.POD_FAILED, "AggregatorUnreachable", f"Pod {POD}: {WHY}")
    assert expected == (failure.cause, failure.reason, failure.text)


@pytest.mark.parametrize(
    "over",
    [{"at": 40, "heard": [CHECK]}, {"at": None}],
    ids=["its worker is heard", "its log says so"],
)
def test_a_fault_that_passes(over):
    """It counts from anew, if it comes back."""
    launcher = begun()
    launcher.look(10, **seen(at=10))
    assert "" == launcher.look(40, **seen(**over)).pods[CHECK].reason
    launcher.look(50, **seen(at=50))
    assert {} == launcher.look(135, **seen(at=135)).fail


def test_the_plugin_ends_meanwhile():
    """Its worker tries for minutes; the obstacle counts from when it was seen."""
    launcher = begun()
    launcher.look(10, **seen(at=10))
    launcher.look(40, **seen(at=40, plugin=ended(0)))
    late = launcher.look(100, **seen(at=100, plugin=ended(0)))
    assert f"Pod {POD}: {WHY}" == late.fail[CHECK].text


def test_the_aggregator_was_away_meanwhile():
    """Nobody could reach it then, so that time does not count."""
    launcher = begun()
    launcher.look(10, **seen(at=10))
    launcher.restart()
    launcher.look(65, **seen(at=65))
    assert {} == launcher.look(150, **seen(at=150)).fail
    assert [CHECK] == list(launcher.look(155, **seen(at=155)).fail)


def test_the_verdict_of_the_sidecar():
    """It is on the Job, whoever is reached beside."""
    job = judged_job("True", "AllGood", "all 12 checks passed")
    launcher = begun("result-file")
    launcher.look(10, **seen(at=10, contract="result-file"))
    late = seen(at=100, contract="result-file", plugin=ended(0), job=job)
    failure = launcher.look(100, **late).fail[CHECK]
    assert f"all 12 checks passed; its result never arrived: {WHY}" == failure.text
    assert ("AllGood", "passed") == (failure.reason, failure.verdict)


@pytest.mark.parametrize("said", [SAID, LINE])
def test_whoever_should_upload_has_left_word(said):
    """What nobody has looked for in its log."""
    launcher = begun()
    over = seen(plugin=ended(0), ours=ended(1, message=said))
    launcher.look(0, **over)
    text = launcher.look(60, **over).fail[CHECK].text
    assert text.endswith(f"exit code 0 (Completed), and its result never arrived: {WHY}")


@pytest.mark.parametrize(
    ("age", "looks", "asked"),
    [
        (HEARD, seen(), True),
        (HEARD - 1, seen(), False),
        (HEARD, seen(heard=[CHECK]), False),
        (HEARD, seen(ours=ended(1)), False),
    ],
    ids=["never heard", "a moment ago", "heard", "ended"],
)
def test_whose_log_is_looked_at(age, looks, asked):
    """Who beats, or has sent anything, is not cut off."""
    launcher = begun()
    launcher.look(0, **looks)
    assert ({CHECK: age} if asked else {}) == launcher.look(age, **looks).unheard


def test_workers_that_may_not_have_come_back():
    """Right after a restart of the aggregator nobody is looked at."""
    launcher = begun().restart()
    assert {} == launcher.look(5_000, **seen()).unheard
    assert {CHECK: HEARD} == launcher.look(5_000 + HEARD, **seen()).unheard


def test_a_plugin_that_has_not_started():
    """What keeps it from starting is said instead."""
    launcher = Launcher(run_of(Plugin("check"))).launch(CHECK)
    pod = api_pod(CHECK, {"waiting": {"reason": "ErrImagePull"}}, running())
    world = {"jobs": [JOB], "pods": [pod], "obstacles": {CHECK: Obstacle(WHY, NOW)}}
    assert "ErrImagePull" == launcher.look(20, **world).pods[CHECK].reason


@pytest.mark.parametrize(
    ("log", "why"),
    [
        ("", ""),
        (LINE, WHY),
        (SAID, WHY),
        (LINE + REACHED, ""),
        (LINE + REACHED + LINE, WHY),
        (LINE + '{"message":"Worker started"}\nnot JSON\n', WHY),
        (f"my own log: {SAID}\n", ""),
        (SAID + "\x1b[31m" + "x" * 5_000, f"{WHY}[31m{'x' * 5_000}"[:1024]),
    ],
    ids=["empty", "log", "message", "over", "again", "old", "a plugin's own", "hostile"],
)
def test_what_a_log_says(log, why):
    """The last word counts; a termination message is one, too."""
    assert why == unreached(log)
