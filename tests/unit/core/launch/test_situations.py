"""Each row of the table: what is seen becomes a failure after its time, and not before."""

import pytest

from reporter.core.run.record import Cause
from tests.unit.core.launch.cluster import (
    CHECK,
    NOW,
    Launcher,
    api_job,
    api_pod,
    api_refusal,
    check_run,
    ended,
    running,
    waiting,
)

JOB = api_job(CHECK)
QUOTA = 'Error creating: pods "r-check-1" is forbidden: exceeded quota: none'


def pod(plugin=None, ours=None, **fields):
    """The Pod of the one plugin."""
    return api_pod(CHECK, plugin, ours, **fields)


def image(reason="ErrImagePull", message="not found"):
    """A Pod whose image cannot be pulled."""
    return pod(waiting(reason, message), running())


CASES = {
    "the Pod is refused by a quota": (
        {"jobs": [JOB], "events": [api_refusal(CHECK, QUOTA)]},
        60,
        (Cause.START_FAILED, "FailedCreate"),
        f"The Job cannot create its Pod (FailedCreate: {QUOTA})",
    ),
    "no Pod is made": (
        {"jobs": [JOB]},
        600,
        (Cause.START_FAILED, "NoPod"),
        "not started within 10m0s: The Job has no Pod",
    ),
    "the image cannot be pulled": (
        {"jobs": [JOB], "pods": [image()]},
        300,
        (Cause.START_FAILED, "ErrImagePull"),
        "container 'main': ErrImagePull: not found",
    ),
    "the image has an invalid name": (
        {"jobs": [JOB], "pods": [image("InvalidImageName", "bad")]},
        60,
        (Cause.START_FAILED, "InvalidImageName"),
        "container 'main': InvalidImageName: bad",
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_it_fails_after_its_time(case):
    """Shown from the first look on; a failure then, and not a moment before."""
    seen, seconds, (cause, reason), text = case
    launcher = Launcher(check_run()).launch(CHECK)
    launcher.look(0, **seen)
    before = launcher.look(seconds - 0.1, **seen)
    assert {} == before.fail
    assert NOW + seconds == pytest.approx(before.next_look)
    after = launcher.look(seconds, **seen)
    failure = after.fail[CHECK]
    assert (cause, reason, text) == (failure.cause, failure.reason, failure.text)


def test_a_fresh_run_begins_creates_adopts_and_ends():
    """The whole way of one plugin, in the order of a launcher's looks."""
    launcher = Launcher(check_run(), begun=False)
    assert launcher.look(0).begin
    launcher.begun = True
    assert (CHECK,) == launcher.look(0).create
    assert (CHECK,) == launcher.look(1, jobs=[JOB]).adopt
    launcher.launch(CHECK)
    made = launcher.look(2, jobs=[JOB], pods=[pod(running(), running(), phase="Running")])
    assert CHECK in made.start
    launcher.receive(CHECK)
    gone = pod(ended(), ended(), phase="Succeeded")
    made = launcher.look(9, jobs=[JOB], pods=[gone])
    assert ((CHECK,), (), False) == (made.take_logs, made.delete, made.through)
    made = launcher.look(9, jobs=[JOB], pods=[gone], taken_logs=frozenset({CHECK}))
    assert (JOB["metadata"]["name"],) == made.delete
    made = launcher.look(10)
    assert made.through
