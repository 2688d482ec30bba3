"""Situations in which somebody or something ends the work from outside."""

from __future__ import annotations

from typing import Any

from tests.blackbox.cluster.scenarios_asked import GOOD, SAYS_NO_JOB, Scenario, explains
from tests.blackbox.scenarios import actions
from tests.blackbox.scenarios.jobs import ADAPTER, REPORTER, Object, container, writes
from tests.blackbox.scenarios.run import Run
from tests.blackbox.scenarios.scenario import FALSE, UNKNOWN, Expected, reasons, result

# A shell without a handler is process 1 and ignores SIGTERM, like many real adapters.
STUBBORN = "sleep 600"
POLITE = "trap 'exit 143' TERM; sleep 600 & wait"
# It lasts until the Job controller, which looks once a second, has seen the deletion.
DRAINED = (
    f"finish() {{ {writes(reason='Drained')}; sleep 5; exit 0; }}; trap finish TERM; "
    f'[ "$SECOND" ] || {{ sleep 600 & wait; }}; {writes()}; sleep 1'
)
LAST_WORDS = f"finish() {{ sleep 1; {writes()}; exit 0; }}; trap finish TERM; sleep 600 & wait"
# Seconds of grace: enough to be heard, little to wait for.
SHORT = 5
# The same for a Pod that is asked about meanwhile.
LONGER = 10
STATE = "adapter container .+"


def interrupted(message: str, **more: Any) -> Expected:
    """Row N: nobody can know how it would have ended."""
    return Expected("N", UNKNOWN, "AdapterInterrupted", message, **more)


def deadline(owner: str, seconds: int) -> Expected:
    """Row D."""
    message = rf"Adapter did not finish within the {owner}'s activeDeadlineSeconds \({seconds}s\)"
    return Expected("D", FALSE, "AdapterTimeout", message)


def _quiet_end(run: Run) -> None:
    """A Job that is gone is no error: one line, nothing written, exit code 0."""
    assert 1 == sum(line["message"].startswith("The Job is gone") for line in run.log())


def _unwell_for_a_moment(job: Object, _: str) -> None:
    """A liveness probe that fails while the adapter's marker lies there."""
    test = "import os, sys; sys.exit(os.path.exists('/results/unwell'))"
    probe = {
        "exec": {"command": ["python3", "-S", "-c", test]},
        "periodSeconds": 1,
        "timeoutSeconds": 5,
        "failureThreshold": 1,
    }
    container(job["spec"]["template"]["spec"], REPORTER)["livenessProbe"] = probe


UNWELL = "sleep 3; touch /results/unwell; sleep 2; rm /results/unwell; sleep 8"


def _mark_second_pod(job: Object, _: str) -> None:
    """Tell a Pod that is made after the first one's deletion that it is the second."""
    reference = {"name": job["metadata"]["name"], "key": "second", "optional": True}
    env = [{"name": "SECOND", "valueFrom": {"configMapKeyRef": reference}}]
    container(job["spec"]["template"]["spec"], ADAPTER)["env"] = env


def _announce_second_pod(run: Run) -> None:
    run.wait_reported()
    path = f"/api/v1/namespaces/{run.namespace}/configmaps"
    marker = {"metadata": {"name": run.name}, "data": {"second": "yes"}}
    run.controlplane.request("POST", path, marker)


def _drain(run: Run) -> None:
    """Evict the first Pod; one that is made after that knows that it is the second."""
    _announce_second_pod(run)
    actions.evict(run)


def _good_end_counts_as_failed(run: Run) -> None:
    """The first Pod ended well, and the Job did not end by it: the second Pod made it Complete."""
    first, second = run.pods()
    assert "Succeeded" == first[-1].object["status"]["phase"]
    status = run.versions()[-1].object["status"]
    assert (1, 1) == (status["failed"], status["succeeded"])
    final = [shown.note["attempt"]["pod"] for shown in run.history() if shown.final]
    assert [first[-1].object["metadata"]["name"], second[-1].object["metadata"]["name"]] == final


