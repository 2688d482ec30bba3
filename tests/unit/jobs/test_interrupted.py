"""What `explain` says when a reporter or an adapter was ended before its time."""

import pytest

from reporter.verdict import rows
from reporter.verdict.facts import Terminated
from tests.fakekube import running, terminated
from tests.unit.jobs.world import (
    POD,
    UNPULLED,
    classic,
    deleted,
    disrupted,
    evicted,
    explain,
    failed_pod,
    job,
    looping,
    lost,
    pod,
)

TAIL = """\
atus":"Unknown","reason":"AdapterRunning","level":"error","message":"cut off"}
{"level":"info","message":"Adapter state"}
{"level":"error","message":"Invalid setting","problem":"A=1"}
{"level":"error","message":"Invalid setting","problem":"A=1"}
{"level":"error","message":"No such Job","job":"nobody","hint":"check JOB_NAME"}
{"level":"error"}
[]
"""


@pytest.mark.parametrize(
    ("tail", "said"),
    [
        (TAIL, ("Invalid setting: A=1", "No such Job: nobody (check JOB_NAME)")),
        ("first\nTraceback: last\n", ("Traceback: last",)),
        ('{"level":"info","message":"Adapter state"}', ()),
    ],
)
def test_what_a_reporter_said_before_it_ended_is_told_in_words(tail, said):
    """The kubelet keeps 2 KiB of its log, most of which nobody wants to read."""
    for state, code in (
        (classic(running(), terminated(1, message=tail)), "reporter-failed"),
        (looping(terminated(1, message=tail)), "crash-loop"),
    ):
        (found,) = [each for each in explain(job(), state) if each.code == code]

        assert "exit code 1 (Error)" in found.what
        assert "Adapter state" not in found.what
        assert said == found.evidence


@pytest.mark.parametrize("pod_of_verdict", [POD, "validate-old"])
@pytest.mark.parametrize("final", [True, False])
def test_a_reporter_that_ends_after_its_word(final, pod_of_verdict):
    """In the classic form exit code 1 goes with most final verdicts: nothing is wrong with it."""
    made = job(rows.timeout(300), final=final, pod=pod_of_verdict)
    codes = [each.code for each in explain(made, classic(running(), terminated(1)))]

    assert (not final or pod_of_verdict != POD) == ("reporter-failed" in codes)


def test_a_reporter_with_bad_settings_after_its_word():
    """Exit code 2 is never a verdict's."""
    made = job(rows.timeout(300))

    assert "reporter-failed" in [
        each.code for each in explain(made, classic(running(), terminated(2)))
    ]


@pytest.mark.parametrize(
    "change",
    [deleted("2030-01-01T12:10:20Z"), failed_pod("DeadlineExceeded"), evicted],
    ids=["deleted", "deadline", "evicted"],
)
def test_an_adapter_that_was_killed_with_its_pod(change):
    """137 is what the end of the grace period leaves, too: memory is not suspected."""
    (found,) = [
        each
        for each in explain(job(), pod(terminated(137), change=change))
        if each.code == "exited"
    ]

    assert "ended: exit code 137 (Error)." in found.what
    assert "memory" not in found.what


@pytest.mark.parametrize(
    ("report", "final", "pod_of_verdict", "expected"),
    [
        pytest.param(UNPULLED, True, POD, ["info deadline", "info not-running"], id="cause"),
        pytest.param(
            UNPULLED, False, POD, ["problem deadline", "problem lost"], id="may still change"
        ),
        pytest.param(
            UNPULLED, True, "validate-old", ["problem deadline", "problem lost"], id="other Pod"
        ),
        pytest.param(
            rows.deadline("Pod", 30), True, POD, ["problem deadline", "problem lost"], id="deadline"
        ),
        pytest.param(
            rows.exited(Terminated(1), result_required=True),
            True,
            POD,
            ["info deadline", "info not-running"],
            id="failed runs",
        ),
    ],
)
def test_a_longer_deadline_is_no_advice_where_the_verdict_names_the_cause(
    report, final, pod_of_verdict, expected
):
    """Nor was a container lost that did not run."""
    said = explain(job(report, final=final, pod=pod_of_verdict), pod(change=lost))
    codes = {"deadline", "lost", "not-running"}

    assert expected == [f"{each.weight} {each.code}" for each in said if each.code in codes]
    longer = [each.todo for each in said if "make the work shorter" in each.todo]
    assert bool(longer) == ("problem deadline" in expected)


def still_waiting(made):
    """How it may also be shown: the kubelet ended the Pod before it looked at the container."""
    failed_pod("DeadlineExceeded")(made)
    made["status"]["containerStatuses"][0]["state"] = {
        "waiting": {"reason": "CreateContainerConfigError", "message": "no key"}
    }


def test_a_container_that_waited_when_its_pod_was_ended_is_told_like_one_that_is_unknown():
    unpulled = job(UNPULLED, final=True, pod=POD)

    either, other = (explain(unpulled, pod(change=change)) for change in (lost, still_waiting))

    assert [each.what for each in either] == [each.what for each in other]


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        pytest.param([], "disruption-announced", id="announced"),
        pytest.param([deleted("2030-01-01T12:10:20Z")], "evicted", id="deleted"),
        pytest.param([failed_pod("Evicted")], "evicted", id="evicted by the kubelet"),
        pytest.param([failed_pod("")], "disruption-announced", id="ended by itself before"),
    ],
)
def test_a_disruption_that_was_only_announced_took_nothing_away(changes, code):
    """The adapter may well end first."""

    def change(made):
        for each in (disrupted, *changes):
            each(made)

    codes = {"disruption-announced", "evicted"}
    said = explain(job(), pod(running(), change=change))

    assert [code] == [each.code for each in said if each.code in codes]


def test_a_pod_that_was_evicted_and_is_being_deleted():
    """The cause is told, not twice that it goes."""

    def change(made):
        disrupted(made)
        deleted("2030-01-01T12:10:20Z")(made)

    assert ["evicted"] == [
        each.code
        for each in explain(job(), pod(change=change))
        if each.code in {"evicted", "deleted"}
    ]
