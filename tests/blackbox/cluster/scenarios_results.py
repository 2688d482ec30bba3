"""Situations in which the adapter starts and ends by itself, once."""

from __future__ import annotations

import re
from dataclasses import replace

from tests.blackbox.cluster.scenarios_asked import GOOD, Scenario, explains
from tests.blackbox.scenarios.actions import wait_adapter_ended
from tests.blackbox.scenarios.jobs import ADAPTER, REPORTER, RESULT, Object, beside, writes
from tests.blackbox.scenarios.run import Run, touch
from tests.blackbox.scenarios.scenario import FALSE, TRUE, Expected, result

HALF = f"""printf '%s' '{{"status": "succ' >{RESULT}"""
REST = f"""printf '%s' 'ess", "reason": "Checked", "message": "All is well"}}' >>{RESULT}"""
TOLD = "until [ -e /results/told ]; do sleep 1; done"
OOM = "tail /dev/zero"
OOM_MESSAGE = r"Adapter container was killed due to out of memory \(OOMKilled\)"


def exited(code: int) -> Expected:
    """Row X for an exit code that is not 0."""
    message = f"Adapter container exited with code {code}: Error"
    return Expected("X", FALSE, "AdapterExitedWithError", message)


MISSING = Expected(
    "X",
    FALSE,
    "AdapterMissingResults",
    r"Adapter container exited successfully \(code 0\) but did not produce a valid result file:"
    r" Completed \(looked for /results/adapter-result\.json\)",
)
OUT_OF_MEMORY = Expected("O", FALSE, "AdapterOOMKilled", OOM_MESSAGE)

# What a person is told of them.
SAYS_MISSING = (
    "problem: Available=False AdapterMissingResults: Adapter container exited successfully (code 0)"
    " but did not produce a valid result file: Completed (looked for /results/adapter-result.json",
    "What to do: The adapter exited successfully but wrote nothing to RESULTS_PATH on the shared "
    "volume: check the path and the mount, or set RESULT_REQUIRED=false if it is not meant to "
    "write a result.",
)
SAYS_OUT_OF_MEMORY = (
    "problem: Available=False AdapterOOMKilled: Adapter container was killed due to out of memory "
    "(OOMKilled) (final)",
    "What to do: Raise the adapter's resources.limits.memory, or reduce its memory use.",
    "problem: Container 'adapter' of Pod <pod> ran out of memory and was killed (OOMKilled, exit "
    "code ",
)


def says_exited(code: int) -> tuple[str, ...]:
    """The same for an exit code that is not 0."""
    return (
        "problem: Available=False AdapterExitedWithError: Adapter container exited with code "
        f"{code}: Error (final)",
        "What to do: See the adapter's log: it ended before it wrote a result.",
        f"info:    Container 'adapter' of Pod <pod> ended: exit code {code} (Error).",
        "What to do: kubectl logs <pod> -n <namespace> -c adapter",
    )


def says_invalid(cause: str) -> tuple[str, ...]:
    """The same for a result file that is none."""
    return (
        "problem: Available=False InvalidResultFormat: Failed to parse adapter result: "
        f"{cause} (final)",
        "What to do: The adapter needs a fix: `status-ctl validate FILE` lists every problem of "
        "such a file. To avoid half-written files, write a temporary file and rename it.",
    )


def says_timeout(said: str) -> tuple[str, ...]:
    """The same for the end of the wait time."""
    return (
        f"problem: Available=False AdapterTimeout: Adapter did not produce results within {said} "
        "(final)",
        "What to do: Check whether the adapter hangs (kubectl logs <pod> -n <namespace>",
    )


def _ask_while_it_runs(run: Run) -> None:
    """Work goes on: nothing is wrong, and nothing is to be done. Then the adapter may end."""

    def running() -> bool:
        return run.history()[-1].condition["message"] == "Adapter container is running"

    pod = run.wait_reported()
    # A container that is slow to start is told as waiting first, and for 30 s.
    run.wait(running, "row A with the adapter running")
    explains(
        run,
        "info:    Available=Unknown AdapterRunning: Adapter container is running (may still "
        "change)",
    )
    touch(run.node, pod, "results", "told")


