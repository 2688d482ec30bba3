"""Situations in which the reporter's settings or rights do not fit, or are the Go reporter's."""

from __future__ import annotations

from tests.blackbox.cluster.scenarios_asked import GOOD, Scenario
from tests.blackbox.cluster.scenarios_results import exited, says_exited, says_timeout
from tests.blackbox.scenarios.jobs import ADAPTER, REPORTER, writes
from tests.blackbox.scenarios.run import Run, condition, container_status
from tests.blackbox.scenarios.scenario import FALSE, UNKNOWN, Expected, reasons, result
from tests.blackbox.scenarios.stage import SERVICE

WAIT = {"MAX_WAIT_TIME_SECONDS": "6"}


def misfit(message: str) -> Expected:
    """Row M."""
    return Expected("M", UNKNOWN, "ReporterConfigError", message)


def _never_reported(run: Run) -> None:
    """A Job that nobody named is left alone, and the log says which one was looked for."""
    assert [] == run.history()
    said = [line for line in run.log() if line["message"].startswith("No such Job")]
    assert ["nobody"] == [line["job"] for line in said]


def _kubernetes_named_a_port(run: Run) -> None:
    """The kubelet set the variable, the reporter did not take it for a setting."""
    given = [line for line in run.output(run.pod(), ADAPTER) if line.startswith("METRICS_PORT=tcp")]
    said = [line["variable"] for line in run.log() if line["message"] == "Unknown setting"]
    assert (1, 1) == (len(given), len(said))
    assert said[0].startswith("METRICS_PORT='tcp://")
    assert said[0].endswith("set by Kubernetes for a Service, not a setting; using 9464")


def _completes(run: Run) -> None:
    """The adapter has run, and no restart of the reporter was counted against the Job."""
    assert "True" == condition(run.versions()[-1].object, "Complete").get("status")
    assert 0 == container_status(run.pod(), REPORTER)["restartCount"]


SAYS_PODS_REFUSED = (
    "problem: The reporter is not allowed to read its Pod, so only the result file counts.",
    "What to do: Bind the Role of deploy/base to the Pod's service account (pods: get, watch).",
)
SAYS_NO_ADAPTER = (
    "problem: The reporter finds no adapter: 'nobody' is not a container of the Pod; containers: ",
    "What to do: Set ADAPTER_CONTAINER_NAME to the adapter container.",
)
SAYS_BAD_SETTINGS = (
    "problem: Available=Unknown ReporterConfigError: Invalid reporter settings: "
    'RESULTS_PATH="results/": must be the absolute path of a file (no trailing slash); '
    'MAX_WAIT_TIME_SECONDS="soon": must be an integer from 1 to 2147483647',
    "What to do: Fix the reporter's settings as the message says;",
)
SAYS_EXITED = (
    "problem: The reporter's container 'status-reporter' of Pod <pod> exited: exit code 2 "
    "(Error). No verdict will come until the setting is fixed.",
    "What to do: Its settings are invalid: its log and `status-reporter --check` list them.",
    '- Invalid setting: RESULTS_PATH="results/": must be the absolute path of a file',
    '- Invalid setting: MAX_WAIT_TIME_SECONDS="soon": must be an integer',
)
NO_SUCH_CONTAINER = (
    "Invalid reporter settings: 'nobody' is not a container of the Pod; containers: .*adapter; "
    "init containers: .*"
)
BAD_TEXT = "Invalid reporter settings: RESULTS_PATH=.*; MAX_WAIT_TIME_SECONDS=.*soon.*"
BAD = {"MAX_WAIT_TIME_SECONDS": "soon", "RESULTS_PATH": "results/"}
HARMLESS = {
    "METRICS_PORT": "tcp://10.0.0.1:9090",
    "POLL_INTERVAL_SECONDS": "soon",
    "LOG_FORMAT": "text",
    "PROGRESS_PATH": "progress",
}

