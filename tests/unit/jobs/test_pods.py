"""What `explain` says of a Pod: what is in its way and what ended it."""

import pytest

from reporter.jobs.job import newest_pod
from reporter.verdict import rows
from reporter.verdict.facts import Running
from tests.fakekube import running, terminated, waiting
from tests.unit.jobs.world import (
    GOOD,
    REFUSED,
    beside,
    classic,
    event,
    explain,
    failed,
    failed_pod,
    job,
    logged,
    pod,
    unseen,
)


def test_the_newest_log_line_that_tells_the_refusal_is_evidence():
    """So that the missing right can be read off; also where the reporter writes no JSON."""
    for line, said in (
        (REFUSED, "Request failed: ... is forbidden: User ..."),
        ("warning  403 Forbidden: jobs", "warning  403 Forbidden: jobs"),
    ):
        found = explain(job(), pod(), log=f"{line}\nnoise")

        assert [(said,)] == [each.evidence for each in found if each.code == "missing-rights"]


@pytest.mark.parametrize(
    ("lines", "codes"),
    [
        ([failed("unavailable", "e")], {"not-written"}),
        ([failed("unavailable", "e"), logged("Verdict", "info")], set()),
        ([logged("Condition written", "info"), failed("unavailable", "e")], {"not-written"}),
        ([REFUSED, logged("Condition written", "info")], set()),
        ([failed("forbidden", "403 Forbidden")], {"missing-rights"}),
        ([failed("unavailable", "e", request="pod")], set()),
        ([logged("Not delivered to the aggregator", text="x")], {"link"}),
        ([logged("Heartbeat not answered", "warning", plugin="e2e")], {"link"}),
        (
            [
                logged("Request to the aggregator failed, retrying"),
                logged("Delivered to the aggregator", "info"),
            ],
            set(),
        ),
        ([logged("Linked to an aggregator", "info", plugin="e2e")], set()),
        ([logged("Cannot reach the aggregator", "warning", error="refused")], {"link"}),
        (
            [
                logged("Cannot reach the aggregator", "warning", error="refused"),
                logged("Reached the aggregator", "info"),
            ],
            set(),
        ),
        (["no JSON"], set()),
    ],
)
def test_what_the_log_of_a_running_reporter_tells(lines, codes):
    """Its newest word counts: what worked later is no trouble any more."""
    made = job(rows.running(Running(), None), final=False)
    found = {each.code for each in explain(made, pod(), log="\n".join(lines))}

    assert codes == found & {"not-written", "missing-rights", "link"}


@pytest.mark.parametrize(
    ("state", "told"),
    [(running(), True), (terminated(0), True), (terminated(1), False)],
    ids=["it runs", "it ended in the native form", "its end is told with its log"],
)
def test_a_job_that_the_reporter_never_saw(state, told):
    """Native, it idles and ends well; classic, its exit code is told with the same words."""
    line = logged("No such Job: check JOB_NAME and JOB_NAMESPACE", job="nobody")
    found = explain(job(), pod(terminated(0), reporter=state), log=line)
    codes = {each.code for each in found}

    assert told == ("not-written" in codes)
    assert told == ("reporter-failed" not in codes)


@pytest.mark.parametrize(("forbidden", "code"), [(True, "missing-rights"), (False, "not-written")])
def test_the_last_words_of_a_reporter(forbidden, code):
    """Its log is gone, or was not shown; that nothing more is known would be wrong."""
    words = rows.last_words(rows.result(GOOD), "no", forbidden=forbidden)
    ended = pod(terminated(0), phase="Succeeded", reporter=terminated(0, message=words))
    for made in (job(), job(rows.running(Running(), None), final=False)):
        found = {each.code: each for each in explain(made, ended)}

        assert (words,) == found[code].evidence
        assert "reporter-gone" not in found


def test_the_last_words_of_a_process_that_was_restarted():
    """The one that runs may have got the rights; its log tells what it still lacks."""
    words = rows.last_words(rows.result(GOOD), "no", forbidden=True)
    made = job(rows.running(Running(), None), final=False)
    shown = pod(running(), reporter=running())
    shown["status"]["initContainerStatuses"][0] |= {"lastState": terminated(137, message=words)}
    log = logged("Condition written", level="info")

    assert ["verdict"] == [each.code for each in explain(made, shown, log=log)]


def test_only_the_reporter_leaves_last_words():
    """An adapter may say whatever it likes."""
    made = job(rows.running(Running(), None), final=False)
    adapter = terminated(1, message="the verdict was bad; writing it was forbidden: no")
    found = explain(made, pod(adapter, phase="Failed", reporter=terminated(137)))

    assert "reporter-gone" in {each.code for each in found}


def test_the_last_word_of_a_reporter_needs_no_rights_any_more():
    """With a link its log is read after the verdict, too; old refusals are no news then."""
    made = job(rows.timeout(300))
    log = "\n".join([REFUSED, logged("Not delivered to the aggregator", text="late")])
    found = {each.code: each for each in explain(made, pod(terminated(1)), log=log)}

    assert "missing-rights" not in found
    assert ("Not delivered to the aggregator: late",) == found["link"].evidence


@pytest.mark.parametrize(
    ("made", "kept"),
    [
        (pod(terminated(0), change=beside(running())), True),
        (pod(terminated(3), change=beside(running())), True),
        (pod(running(), change=beside(running())), False),
        (pod(terminated(0), change=beside(terminated(0))), False),
        (pod(terminated(0)), False),
        (classic(terminated(0), running()), False),
    ],
    ids=["success", "failure", "at work", "both ended", "alone", "only the reporter"],
)
def test_what_keeps_a_job_alive(made, kept):
    """The adapter is done; neither the reporter nor anything else of ours is to blame."""
    assert kept == ("kept-alive" in {each.code for each in explain(job(), made)})