def _good_end_counts(run: Run) -> None:
    """The Job is Complete by the Pod that was drained, and there was no other."""
    status = run.versions()[-1].object["status"]
    assert (1, 0, 1) == (len(run.pods()), status.get("failed", 0), status["succeeded"])


def _replace_pod(run: Run) -> None:
    """Delete the Pod; its replacement runs while the first one still ends."""
    _announce_second_pod(run)
    actions.delete_pod(run)
    run.wait(lambda: len(run.pods()) == 2, "a second Pod")


def _both_ran_together(run: Run) -> None:
    """The first Pod was still there when the second one's verdict was written."""
    first, second = run.pods()
    final = next(shown for shown in run.history() if shown.final)
    assert second[0].object["metadata"]["name"] == final.note["attempt"]["pod"]
    assert first[-1].at > final.at


def _newest_of_two_pods(run: Run) -> None:
    """Both Pods judged; what stands in the end is the word of the newest, and stays its word."""
    pods = [seen[-1].object["metadata"] for seen in run.pods()]
    newest = max(pods, key=lambda pod: (pod["creationTimestamp"], pod["uid"]))
    history = run.history()
    by = [shown.note["attempt"]["pod"] for shown in history if shown.final]
    assert f"by {newest['name']}" == history[-1].condition["message"]
    assert by == sorted(by, key=lambda name: name == newest["name"])
    warned = [line for line in run.log() if line["message"].startswith("Job runs several Pods")]
    assert 2 == len(warned)


def says_interrupted(cause: str) -> tuple[str, ...]:
    """What a person is told of row N."""
    return (
        f"problem: Available=Unknown AdapterInterrupted: {cause} before a verdict was known; "
        "adapter",
        "What to do: The outcome is unknown: run the Job again.",
    )


def says_deadline(owner: str) -> tuple[str, ...]:
    """The same of row D, and of a wait time that never fitted."""
    return (
        f"problem: Available=False AdapterTimeout: Adapter did not finish within the {owner}'s "
        "activeDeadlineSeconds (6s) (final)",
        "What to do: Raise the activeDeadlineSeconds of the Job or the Pod, or make the work "
        "shorter.",
        *says_beyond(owner),
    )


def says_beyond(owner: str) -> tuple[str, ...]:
    """The same of the wait time alone."""
    return (
        f"warning: The reporter may wait 5m0s, but the {owner}'s activeDeadlineSeconds ends all "
        "work after 6s: that leaves little time to report an adapter that hangs.",
        "What to do: Set the deadline to at least 310.",
    )


SAYS_EVICTED = (
    "problem: Available=Unknown AdapterEvicted: Pod was disrupted: EvictionByEvictionAPI: "
    "Eviction API: evicting",
    "What to do: Run the Job again; with a podFailurePolicy that ignores DisruptionTarget this is "
    "automatic.",
)
POD_DELETED = "Pod was deleted"
HOLD = "example.com/hold"


def _ask_while_the_pod_goes(run: Run) -> None:
    actions.delete_pod(run)
    run.wait_reason("AdapterInterrupted")
    explains(run, *says_interrupted(POD_DELETED), "info:    Pod <pod> is being deleted.")
    _release_pod(run)


def _ask_while_it_is_evicted(run: Run) -> None:
    actions.evict(run)
    run.wait_reason("AdapterEvicted")
    explains(
        run,
        *SAYS_EVICTED,
        "problem: Pod <pod> was disrupted (EvictionByEvictionAPI: Eviction API: evicting).",
        "Check whether the node was drained, was short of memory or disk, or was needed for a Pod "
        "of higher priority.",
    )
    _release_pod(run)


def _hold_pod(job: Object, _: str) -> None:
    """A finalizer keeps the Pod where it is until somebody has asked, however long that takes."""
    job["spec"]["template"].setdefault("metadata", {})["finalizers"] = [HOLD]