def _ask_then_describe(run: Run) -> None:
    """Once the verdict is there, `kubectl describe job` shows it among the Job's events."""
    _ask_while_it_runs(run)
    run.wait_reason("Checked")
    selector = f"involvedObject.name={run.name},reportingComponent=status-reporter"
    path = f"/api/v1/namespaces/{run.namespace}/events?fieldSelector={selector}"
    events = run.controlplane.api.wait_for(path, lambda found: found["items"])["items"]
    assert 1 == len(events)
    described = run.controlplane.kubectl("describe", "job", run.name, "-n", run.namespace)
    shown = described.partition("Events:")[2]
    assert re.search(r"Normal +Checked .*status-reporter.* All is well$", shown, re.M), shown


def _was_running(run: Run) -> None:
    """The verdict did not wait for the adapter's end."""
    final = next(shown for shown in run.history() if shown.final)
    assert "running" == final.note["evidence"]["adapter"]["state"]


def _end_what_has_a_result(run: Run) -> None:
    """Row A says within 30 s that a result was received; then the adapter may end."""

    def told() -> bool:
        said = run.history()[-1].condition["message"]
        return said == "Adapter container is running; result received: Checked"

    pod = run.wait_reported()
    run.wait(told, "row A with the result received")
    touch(run.node, pod, "results", "told")


def _waited_for_the_end(run: Run) -> None:
    """The adapter had ended when its result became the verdict."""
    final = next(shown for shown in run.history() if shown.final)
    assert "terminated" == final.note["evidence"]["adapter"]["state"]


def _names_what_lies_there(run: Run) -> None:
    """The evidence has the same names as the message, cleaned of control characters."""
    final = next(shown for shown in run.history() if shown.final)
    expected = {"state": "absent", "path": RESULT, "beside": ["result.json", "note"]}
    assert expected == final.note["evidence"]["file"]


def _contradicted(run: Run) -> None:
    """In the native form one later write adds what the adapter's end said against the verdict."""
    if run.form == "native":
        assert "OOMKilled" == run.history()[-1].note["after"]["reason"]


def _with_proxy(job: Object, _: str) -> None:
    """A proxy as its injector puts it: before the Job's own containers, ending after them."""
    pod = job["spec"]["template"]["spec"]
    proxy = beside(pod, "istio-proxy", "sleep 5")
    own = pod["containers"]
    place = 1 if own[0]["name"] == REPORTER else 0
    own.insert(place, proxy)
    assert {"istio-proxy", ADAPTER} <= {c["name"] for c in own}


