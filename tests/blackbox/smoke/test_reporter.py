"""The reporter: a result that becomes the Job's condition, and settings that are refused."""

import json

from tests.blackbox.sidecar.conftest import scene
from tests.blackbox.sidecar.scene import ANNOTATION, RUNNING, TYPE, Scene
from tests.blackbox.sidecar.test_sidecar_process import logged

__all__ = ["scene"]


def test_the_condition_has_all_six_fields_and_the_annotation_comes_with_it(scene: Scene) -> None:
    """Both are in the one PATCH, guarded by UID and resourceVersion."""
    scene.create()
    reporter = scene.start()
    scene.wait_condition(RUNNING)
    before = scene.fake.job(scene.job_name)["metadata"]
    scene.write_result("failure", "DiskFull", "no space left")
    reporter.join()

    body = scene.writes()[-1]
    (condition,) = body["status"]["conditions"]
    times = [condition.pop("lastProbeTime"), condition.pop("lastTransitionTime")]
    expected = {"type": TYPE, "status": "False", "reason": "DiskFull", "message": "no space left"}
    assert expected == condition
    assert all(time >= scene.started for time in times)
    assert (before["uid"], before["resourceVersion"]) == (
        body["metadata"]["uid"],
        body["metadata"]["resourceVersion"],
    )
    note = json.loads(body["metadata"]["annotations"][ANNOTATION])
    assert (True, "R", scene.pod_name) == (note["final"], note["rule"], note["attempt"]["pod"])


def test_bad_settings_are_all_named_and_shown_on_the_job(scene: Scene) -> None:
    """One line each, exit 2 where nobody restarts it, and Unknown/ReporterConfigError."""
    scene.create()
    with scene.process(MAX_WAIT_TIME_SECONDS="soon", EXIT_POLICY="maybe") as process:
        output, errors = process.communicate(timeout=60)

    assert (2, "") == (process.returncode, errors)
    problems = [event["problem"] for event in logged(output) if "problem" in event]
    assert ["EXIT_POLICY", "MAX_WAIT_TIME_SECONDS"] == sorted(p.split("=")[0] for p in problems)
    assert [("Unknown", "ReporterConfigError", False)] == scene.history()
    for problem in problems:
        assert problem in scene.condition()["message"]
