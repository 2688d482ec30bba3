"""What the API server does with lists of Jobs and events, and with pages: fake and real.

As in `test_api_behaviour.py`: where the two differ, the fake is wrong.
"""

from typing import Any

import pytest

from tests.contract.servers import JOB, Reply, Server
from tests.fakekube import Rule


def names(reply: Reply) -> list[str]:
    return [each["metadata"]["name"] for each in reply.json["items"]]


def test_a_list_of_jobs(api: Server) -> None:
    """Its elements do not repeat what they are."""
    api.create_job()
    reply = api.call("GET", api.jobs)

    assert (200, "JobList", "batch/v1") == (
        reply.status,
        reply.json["kind"],
        reply.json["apiVersion"],
    )
    assert [JOB] == names(reply)
    assert {"kind", "apiVersion"}.isdisjoint(reply.json["items"][0])


@pytest.mark.parametrize(("field", "expected"), [(JOB, [JOB]), ("other", [])])
def test_jobs_by_name(api: Server, field: str, expected: list[str]) -> None:
    """A field selector, as for Pods."""
    api.create_job()

    assert expected == names(api.call("GET", f"{api.jobs}?fieldSelector=metadata.name={field}"))


def test_a_watch_of_jobs(api: Server) -> None:
    """It starts with those that are there, says what they are, and leaves others out."""
    api.create_job()
    watch = api.watch("timeoutSeconds=10", path=api.jobs)
    kind, found = watch.event()

    assert ("ADDED", "Job", "batch/v1", JOB) == (
        kind,
        found["kind"],
        found["apiVersion"],
        found["metadata"]["name"],
    )
    api.patch({"metadata": {"annotations": {"example.com/a": "b"}}})
    changes = (each for each in watch.rest() if "annotations" in each[1]["metadata"])
    kind, found = next(changes)
    assert ("MODIFIED", "b") == (kind, found["metadata"]["annotations"].get("example.com/a"))
    none = api.watch("timeoutSeconds=1&labelSelector=no=such", path=api.jobs)
    assert [] == [each for each in none.rest() if each[0] != "BOOKMARK"]


def test_pods_page_by_page(api: Server) -> None:
    """`continue` leads to the rest; the last page has none."""
    for name in ("one", "three", "two"):
        api.create_pod(name)
    first = api.call("GET", f"{api.pods}?limit=2")
    more = first.json["metadata"]["continue"]
    second = api.call("GET", f"{api.pods}?limit=2&continue={more}")

    assert (["one", "three"], ["two"]) == (names(first), names(second))
    assert not second.json["metadata"].get("continue")


@pytest.mark.parametrize("path", ["jobs", "pods", "events"])
def test_a_list_needs_its_own_right(api: Server, path: str) -> None:
    """`get` is not `list`."""
    whole: dict[str, Any] = {
        "jobs": api.jobs,
        "pods": api.pods,
        "events": f"/api/v1/namespaces/{api.namespace}/events",
    }
    token = api.token(f"getter-{path}", (Rule(("get",), ("jobs", "pods", "events")),))

    assert 403 == api.call("GET", whole[path], token=token).status


def test_events_by_the_object(api: Server) -> None:
    """Its UID selects; nobody has any is an empty list."""
    path = f"/api/v1/namespaces/{api.namespace}/events?fieldSelector=involvedObject.uid=none"
    reply = api.call("GET", path)

    assert (200, "EventList", []) == (reply.status, reply.json["kind"], reply.json["items"])
