"""The whole program as a process: its settings, its output, what it loads, what it leaves."""

import json
import signal
import subprocess
import sys
from typing import Any

import pytest

from tests import forked
from tests.blackbox.sidecar.scene import RUNNING, Scene, ask, now
from tests.fakekube import terminated, waiting
from tests.ports import free_port

UNWANTED = (
    "kubernetes.aio",
    "kubernetes.client.api.",
    "kubernetes.client.models.",
    "kubernetes.watch",
    "kubernetes.informer",
    "aiohttp",
    "cryptography",
    "requests",
    "websocket",
    "yaml",
)
"""asyncio (2.4 MB) comes with structlog and argparse (0.4 MB) with pydantic-settings."""


def logged(output: str) -> list[dict[str, Any]]:
    """Return the events; every line has to be one JSON object."""
    return [json.loads(line) for line in output.splitlines()]


def test_the_output_is_one_json_object_a_line(scene: Scene) -> None:
    """From the first line to the last, and nothing on stderr."""
    scene.create()
    scene.write_result()
    with scene.process(**forked.FRESH) as process:
        output, errors = process.communicate(timeout=60)

    assert (0, "") == (process.returncode, errors)
    events = logged(output)
    assert "Reporter started" == events[0]["message"]
    assert {"outcome": "final", "exitCode": 0}.items() <= events[-1].items()
    assert 1 == sum(event["message"] == "Verdict" for event in events)
    assert {"info"} == {event["level"] for event in events}


def test_people_can_have_lines(scene: Scene) -> None:
    """LOG_FORMAT=console."""
    scene.create()
    scene.write_result()
    with scene.process(LOG_FORMAT="console") as process:
        output, _ = process.communicate(timeout=60)

    assert "Verdict" in output
    assert not output.startswith("{")


def test_settings_that_cannot_change_the_verdict_never_cost_one(scene: Scene) -> None:
    """Nor does a Service that is called as one of them: the defaults, and a line each."""
    scene.create()
    scene.write_result()
    with scene.process(
        METRICS_PORT="tcp://10.0.0.1:9090", PROGRESS_PATH="progress.json", LOG_LEVEL="loud"
    ) as process:
        output, errors = process.communicate(timeout=60)

    assert (0, "") == (process.returncode, errors)
    assert ("True", "AllGood", True) == scene.history()[-1]
    events = logged(output)
    problems = [event["problem"] for event in events if event["message"] == "Setting ignored"]
    (link,) = [event for event in events if event["message"] == "Unknown setting"]
    assert ["LOG_LEVEL", "PROGRESS_PATH"] == sorted(p.split("=")[0] for p in problems)
    assert "info" == link["level"]
    assert link["variable"].startswith("METRICS_PORT='tcp://10.0.0.1:9090': set by Kubernetes")


def test_a_bad_condition_type_is_shown_under_available(scene: Scene) -> None:
    """A reserved one would end the Job."""
    scene.create()
    with scene.process(CONDITION_TYPE="Complete") as process:
        process.communicate(timeout=60)

    assert 2 == process.returncode
    assert "ReporterConfigError" == scene.condition()["reason"]
    assert ["Available"] == [
        c["type"] for c in scene.fake.job(scene.job_name)["status"]["conditions"]
    ]


def test_bad_settings_again_are_not_written_again(scene: Scene) -> None:
    """The kubelet restarts the container again and again."""
    scene.create()
    for _ in range(2):
        with scene.process(EXIT_POLICY="maybe") as process:
            process.communicate(timeout=60)

    assert 1 == len(scene.writes())


def test_bad_settings_of_another_index_do_not_hide_the_one_that_failed(scene: Scene) -> None:
    """The Job has failed by that one, whatever this Pod's reporter has to say."""

    def indexed(pod: dict[str, Any], index: str) -> None:
        key = "batch.kubernetes.io/job-completion-index"
        pod["metadata"].setdefault("annotations", {})[key] = index

    scene.create(
        job=lambda job: job["spec"].update(completions=3, completionMode="Indexed"),
        pod=lambda pod: indexed(pod, "0"),
    )
    scene.write_result(status="failure", reason="Broken")
    scene.start().join()
    scene.fake.update_pod(scene.pod_name, lambda pod: indexed(pod, "1"))
    scene.fake.update_pod(scene.pod_name, lambda pod: pod["metadata"].update(uid="another"))
    with scene.process(EXIT_POLICY="maybe") as process:
        process.communicate(timeout=60)

    assert [("False", "Broken", True)] == scene.history()
    assert scene.condition()["message"].startswith("index 0: ")


def test_bad_settings_never_replace_a_final_verdict(scene: Scene) -> None:
    """What this Pod has said for good stays."""
    scene.create()
    scene.write_result()
    scene.start().join()
    with scene.process(EXIT_POLICY="maybe") as process:
        process.communicate(timeout=60)

    assert 2 == process.returncode
    assert [("True", "AllGood", True)] == scene.history()


def test_good_settings_after_bad_ones(scene: Scene) -> None:
    """The reporter goes on where nobody could."""
    scene.create()
    with scene.process(EXIT_POLICY="maybe") as process:
        process.communicate(timeout=60)
    reporter = scene.start()
    scene.wait_condition(RUNNING)
    scene.write_result()

    assert 0 == reporter.join()
    assert ("True", "AllGood", True) == scene.history()[-1]