RESULTS = [
    Scenario(
        "result-in-time",
        f"{TOLD}; {writes()}; sleep 3",
        result(),
        act=_ask_then_describe,
        check=_was_running,
        explain=GOOD,
    ),
    Scenario(
        "written-and-quit-at-once",
        writes(),
        result(),
        explain=GOOD,
    ),
    Scenario(
        "failure-with-exit-1",
        f"sleep 1; echo one file too many; {writes('failure', 'DiskFull', 'No space on /data')}; "
        "exit 1",
        result(FALSE, "DiskFull", "No space on /data"),
        explain=(
            "problem: Available=False DiskFull: No space on /data (final)",
            "- log: one file too many",
            "What to do: The adapter reported this itself: see its log, or ask its author.",
            "What to do: kubectl logs <pod> -n <namespace> -c adapter",
        ),
    ),
    Scenario(
        "half-written-then-completed",
        f"{HALF}; {TOLD}; {REST}; sleep 1",
        result(),
        act=_ask_while_it_runs,
        explain=GOOD,
    ),
    Scenario(
        "half-written-and-oom-killed",
        f"{HALF}; sleep 2; exec {OOM}",
        OUT_OF_MEMORY,
        explain=(
            *SAYS_OUT_OF_MEMORY,
            "- result file: invalid (line 1, column 17: unexpected end of the document)",
        ),
    ),
    Scenario(
        "invalid-json",
        f"echo nonsense >{RESULT}; sleep 2",
        Expected("I", FALSE, "InvalidResultFormat", "Failed to parse adapter result: .+"),
        explain=says_invalid("line 1, column 1: the top level must be an object"),
    ),
    Scenario(
        "invalid-status",
        f"""echo '{{"status": "perhaps"}}' >{RESULT}; exit 4""",
        Expected(
            "I",
            FALSE,
            "InvalidResultFormat",
            "Failed to parse adapter result: status: must be either 'success' or 'failure'",
        ),
        explain=says_invalid("status: must be either 'success' or 'failure'"),
    ),
    Scenario(
        "crash",
        "sleep 1; sh -c 'kill -SEGV $$'; exit $?",
        exited(139),
        explain=says_exited(139),
    ),
    Scenario(
        "crash-at-once",
        "exit 3",
        exited(3),
        explain=says_exited(3),
    ),
    Scenario(
        "exit-0-without-file",
        "sleep 1",
        MISSING,
        explain=SAYS_MISSING,
    ),
    Scenario(
        "exit-0-with-a-misspelt-file",
        f"echo '{{}}' >{RESULT.replace('adapter-', '')}; echo >/results/$(printf 'no\\033te')",
        replace(MISSING, message=MISSING.message[:-2] + r"; found result\.json, note\)"),
        check=_names_what_lies_there,
        explain=SAYS_MISSING,
    ),
    Scenario(
        "exit-0-without-file-not-required",
        "sleep 1",
        Expected(
            "S", TRUE, "AdapterSucceeded", r"Adapter container exited successfully \(code 0\)"
        ),
        settings={"RESULT_REQUIRED": "false"},
        explain=(
            "info:    Available=True AdapterSucceeded: Adapter container exited successfully "
            "(code 0) (final)",
        ),
    ),
    Scenario(
        "success-then-exit-0-trusted-at-exit",
        f"{writes()}; {TOLD}",
        result(),
        settings={"RESULT_TRUST": "at-exit"},
        act=_end_what_has_a_result,
        check=_waited_for_the_end,
        explain=GOOD,
    ),
    Scenario(
        "success-then-exit-1-trusted-at-exit",
        f"{writes()}; sleep 2; exit 1",
        exited(1),
        settings={"RESULT_TRUST": "at-exit"},
        explain=(
            says_exited(1)[0],
            "What to do: See the adapter's log: it reported success and then failed, and with "
            "RESULT_TRUST=at-exit its exit code counts.",
            "- result file: valid (Checked)",
            *says_exited(1)[2:],
        ),
    ),
    Scenario(
        "oom-of-the-main-process",
        f"sleep 1; exec {OOM}",
        OUT_OF_MEMORY,
        explain=SAYS_OUT_OF_MEMORY,
    ),
    Scenario(
        "oom-of-a-child-with-exit-0",
        f"sleep 1; {OOM}; exit 0",
        OUT_OF_MEMORY,
        explain=SAYS_OUT_OF_MEMORY,
    ),
    Scenario(
        "oom-of-a-child-with-exit-9",
        f"sleep 1; {OOM}; exit 9",
        OUT_OF_MEMORY,
        explain=SAYS_OUT_OF_MEMORY,
    ),
    Scenario(
        "oom-after-a-valid-result",
        f"{writes()}; sleep 2; exec {OOM}",
        result(),
        act=wait_adapter_ended,
        check=_contradicted,
        explain=(
            "Available=True Checked: All is well (final)",
            *SAYS_OUT_OF_MEMORY[2:],
            "What to do: Raise its resources.limits.memory, or reduce its memory use.",
        ),
    ),
    Scenario(
        "hang-until-the-wait-time-ends",
        "sleep 12",
        Expected("T", FALSE, "AdapterTimeout", "Adapter did not produce results within 4s"),
        settings={"MAX_WAIT_TIME_SECONDS": "4"},
        explain=says_timeout("4s"),
    ),
    Scenario(
        "result-after-the-wait-time",
        f"sleep 10; {writes()}",
        Expected("T", FALSE, "AdapterTimeout", "Adapter did not produce results within 3s"),
        forms=("classic",),
        settings={"MAX_WAIT_TIME_SECONDS": "3"},
        explain=says_timeout("3s"),
    ),
    Scenario(
        "result-after-the-wait-time-that-is-noted",
        f"sleep 10; {writes()}",
        Expected("T", FALSE, "AdapterTimeout", "Adapter did not produce results within 3s"),
        forms=("native",),
        settings={"MAX_WAIT_TIME_SECONDS": "3"},
        explain=(
            says_timeout("3s")[0],
            "What to do: The adapter needs more time: raise MAX_WAIT_TIME_SECONDS on the reporter.",
        ),
    ),
    Scenario(
        "mesh-proxy-first-in-the-list",
        "sleep 1; exit 3",
        exited(3),
        change=_with_proxy,
        explain=says_exited(3),
    ),
]
