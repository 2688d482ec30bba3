"""Situations under restartPolicy OnFailure: a run of the adapter may have a successor."""

from __future__ import annotations

from tests.blackbox.cluster.scenarios_asked import GOOD, SAYS_NO_JOB, Scenario, explains
from tests.blackbox.cluster.scenarios_results import SAYS_MISSING, exited, says_exited, says_timeout
from tests.blackbox.cluster.scenarios_starting import says_passed
from tests.blackbox.scenarios.jobs import writes
from tests.blackbox.scenarios.run import Run, condition
from tests.blackbox.scenarios.scenario import FALSE, Expected, reasons, result

ON_FAILURE = {"restartPolicy": "OnFailure"}
RUN = "run=$(cat /results/run 2>/dev/null || echo 0); run=$((run+1)); echo $run >/results/run"
"""Counts the adapter's runs on the shared volume."""
FAILED_TOO_OFTEN = (
    "info:    The Job itself has failed (BackoffLimitExceeded): its Pods failed more often than "
    "backoffLimit allows."
)


def _old_result_stood_as_revisable(run: Run) -> None:
    """The first run's result was shown, but never as the last word."""
    stood = [shown.final for shown in run.history() if shown.reason == "TooEarly"]
    assert {False} == set(stood)


def _crash_loop_was_named(run: Run) -> None:
    """While the kubelet waited before the third restart, the condition said so."""
    said = [shown.condition["message"] for shown in run.history() if shown.note["rule"] == "C"]
    assert said[0] == "Adapter container keeps failing: last exit code 7, restarted 2 times"
    _controller_wrote_first(run)


def _controller_wrote_first(run: Run) -> None:
    """It deletes the Pod, then writes why: our write in between could cost the Job its end."""
    (pod,) = run.pods()
    deleted = next(seen.at for seen in pod if "deletionTimestamp" in seen.object["metadata"])
    told = next(seen.at for seen in run.versions() if condition(seen.object, "FailureTarget"))
    assert [] == [shown for shown in run.history() if deleted < shown.at < told]


def _ask_in_the_loop(run: Run) -> None:
    """While the kubelet waits, and again when the Job controller has deleted the Pod."""
    run.wait_reason("AdapterCrashLooping")
    explains(
        run,
        "problem: Available=Unknown AdapterCrashLooping: Adapter container keeps failing: last "
        "exit code 7, restarted 2 times (may still change)",
        "backoffLimit limits the retries.",
        "Container 'adapter' of Pod <pod> keeps failing: exit code 7 (Error), restarted 2 times.",
        "What to do: kubectl logs <pod> -n <namespace> -c adapter --previous",
    )
    run.wait(lambda: run.pods()[-1][-1].gone, "the Pod is gone", 90)


def _five_runs_had_failed(run: Run) -> None:
    """The last word rests on the fifth run, for which the kubelet shows nothing any more."""
    assert 4 <= run.history()[-1].note["attempt"]["adapterRestarts"]


def _ask_after_the_pods_deadline(run: Run) -> None:
    """The Job makes another Pod at once, so it is deleted when the first one has ended."""
    run.wait(lambda: any(shown.final for shown in run.history()), "a final verdict")
    run.wait(lambda: run.pods()[0][-1].object["status"]["phase"] == "Failed", "the Pod's end")
    run.delete()


def _the_first_pod_named_its_failed_run(run: Run) -> None:
    """Rather than the deadline, which passed while the kubelet waited."""
    final = next(shown for shown in run.history() if shown.final)
    assert ("X", "False", "AdapterExitedWithError") == (
        final.note["rule"],
        final.condition["status"],
        final.reason,
    )
    assert final.condition["message"] == (
        "Adapter container exited with code 3: Error; the Pod's activeDeadlineSeconds (25s) passed"
    )