@pytest.mark.parametrize(("finished", "kept"), [("12:05:00", True), ("12:00:31", False)])
def test_what_kept_a_job_alive_until_the_deadline(finished, kept):
    """The adapter had ended long before it, and its verdict may well be good."""

    def change(made):
        beside(terminated(143, finished_at=f"2030-01-01T{finished}Z"))(made)
        failed_pod("DeadlineExceeded")(made)

    found = {
        each.code: each
        for each in explain(job(rows.result(GOOD)), pod(terminated(0), change=change))
    }

    assert kept == ("kept-alive" in found)
    if kept:
        assert "container 'istio-proxy' ran until the deadline" in found["kept-alive"].what


def test_a_restart_is_no_end():
    """Under OnFailure the adapter runs again."""
    for code, kept in ((0, True), (1, False)):
        made = pod(terminated(code), change=beside(running()))
        made["spec"]["restartPolicy"] = "OnFailure"

        assert kept == ("kept-alive" in {each.code for each in explain(job(), made)})


@pytest.mark.parametrize("age", [5, 20])
def test_a_pod_that_is_seconds_old_has_a_scheduler(age):
    """It may not have come to it yet."""

    def change(made):
        unseen(made)
        made["metadata"]["creationTimestamp"] = f"2030-01-01T12:09:{60 - age:02}Z"

    codes = {each.code for each in explain(job(), pod(change=change))}

    assert (age > 10) == ("no-scheduler" in codes)
    assert (age < 10) == ("unschedulable" in codes)


@pytest.mark.parametrize(
    ("report", "state", "code"),
    [
        (
            rows.trouble(rows.Row.IMAGE, "ErrImagePull: not found"),
            waiting("ImagePullBackOff"),
            "image-trouble",
        ),
        (
            rows.trouble(rows.Row.CONFIG, "CreateContainerConfigError: no key"),
            waiting("CreateContainerConfigError", "no key"),
            "config-trouble",
        ),
        (
            rows.trouble(rows.Row.START, "StartError: no such file"),
            terminated(128, "StartError", message="no such file"),
            "start-trouble",
        ),
    ],
)
def test_trouble_that_the_verdict_names_is_not_told_twice(report, state, code):
    """Its cause, which only an event has, stands below the verdict."""
    evidence = {"adapter": {"container": "adapter", "restarts": 0, "state": "waiting"}}
    events = [event("Failed", 'Failed to pull image "x": no such manifest')]
    made = job(report, evidence=evidence, final=False)
    first, *rest = explain(made, pod(state, phase="Pending"), events=events)

    assert code not in {each.code for each in rest}
    cause = 'Failed: Failed to pull image "x": no such manifest'
    assert (code == "image-trouble") == (cause in first.evidence)
    # Another Pod's, or another container's, is news.
    older = job(report, evidence=evidence, final=False, pod="validate-old")
    assert code in {each.code for each in explain(older, pod(state, phase="Pending"))}
    other = job(report, evidence={}, final=False)
    assert code in {each.code for each in explain(other, pod(state, phase="Pending"))}


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ('Failed to pull image "x": dial tcp: refused', ()),
        ("Error: ImagePullBackOff", ()),
        ('Failed to pull image "x": no such manifest', ("no such manifest",)),
    ],
)
def test_an_event_tells_of_an_image_only_what_the_container_does_not(message, said):
    """The kubelet writes an event for every try, and two for the same cause."""
    state = waiting("ImagePullBackOff", 'Back-off pulling image "x": dial tcp: refused')
    events = [event("Failed", message)]
    (found,) = [
        each
        for each in explain(job(), pod(state, phase="Pending"), events=events)
        if each.code == "image-trouble"
    ]

    assert len(said) == len(found.evidence)
    assert all(words in line for words, line in zip(said, found.evidence, strict=True))


def test_an_adapter_that_slipped_past_a_failing_reporter():
    """The kubelet starts it when it sees the reporter run, be it for a moment."""
    for state, held in ((waiting(), True), (running(), False), (terminated(0), False)):
        for reporter in (waiting("CrashLoopBackOff"), terminated(2)):
            said = explain(job(), pod(state, reporter=reporter))
            (found,) = [each for each in said if each.code in {"crash-loop", "reporter-failed"}]

            assert held == found.what.endswith("The adapter does not start before it.")


def test_a_native_reporter_that_waits_for_its_next_try():
    """The kubelet shows it as ended, not as waiting, with the number of its restarts."""
    made = pod(waiting(), reporter=terminated(2))
    made["status"]["initContainerStatuses"][0]["restartCount"] = 3
    (found,) = [each for each in explain(job(), made) if each.code == "reporter-failed"]

    assert (
        "exited: exit code 2 (Error), restarted 3 times. No verdict will come until the setting "
        "is fixed. The adapter" in found.what
    )


def test_the_newest_of_pods_of_one_second():
    """By UID, as reporters take turns; the shell reads the same Pod's events and log."""
    first, second = pod(), pod()
    first["metadata"] |= {"name": "validate-a", "uid": "9"}
    second["metadata"] |= {"name": "validate-b", "uid": "1"}

    assert first is newest_pod([first, second])
    assert first is newest_pod([second, first])
    assert newest_pod([]) is None
    said = [each.what for each in explain(job(rows.timeout(300)), second, first)]
    assert any("there is now Pod validate-a" in what for what in said)
