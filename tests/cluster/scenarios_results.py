"""Situations in which the adapter starts and ends by itself, once."""

from __future__ import annotations

from tests.runs.actions import wait_adapter_ended
from tests.runs.jobs import ADAPTER, REPORTER, RESULT, Object, beside, writes
from tests.runs.run import Run
from tests.runs.scenario import FALSE, TRUE, Expected, Scenario, result

HALF = f"""printf '%s' '{{"status": "succ' >{RESULT}"""
REST = f"""printf '%s' 'ess", "reason": "Checked", "message": "All is well"}}' >>{RESULT}"""
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
    " Completed",
)
OUT_OF_MEMORY = Expected("O", FALSE, "AdapterOOMKilled", OOM_MESSAGE)


def _was_running(run: Run) -> None:
    """The verdict did not wait for the adapter's end."""
    final = next(shown for shown in run.history() if shown.final)
    assert "running" == final.note["evidence"]["adapter"]["state"]


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
        f"sleep 2; {writes()}; sleep 3",
        result(),
        check=_was_running,
    ),
    Scenario("written-and-quit-at-once", writes(), result()),
    Scenario(
        "failure-with-exit-1",
        f"sleep 1; {writes('failure', 'DiskFull', 'No space on /data')}; exit 1",
        result(FALSE, "DiskFull", "No space on /data"),
    ),
    Scenario("half-written-then-completed", f"{HALF}; sleep 4; {REST}; sleep 1", result()),
    Scenario("half-written-and-oom-killed", f"{HALF}; sleep 2; exec {OOM}", OUT_OF_MEMORY),
    Scenario(
        "invalid-json",
        f"echo nonsense >{RESULT}; sleep 2",
        Expected("I", FALSE, "InvalidResultFormat", "Failed to parse adapter result: .+"),
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
    ),
    Scenario("crash", "sleep 1; sh -c 'kill -SEGV $$'; exit $?", exited(139)),
    Scenario("crash-at-once", "exit 3", exited(3)),
    Scenario("exit-0-without-file", "sleep 1", MISSING),
    Scenario(
        "exit-0-without-file-not-required",
        "sleep 1",
        Expected(
            "S", TRUE, "AdapterSucceeded", r"Adapter container exited successfully \(code 0\)"
        ),
        settings={"RESULT_REQUIRED": "false"},
    ),
    Scenario("oom-of-the-main-process", f"sleep 1; exec {OOM}", OUT_OF_MEMORY),
    Scenario("oom-of-a-child-with-exit-0", f"sleep 1; {OOM}; exit 0", OUT_OF_MEMORY),
    Scenario("oom-of-a-child-with-exit-9", f"sleep 1; {OOM}; exit 9", OUT_OF_MEMORY),
    Scenario(
        "oom-after-a-valid-result",
        f"{writes()}; sleep 2; exec {OOM}",
        result(),
        act=wait_adapter_ended,
        check=_contradicted,
    ),
    Scenario(
        "hang-until-the-wait-time-ends",
        "sleep 12",
        Expected("T", FALSE, "AdapterTimeout", "Adapter did not produce results within 4s"),
        settings={"MAX_WAIT_TIME_SECONDS": "4"},
    ),
    Scenario(
        "result-after-the-wait-time",
        f"sleep 10; {writes()}",
        Expected("T", FALSE, "AdapterTimeout", "Adapter did not produce results within 3s"),
        settings={"MAX_WAIT_TIME_SECONDS": "3"},
    ),
    Scenario("mesh-proxy-first-in-the-list", "sleep 1; exit 3", exited(3), change=_with_proxy),
]
