"""REPORT_DETAILS: a result's details in an annotation of their own."""

import json
from typing import Any

import pytest

from tests.blackbox.sidecar.scene import ANNOTATION, Scene
from tests.fakekube import Answer
from tests.fakekube.journal import Entry

DETAILS = f"{ANNOTATION}.details"


def annotations(scene: Scene) -> dict[str, str]:
    """Return what stands on the Job."""
    found: dict[str, str] = scene.fake.job(scene.job_name)["metadata"].get("annotations", {})
    return found


def write(scene: Scene, **fields: Any) -> None:
    """Write a result with further fields, indented."""
    scene.write(json.dumps({"status": "success", "reason": "Checked"} | fields, indent=2))


def has_details(entry: Entry) -> bool:
    """Say whether a patch brings details."""
    return bool(entry.json["metadata"]["annotations"].get(DETAILS))


def test_details_come_with_the_verdict(scene: Scene) -> None:
    """In the same patch, compact."""
    scene.create()
    reporter = scene.start(REPORT_DETAILS="true")
    write(scene, details={"checks": [1, 2]})

    assert 0 == reporter.join()
    assert '{"checks":[1,2]}' == annotations(scene)[DETAILS]
    assert '{"checks":[1,2]}' == scene.writes()[-1]["metadata"]["annotations"][DETAILS]


def test_details_stay_out_by_default(scene: Scene) -> None:
    """Nothing is written or removed."""
    scene.create()
    reporter = scene.start()
    write(scene, details={"checks": [1, 2]})

    assert 0 == reporter.join()
    assert [ANNOTATION] == list(scene.writes()[-1]["metadata"]["annotations"])


def test_a_verdict_without_details_removes_those_of_another_attempt(scene: Scene) -> None:
    """They would be taken for its own."""
    scene.create(job=lambda job: job["metadata"].update(annotations={DETAILS: "[1]", "a": "b"}))
    reporter = scene.start()
    write(scene)

    assert 0 == reporter.join()
    assert {ANNOTATION, "a"} == set(annotations(scene))


@pytest.mark.parametrize("code", [422, 403])
def test_details_that_the_api_refuses_do_not_cost_the_verdict(scene: Scene, code: int) -> None:
    """The other annotations may leave no room for them, or a webhook does not allow them."""
    scene.create()
    fault = scene.fake.fail(Answer(code), method="PATCH", where=has_details, times=None)
    reporter = scene.start(REPORT_DETAILS="true")
    write(scene, details=[1])

    assert 0 == reporter.join()
    assert 1 == fault.hits
    assert ("True", "Checked", True) == scene.history()[-1]
    assert DETAILS not in annotations(scene)
