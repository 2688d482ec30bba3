"""What `explain` says of a verdict that may change, because the Job repeats a failed check."""

import pytest

from reporter.verdict import rows
from reporter.verdict.facts import Container, Waiting
from tests.unit.jobs.world import BAD, EXITED, FAILED, GOOD, explain, job, pod

LOOPING = rows.crash_looping(Container("adapter", Waiting("CrashLoopBackOff"), EXITED, 4))
EXIT = rows.exited(EXITED, result_required=True)


def repeating(*reports, limit=6, policy="Never", final=True, **spec):
    """A Job on which these verdicts stand, and that retries."""
    made = job(*reports, final=final, spec={"backoffLimit": limit, **spec})
    made["spec"]["template"]["spec"]["restartPolicy"] = policy
    return made


def said(made):
    return [each for each in explain(made, pod()) if each.code == "repeated"]


@pytest.mark.parametrize("report", [rows.result(BAD), EXIT, LOOPING, rows.timeout(300)])
def test_restarts(report):
    """As in Kubernetes' own example of a CronJob: minutes pass until the verdict stays."""
    (found,) = said(repeating(report, policy="OnFailure", final=False))

    assert "info" == found.weight
    assert found.what == (
        "If the check exits with an error, the Job restarts it, up to 6 times, with growing "
        "pauses: the verdict may change until then."
    )
    assert found.todo == (
        'To stop this, kubectl patch job validate -n default -p \'{"spec":{"backoffLimit":0}}\'; '
        "for later Jobs, set restartPolicy: Never and backoffLimit: 0."
    )


def test_more_pods():
    """The verdict is the last of its Pod, but not of the Job; two of them are one sentence."""
    (found,) = said(repeating(EXIT, rows.result(BAD), limit=1))

    assert found.what == (
        "If the check exits with an error, the Job starts another Pod, once: the verdict may "
        "change until then."
    )
    assert found.todo.endswith("for later Jobs, set backoffLimit: 0.")


def test_it_follows_the_verdict():
    """What happened comes first."""
    codes = [each.code for each in explain(repeating(EXIT), pod())]

    assert ["verdict", "repeated"] == codes[:2]


def without_a_limit():
    made = repeating(EXIT)
    del made["spec"]["backoffLimit"]
    return made


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(repeating(), id="no verdict yet"),
        pytest.param(repeating(rows.result(GOOD)), id="a success"),
        pytest.param(repeating(rows.running(None, None), final=False), id="work in progress"),
        pytest.param(
            repeating(rows.trouble(rows.Row.IMAGE, "ErrImagePull"), final=False),
            id="no image",
        ),
        pytest.param(repeating(EXIT, limit=0, policy="OnFailure"), id="not repeated"),
        pytest.param(repeating(EXIT, backoffLimitPerIndex=2), id="a limit of each index"),
        pytest.param(without_a_limit(), id="an answer with a part missing"),
        pytest.param(
            job(EXIT, spec={"backoffLimit": 6}, conditions=[FAILED]), id="the Job has failed"
        ),
        pytest.param(
            job(
                EXIT,
                spec={"backoffLimit": 6},
                conditions=[{"type": "FailureTarget", "status": "True"}],
            ),
            id="the Job is about to fail",
        ),
    ],
)
def test_nothing_is_repeated(made):
    """Or nothing is known of it."""
    assert [] == said(made)