RESTARTS = [
    Scenario(
        "job-deadline-after-five-failed-runs",
        "exit 1",
        Expected(
            "X",
            FALSE,
            "AdapterExitedWithError",
            "Adapter container exited with code 1: Error; the Job's activeDeadlineSeconds "
            r"\(2m0s\) passed",
            before=reasons("AdapterCrashLooping"),
            exit_code=0,
        ),
        pod=ON_FAILURE,
        job={"backoffLimit": 20, "activeDeadlineSeconds": 120},
        grace=5,
        check=_five_runs_had_failed,
        seconds=240,
        explain=(
            *says_exited(1)[1:2],
            *says_passed("AdapterExitedWithError", "2m0s", 110),
        ),
    ),
    Scenario(
        "pod-deadline-between-failed-runs",
        "sleep 1; exit 3",
        Expected("X", FALSE, "AdapterExitedWithError", ""),
        pod=ON_FAILURE | {"activeDeadlineSeconds": 25},
        job={"backoffLimit": 20},
        grace=5,
        act=_ask_after_the_pods_deadline,
        judge=_the_first_pod_named_its_failed_run,
        explain=SAYS_NO_JOB,
    ),
    Scenario(
        "job-deadline-while-the-second-run-works",
        f"{RUN}; [ $run = 1 ] && exit 1; sleep 600",
        Expected(
            "D",
            FALSE,
            "AdapterTimeout",
            r"Adapter did not finish within the Job's activeDeadlineSeconds \(15s\); last exit "
            "code 1, restarted once",
            exit_code=0,
        ),
        pod=ON_FAILURE,
        job={"backoffLimit": 20, "activeDeadlineSeconds": 15},
        grace=5,
        explain=(
            "problem: Available=False AdapterTimeout: Adapter did not finish within the Job's "
            "activeDeadlineSeconds (15s); last exit code 1, restarted once (final)",
            "warning: The reporter may wait 5m0s, but the Job's activeDeadlineSeconds ends all "
            "work after 15s",
        ),
    ),
    Scenario(
        "crash-loop",
        "sleep 1; exit 7",
        Expected(
            "X",
            FALSE,
            "AdapterExitedWithError",
            "Adapter container exited with code 7: Error",
            before=reasons("AdapterCrashLooping", "AdapterInterrupted"),
            exit_code=0,
        ),
        pod=ON_FAILURE,
        job={"backoffLimit": 3},
        act=_ask_in_the_loop,
        check=_crash_loop_was_named,
        seconds=240,
        explain=(
            *says_exited(7)[:2],
            FAILED_TOO_OFTEN,
            "info:    Its Pods are gone, and their logs with them: the conditions above are all "
            "that is left.",
        ),
    ),
    Scenario(
        "second-run-succeeds",
        f"{RUN}; sleep 1; [ $run = 2 ] || exit 1; {writes()}",
        result(exit_code=0),
        pod=ON_FAILURE,
        job={"backoffLimit": 3},
        explain=GOOD,
    ),
    Scenario(
        "result-under-on-failure",
        f"sleep 1; {writes()}; sleep 2",
        result(exit_code=0),
        pod=ON_FAILURE,
        job={"backoffLimit": 3},
        explain=GOOD,
    ),
    Scenario(
        "old-result-file-left-by-the-first-run",
        f"{RUN}; [ $run = 1 ] || {{ sleep 3; exit 0; }};"
        f" {writes(reason='TooEarly')}; sleep 2; exit 1",
        Expected(
            "X",
            FALSE,
            "AdapterMissingResults",
            r".*did not produce a valid result file: Completed \(looked for "
            r"/results/adapter-result\.json; found an older adapter-result\.json, run\)",
            before=reasons("TooEarly"),
            exit_code=0,
        ),
        pod=ON_FAILURE,
        job={"backoffLimit": 3},
        check=_old_result_stood_as_revisable,
        explain=SAYS_MISSING,
    ),
    Scenario(
        "second-run-replaces-the-result-of-the-first",
        f"{RUN}; [ $run = 1 ] || {{ sleep 1; {writes()}; exit 0; }};"
        f" {writes('failure', 'TooEarly')}; sleep 1; exit 1",
        result(before=reasons("TooEarly"), exit_code=0),
        pod=ON_FAILURE,
        job={"backoffLimit": 3},
        explain=GOOD,
    ),
    Scenario(
        "extra-run-of-back-off-limit-0-is-thrown-away",
        "sleep 1; exit 7",
        Expected(
            exited(7).row,
            FALSE,
            exited(7).reason,
            exited(7).message,
            before=reasons("AdapterInterrupted"),
            exit_code=0,
        ),
        pod=ON_FAILURE,
        job={"backoffLimit": 0},
        check=_controller_wrote_first,
        explain=(*says_exited(7)[:2], FAILED_TOO_OFTEN),
    ),
    Scenario(
        "result-of-the-run-before-the-extra-run",
        f"{RUN}; [ $run = 1 ] || exec sleep 30;"
        f" sleep 1; {writes('failure', 'DiskFull', 'No space')}; exit 1",
        result(FALSE, "DiskFull", "No space", before=reasons("AdapterInterrupted"), exit_code=0),
        pod=ON_FAILURE,
        grace=5,
        job={"backoffLimit": 0},
        explain=(
            "problem: Available=False DiskFull: No space (final)",
            "What to do: The adapter reported this itself: see its log, or ask its author.",
            FAILED_TOO_OFTEN,
        ),
    ),
    Scenario(
        "wait-time-ends-in-the-second-run",
        f"{RUN}; [ $run = 1 ] && exit 1; sleep 9",
        Expected(
            "T",
            FALSE,
            "AdapterTimeout",
            "Adapter did not produce results within 5s",
            exit_code=0,
        ),
        settings={"MAX_WAIT_TIME_SECONDS": "5"},
        pod=ON_FAILURE,
        job={"backoffLimit": 3},
        explain=(
            says_timeout("5s")[0],
            "previous run: exit code 1 (Error)",
            "What to do: A run of the adapter failed with exit code 1: see its log (kubectl logs "
            "<pod> -n <namespace> -c adapter --previous). Check whether the adapter hangs (kubectl "
            "logs <pod> -n <namespace> -c adapter), or give it more time: ",
        ),
    ),
]
