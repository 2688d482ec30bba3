"""How the API server merges a PATCH into a Job's status: the fake and the real one."""

from typing import Any

import pytest

from tests.contract.conditions import LATER, THEN, condition, conditions, types, version
from tests.contract.servers import JOB, Server

# Which patch (facts 1.1)


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


# Strategic merge (1.2)


def test_the_first_condition(api: Server) -> None:
    """A Job without conditions gets a list."""
    before = api.create_job()
    assert [] == conditions(before)
    reply = api.patch_conditions(condition())

    assert 200 == reply.status
    assert [condition()] == conditions(reply.json)
    assert reply.json == api.job()
    assert int(version(reply.json)) > int(version(before))


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        (["N", "M"], ["N", "M", "A", "B", "C"]),
        (["B"], ["A", "B", "C"]),
        (["N", "B"], ["N", "A", "B", "C"]),
        (["B", "N"], ["A", "B", "N", "C"]),
        (["C", "A"], ["B", "C", "A"]),
        (["C", "N", "A"], ["B", "C", "N", "A"]),
        (["N", "C", "M"], ["N", "A", "B", "C", "M"]),
    ],
    ids="".join,
)
def test_the_order_when_new_and_old_types_come_together(
    api: Server, patch: list[str], expected: list[str]
) -> None:
    """The patch's order holds; what it leaves out keeps its place before what followed it.

    Nobody may read conditions[0].
    """
    api.create_job()
    api.patch_conditions(condition("A"), condition("B"), condition("C"))
    after = api.patch_conditions(*(condition(kind, status="False") for kind in patch)).json

    assert expected == types(after)


FOREIGN = condition("Foreign", status="Unknown")
WITHOUT_TEXTS = {
    "type": "Available",
    "status": "True",
    "lastProbeTime": None,
    "lastTransitionTime": THEN,
}
BARE = {"type": "Bare", "status": "", "lastProbeTime": None, "lastTransitionTime": None}


@pytest.mark.parametrize(
    ("before", "patch", "after"),
    [
        pytest.param(FOREIGN, condition(), [condition(), FOREIGN], id="another writer's is kept"),
        pytest.param(
            condition(),
            {"type": "Available", "status": "False"},
            [condition(status="False")],
            id="fields left out survive",
        ),
        pytest.param(
            condition(),
            {"type": "Available", "reason": None, "message": None, "lastProbeTime": None},
            [WITHOUT_TEXTS],
            id="null deletes texts, times are shown as null",
        ),
        pytest.param(
            FOREIGN, {"type": "Foreign", "$patch": "delete"}, [], id="a directive deletes one"
        ),
        pytest.param(
            FOREIGN, {"type": "Bare"}, [BARE, FOREIGN], id="of a type alone the status is empty"
        ),
    ],
)
def test_conditions_are_merged_by_their_type(
    api: Server, before: dict[str, Any], patch: dict[str, Any], after: list[dict[str, Any]]
) -> None:
    api.create_job()
    api.patch_conditions(before)

    assert after == conditions(api.patch_conditions(patch).json)


def test_null_deletes_the_list(api: Server) -> None:
    """All conditions are gone."""
    api.create_job()
    api.patch_conditions(condition())
    after = api.patch({"status": {"conditions": None}}).json

    assert "conditions" not in after["status"]


def test_a_condition_without_type_is_a_server_error(api: Server) -> None:
    """500, though the request is what is wrong, where there is a list to merge with."""
    api.create_job()
    api.patch_conditions(condition())
    reply = api.patch_conditions({"status": "True"})

    assert 500 == reply.status
    assert "does not contain declared merge key: type" in reply.message


def test_an_identical_patch_is_no_write(api: Server) -> None:
    """The resourceVersion stays, whoever sends it."""
    api.create_job()
    body = {"metadata": {"annotations": {"a": "b"}}, "status": {"conditions": [condition()]}}
    first = api.patch(body).json
    second = api.patch(body, query="fieldManager=another").json

    assert version(first) == version(second) == version(api.job())


def test_a_changed_probe_time_alone_is_a_write(api: Server) -> None:
    """Times have to be kept stable."""
    api.create_job()
    first = api.patch_conditions(condition()).json
    second = api.patch_conditions(condition(lastProbeTime=LATER)).json

    assert version(first) != version(second)
    assert LATER == conditions(second)[0]["lastProbeTime"]
    assert THEN == conditions(second)[0]["lastTransitionTime"]


# Guards and what else is stored (1.4, 1.5)


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
    """Compare-and-swap compares first; also before another uid, of a Job that was made anew."""
    stale = version(api.create_job())
    api.patch_conditions(condition())
    body = {"metadata": {"resourceVersion": stale}, "status": {"conditions": [condition()]}}

    assert 409 == api.patch(body).status
    assert 409 == api.patch({"metadata": {"resourceVersion": stale, "uid": "other"}}).status


def test_a_malformed_version_is_a_server_error(api: Server) -> None:
    """500 and not 400."""
    api.create_job()

    assert 500 == api.patch({"metadata": {"resourceVersion": "abc"}}).status


def test_another_name_in_the_body_is_refused(api: Server) -> None:
    """400: the name of the object does not match the URL."""
    api.create_job()

    assert 400 == api.patch({"metadata": {"name": "other"}}).status


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


def test_labels_are_stored_and_spec_is_not(api: Server) -> None:
    """The status path takes metadata along and ignores the spec."""
    before = api.create_job()
    after = api.patch({"metadata": {"labels": {"x": "y"}}, "spec": {"suspend": True}}).json

    assert "y" == after["metadata"]["labels"]["x"]
    assert before["spec"] == after["spec"]