@pytest.mark.parametrize("unknown", ["OnFailure", "Pods refused", "no JOB_NAMESPACE"])
def test_bad_settings_of_a_classic_reporter_that_may_be_restarted_exit_with_0(
    scene: Scene, unknown: str
) -> None:
    """The Job controller counts the restart of a container against the back-off limit."""
    scene.create(restart_policy="OnFailure" if unknown == "OnFailure" else "Never")
    if unknown == "Pods refused":
        scene.fake.tokens.roles["reporter"] = scene.fake.tokens.roles["no-pods"]
    wrong = {"JOB_NAMESPACE": ""} if unknown == "no JOB_NAMESPACE" else {"EXIT_POLICY": "maybe"}
    with scene.process(**wrong) as process:
        if unknown == "Pods refused":
            assert process.stdout is not None
            assert any("Request failed" in line for line in process.stdout)
            process.send_signal(signal.SIGTERM)  # nothing waits any longer for the right to come
        process.communicate(timeout=60)

    assert 0 == process.returncode
    shown = unknown != "no JOB_NAMESPACE"
    assert [("Unknown", "ReporterConfigError", False)] * shown == scene.history()


@pytest.mark.parametrize("form", ["native", "", "sidecar"], ids=["set", "auto", "bad as well"])
def test_bad_settings_of_a_native_reporter_are_a_final_verdict(scene: Scene, form: str) -> None:
    """Its end would only be a restart: it stays until SIGTERM, alive and not ready."""
    scene.create(form="native", restart_policy="OnFailure")
    port = free_port()
    address = {"METRICS_PORT": str(port), "METRICS_ADDRESS": "127.0.0.1"}
    with scene.process(EXIT_POLICY="maybe", REPORTER_FORM=form, **address) as process:
        assert "ReporterConfigError" == scene.wait_final()["reason"]
        answers = [ask(port, path)[0] for path in ("/livez", "/healthz", "/readyz")]
        process.send_signal(signal.SIGTERM)
        output, errors = process.communicate(timeout=60)

    assert ([200, 200, 503], 0, "") == (answers, process.returncode, errors)
    assert 1 == sum(event["message"] == "Verdict" for event in logged(output))


def test_bad_settings_are_shown_when_the_right_to_do_so_comes(scene: Scene) -> None:
    """A native reporter has time until SIGTERM."""
    scene.create(form="native")
    rights = scene.fake.tokens.roles["reporter"]
    scene.fake.tokens.roles["reporter"] = ()
    with scene.process(EXIT_POLICY="maybe", REPORTER_FORM="native") as process:
        assert process.stdout is not None
        assert any("Request failed" in line for line in process.stdout)
        scene.fake.tokens.roles["reporter"] = rights
        scene.wait_final()
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)

    assert 0 == process.returncode


@pytest.mark.parametrize("form", ["classic", "native"])
def test_bad_settings_that_cannot_be_shown(scene: Scene, form: str) -> None:
    """SIGTERM ends it after one more try; the log has said it all."""
    scene.fake.stop()
    with scene.process(EXIT_POLICY="maybe", REPORTER_FORM=form) as process:
        assert process.stdout is not None
        assert "Invalid setting" in process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)

    assert 0 == process.returncode


def test_bad_settings_are_not_shown_on_another_job_of_that_name(scene: Scene) -> None:
    """The Pod's label says which one is meant."""
    label = {"batch.kubernetes.io/controller-uid": "another"}
    scene.create(pod=lambda pod: pod["metadata"]["labels"].update(label))
    with scene.process(EXIT_POLICY="maybe") as process:
        assert process.stdout is not None
        assert any("was replaced by another Job" in line for line in process.stdout)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)

    assert (2, []) == (process.returncode, scene.writes())


def test_a_warning_is_no_error(scene: Scene) -> None:
    """An unknown LOG_LEVEL is `info`, and said."""
    scene.create()
    scene.write_result()
    with scene.process(LOG_LEVEL="loud") as process:
        output, _ = process.communicate(timeout=60)

    assert 0 == process.returncode
    assert "LOG_LEVEL" in next(e for e in logged(output) if e["level"] == "warning")["problem"]


def test_only_what_is_needed_is_loaded(scene: Scene) -> None:
    """Each of these costs memory that every Pod would pay for."""
    scene.create()
    scene.write_result()
    with scene.process("--modules", **forked.FRESH) as process:
        _, modules = process.communicate(timeout=60)

    assert 0 == process.returncode
    assert "kubernetes.client.api_client" in modules.split()
    assert [] == [name for name in modules.split() if name.startswith(UNWANTED)]


def test_outside_of_a_cluster_it_says_so() -> None:
    """The real launcher, without a cluster's environment: one line."""
    environ = {"JOB_NAME": "job", "JOB_NAMESPACE": "default", "POD_NAME": "pod"}
    done = subprocess.run(
        [sys.executable, "cmd/status-reporter.py"],
        env=environ | {"PYTHONPATH": "."},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (0, "") == (done.returncode, done.stderr)
    assert "KUBERNETES_SERVICE_HOST" in logged(done.stdout)[0]["problem"]


@pytest.mark.parametrize(
    ("later", "expected"),
    [
        pytest.param("", ("False", "AdapterMissingResults", True), id="from before its start"),
        pytest.param("AllGood", ("True", "AllGood", True), id="written by it"),
    ],
)
def test_on_a_volume_that_is_not_the_pods_own_only_a_changed_file_counts(
    scene: Scene, later: str, expected: tuple[str, str, bool]
) -> None:
    """The launcher's first look decides: the adapter's file is some seconds older than its start.

    That is what a file server shows whose clock is behind.
    """
    scene.create(adapter=waiting("ContainerCreating"))
    scene.write_result(reason="LastWeek")
    with scene.process(REPORT_RUNNING="true") as process:
        scene.wait_condition()
        if later:
            scene.write_result(reason=later)
        scene.adapter(terminated(0, started_at=now(5), finished_at=now(6)))
        process.communicate(timeout=60)

    assert expected == scene.history()[-1]
    assert "LastWeek" not in [reason for _, reason, _ in scene.history()]
