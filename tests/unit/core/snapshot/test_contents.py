"""What a snapshot holds, read from an index that anybody may have written."""

import pytest

from reporter.core.resources import DiscoveryTrouble, Resource
from reporter.core.snapshot.choice import LeftOut
from reporter.core.snapshot.contents import contents_document
from reporter.core.snapshot.index import Collected, Told, index_document

PODS = Resource("", "v1", "pods", "Pod", namespaced=True, verbs=frozenset())
JOBS = Resource("batch", "v1", "jobs", "Job", namespaced=True, verbs=frozenset())
SECRETS = Resource("", "v1", "secrets", "Secret", namespaced=True, verbs=frozenset())


def told(**more):
    """An index as ours are written."""
    jobs = Collected(count=1, size=10, truncated="larger than 10 bytes", error="gone", redacted=1)
    return index_document(
        Told(
            **{
                "began": 1.0,
                "ended": 2.0,
                "server_version": "v1.34.4",
                "resources": [(PODS, Collected(count=3, size=30, redacted=2)), (JOBS, jobs)],
                "left_out": [LeftOut(SECRETS, "not asked for")],
                "troubles": [DiscoveryTrouble("metrics.k8s.io", "v1", "503")],
                "namespaces": ["default"],
                "gone": {},
                "parts": {"podlogs": Collected(count=4, size=40, inconsistent=True)},
                **more,
            }
        )
    )


def test_what_an_index_says():
    """What is missing is first."""
    found = contents_document(told())
    jobs, pods = found["resources"]
    assert ("jobs", "batch/v1", "larger than 10 bytes", "gone") == (
        jobs["name"],
        jobs["version"],
        jobs["truncated"],
        jobs["error"],
    )
    assert ("pods", "v1", 3, 30, 2, "") == (
        *(pods[name] for name in ("name", "version", "count", "bytes", "redacted", "error")),
    )
    assert {"count": 8, "bytes": 80, "redacted": 3} == found["totals"]
    assert [("podlogs", 4, True)] == [
        (each["name"], each["count"], each["inconsistent"]) for each in found["parts"]
    ]
    assert [{"name": "secrets", "version": "v1", "reason": "not asked for"}] == found["left_out"]
    assert ["503"] == [each["error"] for each in found["group_errors"]]
    assert (False, ["default"], "v1.34.4", "") == (
        found["complete"],
        found["namespaces"],
        found["server_version"],
        found["problem"],
    )


@pytest.mark.parametrize(
    ("more", "problem", "namespaces"),
    [
        ({"stopped": "no room", "error": "e"}, "no room", ["default"]),
        ({"error": "e", "namespaces": None}, "e", None),
        (
            {"gone": {"b": "it was deleted", "a": "x" * 999}, "namespaces": ["a", "b"]},
            f"namespace a: {'x' * 500}",
            ["a", "b"],
        ),
    ],
)
def test_why_it_is_not_complete(more, problem, namespaces):
    """And without a selection there are all namespaces."""
    found = contents_document(told(**more))
    assert (problem[:500], namespaces) == (found["problem"][:500], found["namespaces"])


def test_an_index_that_is_none():
    """Other types are as good as nothing; a list without end is cut and counted."""
    hostile = {
        "resources": [{"resource": 1, "count": "x", "bytes": 2**70}, 7, *({} for _ in range(3000))],
        "leftOut": {"a": 1},
        "groupErrors": [{"group": "\x1b[31m" + "g" * 9999}] * 300,
        "namespaces": 5,
        "complete": "yes",
        "hosts": [],
    }
    found = contents_document(hostile)
    assert (2000, 1001) == (len(found["resources"]), found["more_resources"])
    assert {"count": 0, "bytes": 0, "redacted": 0} == found["totals"]
    assert ([], [], False) == (found["namespaces"], found["left_out"], found["complete"])
    assert 300 == len(found["group_errors"]) + found["more_group_errors"]
    assert "\x1b" not in str(found)
    assert 64 * 1024 > sum(len(each["group"]) for each in found["group_errors"])
    assert {"name", "error"} <= set(found["parts"][0])
