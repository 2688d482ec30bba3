"""What becomes of a Pod that cannot reach the aggregator, by what its log says."""

import pytest

from reporter.jobs.reporter_log import unreached
from reporter.launch.decide import HEARD
from reporter.run.plan import Plugin
from tests.unit.launch.cluster import (
    CHECK,
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
WHY = "cannot resolve r.ns.svc: Name or service not known"
LINE = f'{{"level":"warning","message":"Cannot reach the aggregator","error":"{WHY}"}}\n'
REACHED = '{"level":"info","message":"Reached the aggregator"}\n'


def begun(contract="done-file", **fields):
    """A launcher whose plugin's container has begun."""
    return Launcher(check_run(contract, **fields)).launch(CHECK).started(CHECK)


def seen(why="", *, plugin=None, ours=None, contract="done-file", job=JOB, heard=()):
    """A Pod at work, whose log was read."""
    pod = api_pod(CHECK, plugin or running(), ours or running(), phase="Running", contract=contract)
    world = {"jobs": [job], "pods": [pod], "obstacles": {CHECK: why}}
    return {**world, "heard": frozenset(heard)}


@pytest.mark.parametrize("contract", ["result-file", "done-file"])
@pytest.mark.parametrize("plugin", [running(), ended(0)])
def test_it_is_shown_and_never_fails_by_it(contract, plugin):
    """A network may come late, and nobody may be better off who does not say what is wrong."""
    launcher = begun(contract)
    for after in (20, 3_000):
        shown = launcher.look(after, **seen(WHY, contract=contract, plugin=plugin))
        assert ({}, ("AggregatorUnreachable", WHY)) == (
            shown.fail,
            (shown.pods[CHECK].reason, shown.pods[CHECK].message),
        )


@pytest.mark.parametrize(
    "over",
    [seen(WHY, heard=[CHECK]), seen()],
    ids=["its worker is heard", "its log says so"],
)
def test_a_fault_that_passes(over):
    launcher = begun()
    launcher.look(20, **seen(WHY))
    assert "" == launcher.look(40, **over).pods[CHECK].reason


def test_the_verdict_of_the_sidecar():
    """It is on the Job, whoever is reached beside."""
    job = judged_job("True", "AllGood", "all 12 checks passed")
    launcher = begun("result-file")
    late = seen(WHY, contract="result-file", plugin=ended(0), ours=ended(0), job=job)
    launcher.look(10, **late)
    failure = launcher.look(70, **late).fail[CHECK]
    assert f"all 12 checks passed; its result never arrived: {WHY}" == failure.text
    assert ("AllGood", "passed") == (failure.reason, failure.verdict)


def test_a_plugin_that_has_ended_too():
    """What its worker's log said last is why nothing came."""
    launcher = begun()
    over = seen(WHY, plugin=ended(0), ours=ended(1))
    launcher.look(0, **over)
    text = launcher.look(60, **over).fail[CHECK].text
    assert text.endswith(f"exit code 0 (Completed), and its result never arrived: {WHY}")


@pytest.mark.parametrize(
    ("fields", "age", "looks", "asked"),
    [
        ({}, HEARD, seen(), True),
        ({}, HEARD - 1, seen(), False),
        ({}, HEARD, seen(heard=[CHECK]), False),
        ({}, HEARD, seen(ours=ended(1)), False),
        ({"heartbeats": False}, HEARD, seen(WHY), False),
        ({"contract": "link"}, HEARD, seen(WHY, contract="link"), False),
    ],
    ids=["never heard", "a moment ago", "heard", "ended", "no heartbeats", "a plugin's own log"],
)
def test_whose_log_is_looked_at(fields, age, looks, asked):
    """One of ours of which a heartbeat is due; of no other is anything shown."""
    launcher = begun(**fields)
    launcher.look(0, **looks)
    found = launcher.look(age, **looks)
    assert ([CHECK] if asked else []) == [*found.unheard]
    assert "" == found.pods[CHECK].reason


def test_workers_that_may_not_have_come_back():
    """Right after a restart of the aggregator nobody is looked at."""
    launcher = begun().restart()
    assert {} == launcher.look(5_000, **seen()).unheard
    assert [CHECK] == [*launcher.look(5_000 + HEARD, **seen()).unheard]


def test_a_plugin_that_has_not_started():
    """What keeps it from starting is said instead."""
    launcher = Launcher(run_of(Plugin("check"))).launch(CHECK)
    pod = api_pod(CHECK, {"waiting": {"reason": "ErrImagePull"}}, running())
    world = {"jobs": [JOB], "pods": [pod], "obstacles": {CHECK: WHY}}
    assert "ErrImagePull" == launcher.look(20, **world).pods[CHECK].reason


@pytest.mark.parametrize(
    ("log", "why"),
    [
        ("", ""),
        (LINE, WHY),
        (LINE + REACHED, ""),
        (LINE + REACHED + LINE, WHY),
        (LINE + '{"message":"Worker started"}\nnot JSON\n', WHY),
        (f"Cannot reach the aggregator: {WHY}\n", ""),
        (LINE + "\x0b" * 2**20, WHY),
        (LINE.replace(WHY, "\\u001b[31m" + "x" * 5_000), f"[31m{'x' * 5_000}"[:1024]),
    ],
    ids=["empty", "log", "over", "again", "old", "another's", "many lines", "hostile"],
)
def test_what_a_log_says(log, why):
    """The last word counts, and only ours."""
    assert why == unreached(log)