def _release_pod(run: Run) -> None:
    release = {"metadata": {"$deleteFromPrimitiveList/finalizers": [HOLD]}}
    name = run.pod()["metadata"]["name"]
    run.controlplane.request("PATCH", run.pod_path(name), release, actions.STRATEGIC)
    run.wait(lambda: run.pods()[-1][-1].gone, "the Pod is gone")


def _ask_while_it_is_suspended(run: Run) -> None:
    """As `actions.suspend_and_resume`, with a question in between."""
    run.wait_reported()
    run.controlplane.request("PATCH", run.path, {"spec": {"suspend": True}}, actions.MERGE)
    run.wait(lambda: run.pods()[-1][-1].gone, "the Pod of the suspended Job is gone")
    explains(
        run,
        *says_interrupted("Job was suspended"),
        "problem: The Job is suspended: it has no Pods until it is resumed.",
        """What to do: kubectl patch job <job> -n <namespace> -p '{"spec":{"suspend":false}}'""",
    )
    run.controlplane.request("PATCH", run.path, {"spec": {"suspend": False}}, actions.MERGE)
    run.wait(lambda: len(run.pods()) == 2, "a second Pod")


def _hold(job: Object, _: str) -> None:
    """A finalizer keeps the Job where it is after its Pod has gone."""
    job["metadata"]["finalizers"] = [HOLD]


def _ask_while_the_job_goes(run: Run) -> None:
    actions.delete_job_in_foreground(run)
    run.wait(lambda: run.pods()[-1][-1].gone, "the Pod of the deleted Job is gone")
    explains(run, *says_interrupted(POD_DELETED), "info:    The Job is being deleted.")
    run.controlplane.request("PATCH", run.path, {"metadata": {"finalizers": None}}, actions.MERGE)


