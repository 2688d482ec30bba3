"""How the API server merges a PATCH into a Job's status: the fake and the real one."""

import json
from typing import Any

import pytest

from tests.contract.conditions import condition, conditions, types, version
from tests.contract.servers import JOB, Server

# Which patch


def test_patching_a_job_that_does_not_exist(api: Server) -> None:
    """404, and nothing is created."""
    reply = api.patch({"status": {"conditions": [condition()]}}, job="none")

    assert (404, "NotFound") == (reply.status, reply.reason)
    assert 404 == api.call("GET", f"{api.jobs}/none").status


@pytest.mark.parametrize("content_type", ["application/json", "text/plain", None])
def test_a_patch_without_a_patch_content_type_is_refused(
    api: Server, content_type: str | None
) -> None:
    """What a client sends that forgot the header."""
    api.create_job()
    reply = api.patch({"status": {"conditions": [condition()]}}, content_type=content_type)

    assert (415, "UnsupportedMediaType") == (reply.status, reply.reason)


# Strategic merge


def test_the_first_condition(api: Server) -> None:
    """A Job without conditions gets a list."""
    before = api.create_job()
    assert [] == conditions(before)
    reply = api.patch_conditions(condition())

    assert 200 == reply.status
    assert [condition()] == conditions(reply.json)
    assert reply.json == api.job()
    assert int(version(reply.json)) > int(version(before))


def test_other_conditions_are_kept(api: Server) -> None:
    """One of another writer is neither changed nor dropped."""
    api.create_job()
    foreign = condition("Foreign", status="Unknown")
    api.patch_conditions(foreign)
    after = api.patch_conditions(condition()).json

    assert foreign in conditions(after)
    assert condition() in conditions(after)


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        (["B"], ["A", "B", "C"]),
        (["N", "M"], ["N", "M", "A", "B", "C"]),
        (["N", "B"], ["N", "A", "B", "C"]),
        (["B", "N"], ["A", "B", "N", "C"]),
        (["C", "A"], ["B", "C", "A"]),
        (["C", "N", "A"], ["B", "C", "N", "A"]),
        (["N", "C", "M"], ["N", "A", "B", "C", "M"]),
    ],
    ids="".join,
)
def test_the_order_of_new_and_old_types(api: Server, patch: list[str], expected: list[str]) -> None:
    """New ones come first; the patch's order holds; what it leaves out keeps its place."""
    api.create_job()
    api.patch_conditions(condition("A"), condition("B"), condition("C"))
    after = api.patch_conditions(*(condition(kind, status="False") for kind in patch)).json

    assert expected == types(after)


def test_an_identical_patch_is_no_write(api: Server) -> None:
    """The resourceVersion stays, whoever sends it."""
    api.create_job()
    body = {"metadata": {"annotations": {"a": "b"}}, "status": {"conditions": [condition()]}}
    first = api.patch(body).json
    second = api.patch(body, query="fieldManager=another").json

    assert version(first) == version(second) == version(api.job())


# Guards and what else is stored


def test_another_uid_is_invalid(api: Server) -> None:
    """422 with a cause on metadata.uid: it is another Job of that name."""
    api.create_job()
    body = {"metadata": {"uid": "other"}, "status": {"conditions": [condition()]}}
    reply = api.patch(body)

    assert (422, "Invalid") == (reply.status, reply.reason)
    assert {"metadata.uid"} == {cause["field"] for cause in reply.json["details"]["causes"]}
    assert "field is immutable" in reply.message
    assert [] == conditions(api.job())


def test_a_stale_version_is_a_conflict(api: Server) -> None:
    """409, and the write in between is kept."""
    stale = version(api.create_job())
    api.patch_conditions(condition("Foreign"))
    body = {"metadata": {"resourceVersion": stale}, "status": {"conditions": [condition()]}}
    reply = api.patch(body)

    assert (409, "Conflict") == (reply.status, reply.reason)
    assert JOB == reply.json["details"]["name"]
    assert ["Foreign"] == types(api.job())


def test_a_stale_version_also_refuses_a_patch_that_would_change_nothing(api: Server) -> None:
    """Compare-and-swap compares first."""
    stale = version(api.create_job())
    api.patch_conditions(condition())
    body = {"metadata": {"resourceVersion": stale}, "status": {"conditions": [condition()]}}

    assert 409 == api.patch(body).status


def test_a_stale_version_comes_before_another_uid(api: Server) -> None:
    """A Job that was made anew is seen as a conflict first, when both guards fail."""
    stale = version(api.create_job())
    api.patch_conditions(condition())
    body = {"metadata": {"resourceVersion": stale, "uid": "other"}}

    assert 409 == api.patch(body).status


def test_annotations_come_with_the_condition(api: Server) -> None:
    """Stored in one write; null deletes one, others stay."""
    api.create_job()
    body = {"metadata": {"annotations": {"a": "1", "b": "2"}}}
    first = api.patch(body | {"status": {"conditions": [condition()]}}).json
    second = api.patch({"metadata": {"annotations": {"a": None}}}).json

    annotations = first["metadata"]["annotations"]
    assert ("1", "2") == (annotations["a"], annotations["b"])
    assert [condition()] == conditions(first)
    assert "a" not in second["metadata"]["annotations"]
    assert "2" == second["metadata"]["annotations"]["b"]


# Strict validation


@pytest.mark.parametrize(
    "patch",
    [
        {"typo": 1},
        {"metadata": {"typo": "x"}},
        {"status": {"typo": 1}},
        {"status": {"conditions": [condition(typo="x")]}},
        {"status": {"conditions": [condition(observedGeneration=1)]}},
    ],
    ids=lambda patch: json.dumps(patch)[:40],
)
def test_an_unknown_field(api: Server, patch: dict[str, Any]) -> None:
    """Strict refuses and repeats the patch, Warn is the default and says so, Ignore is silent."""
    api.create_job()
    strict = api.patch(patch)
    warned = api.patch(patch, query="fieldManager=test")
    ignored = api.patch(patch, query="fieldValidation=Ignore")

    assert (422, "Invalid") == (strict.status, strict.reason)
    assert "strict decoding error: unknown field" in strict.message
    assert 200 == warned.status
    assert "unknown field" in warned.headers["Warning"]
    assert (200, None) == (ignored.status, ignored.headers.get("Warning"))


def test_a_refused_patch_is_repeated_in_the_message(api: Server) -> None:
    """All of it: a log has to cut it."""
    api.create_job()
    reply = api.patch_conditions(condition(typo="x", message="y" * 5000))

    assert "y" * 5000 in reply.message
