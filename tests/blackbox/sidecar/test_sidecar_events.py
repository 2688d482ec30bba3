"""The Event of a final verdict, and how many requests a Job costs with it."""

import time

import pytest

from tests.blackbox.sidecar.scene import Scene
from tests.fakekube import Answer, Hang

POST = "/apis/events.k8s.io/v1/namespaces/default/events"


@pytest.mark.parametrize(("status", "kind"), [("success", "Normal"), ("failure", "Warning")])
def test_a_final_verdict_becomes_an_event_on_the_job(scene: Scene, status: str, kind: str) -> None:
    """With the reason and the message of the condition, after it."""
    scene.create()
    reporter = scene.start()
    scene.write_result(status, "Checked", "3 of 4")

    assert 0 == reporter.join()
    (event,) = scene.fake.events()
    assert (kind, "Checked", "3 of 4") == (event["type"], event["reason"], event["message"])
    regarding = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "namespace": "default",
        "name": scene.job_name,
        "uid": scene.job["metadata"]["uid"],
    }
    assert regarding == event["involvedObject"]
    assert scene.fake.journal[-1].path == POST


def test_no_event_where_none_is_wanted(scene: Scene) -> None:
    """REPORT_EVENTS=false."""
    scene.create()
    reporter = scene.start(REPORT_EVENTS="false")
    scene.write_result()

    assert 0 == reporter.join()
    assert [] == scene.fake.requests("POST")


@pytest.mark.parametrize("role", ["no-events", "go-reporter"])
def test_without_the_right_to_create_events_nothing_is_said(scene: Scene, role: str) -> None:
    """Once at debug: Roles from before work as well."""
    scene.create()
    scene.fake.tokens.roles["reporter"] = scene.fake.tokens.roles[role]
    reporter = scene.start()
    scene.write_result()

    assert 0 == reporter.join()
    assert [403] == [entry.status for entry in scene.fake.requests("POST")]
    (said,) = scene.said("Not allowed to create Events")
    assert "debug" == said["level"]
    assert [] == [event for event in scene.said("Request failed") if event["request"] == "event"]


@pytest.mark.parametrize("fault", [Answer(503), Answer(409), Hang()], ids=["503", "409", "hangs"])
def test_an_event_that_fails_changes_nothing(scene: Scene, fault: Answer | Hang) -> None:
    """The verdict is on the Job, the exit code is what it was, and there is no second try."""
    scene.create()
    scene.fake.fail(fault, method="POST", times=None)
    reporter = scene.start()
    scene.write_result()
    begun = time.monotonic()

    assert 0 == reporter.join()
    assert time.monotonic() - begun < 10.0
    assert ("True", "AllGood", True) == scene.history()[-1]
    assert 1 == len(scene.fake.requests("POST"))


def test_a_restart_of_the_reporter_adds_no_event(scene: Scene) -> None:
    """What stands was announced by the process that wrote it."""
    scene.create(form="native")
    first = scene.start()
    scene.write_result()
    scene.fake.wait_for(scene.fake.events)
    first.close()
    second = scene.start()
    scene.wait_log("Final verdict is already on the Job")
    scene.adapter(scene.ended())

    assert 0 == second.finish()
    assert 1 == len(scene.fake.requests("POST"))
