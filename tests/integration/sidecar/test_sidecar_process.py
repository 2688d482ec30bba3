"""The whole program as a process: its settings, its output, what it loads, what it leaves."""

import json
import signal
import subprocess
import sys
from typing import Any

import pytest

from tests import forked
from tests.integration.scene import RUNNING, Scene

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


def test_bad_settings_are_all_named_and_shown_on_the_job(scene: Scene) -> None:
    """One line each, exit 2, and Unknown/ReporterConfigError on the Job."""
    scene.create()
    with scene.process(MAX_WAIT_TIME_SECONDS="soon", EXIT_POLICY="maybe") as process:
        output, errors = process.communicate(timeout=60)

    assert (2, "") == (process.returncode, errors)
    problems = [event["problem"] for event in logged(output)]
    assert ["EXIT_POLICY", "MAX_WAIT_TIME_SECONDS"] == sorted(p.split("=")[0] for p in problems)
    assert [("Unknown", "ReporterConfigError", False)] == scene.history()
    for problem in problems:
        assert problem in scene.condition()["message"]


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


@pytest.mark.parametrize("away", ["server", "job"])
def test_bad_settings_that_cannot_be_shown(scene: Scene, away: str) -> None:
    """Best effort: SIGTERM ends it, an absent Job too; the log has said it all."""
    if away == "server":
        scene.fake.stop()
    with scene.process(EXIT_POLICY="maybe") as process:
        assert process.stdout is not None
        assert "Invalid setting" in process.stdout.readline()
        if away == "server":
            process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)

    assert 2 == process.returncode


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
    """The real launcher, without a cluster's environment: exit 2 and one line."""
    environ = {"JOB_NAME": "job", "JOB_NAMESPACE": "default", "POD_NAME": "pod"}
    done = subprocess.run(
        [sys.executable, "cmd/status-reporter.py"],
        env=environ | {"PYTHONPATH": "."},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (2, "") == (done.returncode, done.stderr)
    assert "KUBERNETES_SERVICE_HOST" in logged(done.stdout)[0]["problem"]
