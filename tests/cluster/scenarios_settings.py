"""Situations in which the reporter's settings or rights do not fit, or are the Go reporter's."""

from __future__ import annotations

from tests.cluster.scenarios_results import exited
from tests.runs.jobs import writes
from tests.runs.run import Run
from tests.runs.scenario import FALSE, UNKNOWN, Expected, Scenario, reasons, result

WAIT = {"MAX_WAIT_TIME_SECONDS": "6"}


def misfit(message: str, *, final: bool = True) -> Expected:
    """Row M."""
    before = reasons() if final else frozenset()
    return Expected("M", UNKNOWN, "ReporterConfigError", message, final=final, before=before)


def _never_reported(run: Run) -> None:
    """A Job that nobody named is left alone, and the log says which one was looked for."""
    assert [] == run.history()
    said = [line for line in run.log() if line["message"].startswith("No such Job")]
    assert ["nobody"] == [line["job"] for line in said]


NO_SUCH_CONTAINER = (
    "The reporter's settings do not fit: 'nobody' is not a container of the Pod;"
    " containers: .*adapter; init containers: .*"
)
BAD_TEXT = "The reporter's settings do not fit: RESULTS_PATH=.*; POLL_INTERVAL_SECONDS=.*soon.*"
BAD = {"POLL_INTERVAL_SECONDS": "soon", "RESULTS_PATH": "results/"}

SETTINGS = [
    Scenario(
        "pods-refused-with-a-result",
        f"sleep 1; {writes()}; sleep 14",
        # Nobody can see the adapter's end: the result is final when the wait time is over.
        result(exit_code=0),
        settings=WAIT,
        role="pods-refused",
    ),
    Scenario(
        "pods-refused-without-a-result",
        "sleep 14",
        Expected(
            "T",
            FALSE,
            "AdapterTimeout",
            r"Adapter did not produce results within 6s \(the Pod could not be read: forbidden\)",
            exit_code=0,
        ),
        settings=WAIT,
        role="pods-refused",
    ),
    Scenario(
        "wrong-container-name",
        "sleep 14",
        misfit(NO_SUCH_CONTAINER),
        settings=WAIT | {"ADAPTER_CONTAINER_NAME": "nobody"},
    ),
    Scenario(
        "wrong-container-name-with-a-result",
        f"sleep 3; {writes()}; sleep 11",
        result(before=reasons("ReporterConfigError")),
        settings=WAIT | {"ADAPTER_CONTAINER_NAME": "nobody"},
    ),
    Scenario(
        "wrong-job-name",
        "sleep 12",
        result(),
        settings={"JOB_NAME": "nobody"},
        judge=_never_reported,
        errors=True,
    ),
    Scenario(
        "role-of-the-go-reporter-with-a-result",
        f"sleep 1; {writes()}; sleep 1",
        result(),
        role="go",
    ),
    Scenario("role-of-the-go-reporter-with-a-crash", "sleep 1; exit 3", exited(3), role="go"),
    Scenario(
        "bad-settings-keep-the-adapter-from-starting",
        writes(),
        misfit(BAD_TEXT, final=False),
        forms=("native",),
        settings=BAD,
        ends=False,
        errors=True,
    ),
    Scenario(
        "bad-settings-in-the-classic-form",
        "sleep 2",
        Expected(
            "M",
            UNKNOWN,
            "ReporterConfigError",
            BAD_TEXT,
            final=False,
            exit_code=2,
        ),
        forms=("classic",),
        settings=BAD,
        errors=True,
    ),
]
