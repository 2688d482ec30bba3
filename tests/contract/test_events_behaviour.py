"""What the API server does with a new Event of events.k8s.io/v1: fake and real."""

from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any

import pytest

from tests.contract.servers import JOB, Server
from tests.fakekube import Rule

AT = "2030-01-01T12:00:00.000000Z"


def event(api: Server, **fields: Any) -> dict[str, Any]:
    """Return an Event as the reporter sends one; a field of None is left out."""
    whole = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "validate.0123456789abcdef", "namespace": api.namespace},
        "eventTime": AT,
        "reportingController": "status-reporter",
        "reportingInstance": "validate-x7k2p",
        "action": "Report",
        "reason": "AllGood",
        "note": "words",
        "type": "Normal",
        "regarding": {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "namespace": api.namespace,
            "name": JOB,
            "uid": "job-uid",
        },
    }
    return {key: value for key, value in (whole | fields).items() if value is not None}


def fields(reply: Any) -> set[str]:
    """Return the fields that a 422 names."""
    return {cause["field"] for cause in reply.json["details"]["causes"]}


def test_an_event_is_created(api: Server) -> None:
    """201 with what was sent and what the server adds."""
    sent = event(api)
    reply = api.post_event(sent)

    assert 201 == reply.status
    assert sent == {key: reply.json[key] for key in sent if key != "metadata"} | {
        "metadata": {key: reply.json["metadata"][key] for key in ("name", "namespace")}
    }
    assert {"uid", "resourceVersion", "creationTimestamp"} <= set(reply.json["metadata"])
    assert ({}, None, None) == (
        reply.json["deprecatedSource"],
        reply.json["deprecatedFirstTimestamp"],
        reply.json["deprecatedLastTimestamp"],
    )


def test_the_clock_of_the_answers(api: Server) -> None:
    """Their Date is of the clock that new objects are dated with."""
    reply = api.post_event(event(api))
    created = datetime.fromisoformat(reply.json["metadata"]["creationTimestamp"])

    assert 60.0 > abs((parsedate_to_datetime(reply.headers["Date"]) - created).total_seconds())


def test_the_old_group_shows_it_under_other_names(api: Server) -> None:
    """That is where `kubectl describe` looks, by the object's UID."""
    api.post_event(event(api))
    query = f"fieldSelector=involvedObject.uid=job-uid,involvedObject.name={JOB}"
    (found,) = api.call("GET", f"/api/v1/namespaces/{api.namespace}/events?{query}").json["items"]

    del found["metadata"]
    assert {
        "involvedObject": event(api)["regarding"],
        "reason": "AllGood",
        "message": "words",
        "source": {},
        "firstTimestamp": None,
        "lastTimestamp": None,
        "type": "Normal",
        "eventTime": AT,
        "action": "Report",
        "reportingComponent": "status-reporter",
        "reportingInstance": "validate-x7k2p",
    } == found


def test_a_second_one_of_that_name_is_a_conflict(api: Server) -> None:
    """409, and the first one stays."""
    api.post_event(event(api))
    reply = api.post_event(event(api, reason="Another"))

    name = event(api)["metadata"]["name"]
    assert (409, "AlreadyExists") == (reply.status, reply.reason)
    assert f'events.events.k8s.io "{name}" already exists' == reply.message
    assert {"name": name, "group": "events.k8s.io", "kind": "events"} == reply.json["details"]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"eventTime": None}, "eventTime"),
        ({"reportingController": None}, "reportingController"),
        ({"reportingController": "a b"}, "reportingController"),
        ({"reportingInstance": None}, "reportingInstance"),
        ({"reportingInstance": "x" * 129}, "reportingInstance"),
        ({"action": None}, "action"),
        ({"action": "x" * 129}, "action"),
        ({"reason": None}, "reason"),
        ({"reason": "ü" * 65}, "reason"),
        ({"note": "ü" * 513}, "message"),
        ({"type": None}, "type"),
        ({"type": "Other"}, "type"),
        ({"metadata": {"name": "Upper_Case"}}, "metadata.name"),
        ({"metadata": {}}, "metadata.name"),
    ],
)
def test_what_is_refused(api: Server, change: dict[str, Any], field: str) -> None:
    """422 that names the field."""
    reply = api.post_event(event(api, **change))

    assert (422, "Invalid") == (reply.status, reply.reason)
    assert {field} == fields(reply)


@pytest.mark.parametrize(
    "change",
    [
        {"note": None},
        {"note": "ü" * 512},
        {"note": "a\x00\x1bb"},
        {"reason": "ü" * 64},
        {"reason": "with a space"},
        {"reportingInstance": "x" * 128},
        {"reportingController": "example.com/status-reporter"},
        {"kind": None, "apiVersion": None},
        {"metadata": {"name": "no-namespace"}},
    ],
    ids=str,
)
def test_what_is_not_checked(api: Server, change: dict[str, Any]) -> None:
    """Limits are in bytes; a reason may be any text."""
    assert 201 == api.post_event(event(api, **change)).status


@pytest.mark.parametrize(
    "change",
    [
        {"eventTime": "2030-01-01T12:00:00Z"},
        {"eventTime": "2030-01-01T12:00:00.123Z"},
        {"eventTime": "soon"},
        {"eventTime": 5},
        {"note": 5},
        {"kind": "Job"},
        {"unknown": 1},
        {"metadata": {"name": "a", "namespace": "another"}},
    ],
    ids=str,
)
def test_what_makes_no_event(api: Server, change: dict[str, Any]) -> None:
    """400: times have microseconds, all six digits."""
    reply = api.post_event(event(api, **change))

    assert (400, "BadRequest") == (reply.status, reply.reason)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (Rule(("create",), ("events",), groups=("events.k8s.io",)), 201),
        (Rule(("create",), ("events",)), 403),
        (Rule(("get",), ("events",), groups=("events.k8s.io",)), 403),
    ],
    ids=["its group", "the old group", "another verb"],
)
def test_the_right_to_create_events(api: Server, rule: Rule, expected: int) -> None:
    """A Role that names the group "" does not cover the path of the new one."""
    token = api.token("narrator", (rule,))
    reply = api.post_event(event(api), token=token)

    assert expected == reply.status
    if expected == 403:
        assert 'cannot create resource "events" in API group "events.k8s.io"' in reply.message
        assert {"group": "events.k8s.io", "kind": "events"} == reply.json["details"]