SETTINGS = [
    Scenario(
        "pods-refused-with-a-result",
        f"sleep 1; {writes()}; sleep 14",
        # Nobody can see the adapter's end: the result is final when the wait time is over.
        result(exit_code=0),
        settings=WAIT,
        role="pods-refused",
        explain=(*GOOD, *SAYS_PODS_REFUSED),
    ),
    Scenario(
        "pods-refused-without-a-result",
        # Only what is refused for 30 s counts as refused.
        "sleep 40",
        Expected(
            "T",
            FALSE,
            "AdapterTimeout",
            r"Adapter did not produce results within 6s \(the Pod could not be read: forbidden\)",
            exit_code=0,
        ),
        settings=WAIT,
        role="pods-refused",
        explain=(*says_timeout("6s (the Pod could not be read: forbidden)"), *SAYS_PODS_REFUSED),
    ),
    Scenario(
        "wrong-container-name",
        "sleep 14",
        misfit(NO_SUCH_CONTAINER),
        settings=WAIT | {"ADAPTER_CONTAINER_NAME": "nobody"},
        explain=(
            "problem: Available=Unknown ReporterConfigError: Invalid reporter settings: 'nobody' "
            "is not a container of the Pod; containers: ",
            "What to do: Fix the reporter's settings as the message says;",
            *SAYS_NO_ADAPTER,
        ),
    ),
    Scenario(
        "wrong-container-name-with-a-result",
        f"sleep 3; {writes()}; sleep 11",
        result(before=reasons("ReporterConfigError")),
        settings=WAIT | {"ADAPTER_CONTAINER_NAME": "nobody"},
        explain=(*GOOD, *SAYS_NO_ADAPTER),
    ),
    Scenario(
        "bad-settings-that-cannot-change-the-verdict",
        f"sleep 1; {writes()}; sleep 1",
        result(),
        settings=HARMLESS,
        explain=GOOD,
    ),
    Scenario(
        "service-named-metrics",
        f"env | grep METRICS_PORT=; sleep 1; {writes()}; sleep 1",
        result(),
        pod={"enableServiceLinks": True},
        role=SERVICE,
        check=_kubernetes_named_a_port,
        explain=GOOD,
    ),
    Scenario(
        "wrong-job-name",
        "sleep 12",
        result(),
        settings={"JOB_NAME": "nobody"},
        judge=_never_reported,
        errors=True,
        explain=(
            "problem: The reporter has JOB_NAME=nobody, but this Job's name is <job>: it "
            "writes to another Job or to none.",
            "What to do: Set JOB_NAME to <job>, or take it from the Pod's labels and namespace.",
        ),
        explain_classic=(
            "problem: The reporter's container 'status-reporter' of Pod <pod> exited: exit code 1 "
            "(Error).",
            "- No such Job: check JOB_NAME and JOB_NAMESPACE: nobody",
            "What to do: For the cause, see its log: kubectl logs <pod> -n <namespace> "
            "-c status-reporter",
        ),
        explain_native=(
            "problem: The reporter's container 'status-reporter' of Pod <pod> could not write to "
            "the Job.",
            "- No such Job: check JOB_NAME and JOB_NAMESPACE: nobody",
        ),
    ),
    Scenario(
        "role-of-the-go-reporter-with-a-result",
        f"sleep 1; {writes()}; sleep 1",
        result(),
        role="go",
        explain=GOOD,
    ),
    Scenario(
        "role-of-the-go-reporter-with-a-crash",
        "sleep 1; exit 3",
        exited(3),
        role="go",
        explain=says_exited(3),
    ),
    Scenario(
        "bad-settings-in-the-native-form",
        f"sleep 1; {writes()}",
        misfit(BAD_TEXT),
        forms=("native",),
        settings=BAD,
        pod={"restartPolicy": "OnFailure"},
        job={"backoffLimit": 0},
        check=_completes,
        errors=True,
        explain=SAYS_BAD_SETTINGS,
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
        explain=(*SAYS_BAD_SETTINGS, *SAYS_EXITED),
    ),
]