INTERRUPTED = [
    Scenario(
        "pod-deleted-adapter-ignores-sigterm",
        STUBBORN,
        interrupted(f"Pod was deleted before a verdict was known; {STATE}"),
        change=_hold_pod,
        act=_ask_while_the_pod_goes,
        grace=LONGER,
        explain=says_interrupted(POD_DELETED),
    ),
    Scenario(
        "pod-deleted-adapter-ends-at-once",
        POLITE,
        interrupted(f"Pod was deleted before a verdict was known; {STATE}"),
        act=actions.delete_pod,
        grace=SHORT,
        explain=says_interrupted(POD_DELETED),
    ),
    Scenario(
        "adapter-writes-its-result-on-sigterm",
        LAST_WORDS,
        result(before=reasons("AdapterInterrupted")),
        act=actions.delete_pod,
        grace=SHORT,
        explain=GOOD,
    ),
    Scenario(
        "pod-deadline",
        STUBBORN,
        deadline("Pod", 6),
        pod={"activeDeadlineSeconds": 6},
        grace=SHORT,
        explain=(
            *says_deadline("Pod"),
            "problem: Pod <pod> was terminated by its activeDeadlineSeconds.",
        ),
    ),
    Scenario(
        "job-deadline",
        STUBBORN,
        deadline("Job", 6),
        job={"activeDeadlineSeconds": 6},
        grace=SHORT,
        # A controller whose first write meets another one looks again, and then counts the Pod that
        # it has killed: BackoffLimitExceeded instead of DeadlineExceeded.
        explain=(*says_deadline("Job"), "info:    The Job itself has failed ("),
    ),
    Scenario(
        "result-on-sigterm-at-the-job-deadline",
        LAST_WORDS,
        # Our own D comes first and shares its reason with T, never with a final verdict.
        result(before=reasons("AdapterTimeout")),
        job={"activeDeadlineSeconds": 6},
        grace=SHORT,
        explain=(*GOOD, *says_beyond("Job")),
    ),
    Scenario(
        "job-suspended-and-resumed",
        f"trap 'exit 143' TERM; sleep 8 & wait; {writes()}",
        result(before=reasons("AdapterInterrupted"), finals=("N", "R")),
        act=_ask_while_it_is_suspended,
        grace=SHORT,
        explain=GOOD,
    ),
    Scenario(
        "job-deleted",
        POLITE,
        Expected("A", UNKNOWN, "AdapterRunning", STATE.capitalize(), final=False, exit_code=0),
        act=actions.delete_job,
        check=_quiet_end,
        grace=SHORT,
        explain=SAYS_NO_JOB,
    ),
    Scenario(
        "job-deleted-in-foreground",
        POLITE,
        interrupted(f"Pod was deleted before a verdict was known; {STATE}"),
        change=_hold,
        act=_ask_while_the_job_goes,
        grace=SHORT,
        explain=SAYS_NO_JOB,
    ),
    Scenario(
        "evicted-through-the-api",
        STUBBORN,
        Expected(
            "E",
            UNKNOWN,
            "AdapterEvicted",
            "Pod was disrupted: EvictionByEvictionAPI: .+",
        ),
        change=_hold_pod,
        act=_ask_while_it_is_evicted,
        grace=LONGER,
        explain=SAYS_EVICTED,
    ),
    Scenario(
        "drained-and-ended-well",
        DRAINED,
        result(before=reasons("AdapterEvicted"), finals=("R", "R")),
        forms=("native",),
        job={"backoffLimit": 1},
        change=_mark_second_pod,
        act=_drain,
        check=_good_end_counts_as_failed,
        explain=GOOD,
    ),
    Scenario(
        "drained-and-ended-well-with-replacement-policy-failed",
        DRAINED,
        result(reason="Drained", before=reasons("AdapterEvicted")),
        forms=("native",),
        job={"backoffLimit": 1, "podReplacementPolicy": "Failed"},
        change=_mark_second_pod,
        act=_drain,
        check=_good_end_counts,
        explain=("info:    Available=True Drained: All is well (final)",),
    ),
    Scenario(
        "replaced-while-the-first-pod-still-ends",
        f'[ "$SECOND" ] || exec sleep 600; sleep 1; {writes()}; sleep 2',
        result(before=reasons("AdapterInterrupted")),
        job={"backoffLimit": 1},
        change=_mark_second_pod,
        act=_replace_pod,
        check=_both_ran_together,
        explain=GOOD,
    ),
    Scenario(
        "two-pods-of-one-job",
        # Out of the quotes, so that the shell puts the Pod's name in.
        f"""sleep 2; {writes(message="by '$HOSTNAME'")}""",
        result(message="by .+"),
        job={"parallelism": 2, "completions": 2},
        judge=_newest_of_two_pods,
        explain=(
            "info:    Available=True Checked: by <pod> (final)",
            "warning: The Job runs several Pods at once: only the verdict of the newest one "
            "counts.",
            "What to do: Use one Job for each verdict.",
        ),
    ),
    Scenario(
        "liveness-sigterm-while-the-adapter-runs",
        f"{UNWELL}; {writes()}; sleep 1",
        result(before=reasons("AdapterInterrupted")),
        forms=("native",),
        change=_unwell_for_a_moment,
        explain=GOOD,
    ),
    Scenario(
        "liveness-sigterm-in-the-classic-form",
        f"{UNWELL}; {writes()}; sleep 1",
        # Nobody starts it again: what it could know stays, and stays open to a correction.
        interrupted(f"Reporter was stopped before a verdict was known; {STATE}", final=False),
        forms=("classic",),
        change=_unwell_for_a_moment,
        explain=(
            *says_interrupted("Reporter was stopped"),
            "problem: The reporter's container 'status-reporter' of Pod <pod> was killed, "
            "because its liveness probe failed: exit code 1 (Error).",
            "What to do: Remove the probe: it costs verdicts. /readyz shows the reporter's health.",
        ),
    ),
]
