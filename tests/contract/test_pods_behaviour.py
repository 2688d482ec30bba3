"""What the API server does with lists of Pods and patches of their annotations: fake and real.

As in `test_api_behaviour.py`: where the two differ, the fake is wrong.
"""

from typing import Any

import pytest

from reporter.verdict.pod import Names, read_pod
from tests.bed.controlplane import ControlPlane
from tests.contract.labelled_jobs import RESTRICTED
from tests.contract.servers import POD, Reply, Server
from tests.fakekube import Rule

LIMIT = 256 * 1024


def annotations(pod: dict[str, Any]) -> dict[str, str]:
    found: dict[str, str] = pod["metadata"].get("annotations", {})
    return found


def version(pod: dict[str, Any]) -> str:
    return str(pod["metadata"]["resourceVersion"])


def names(reply: Reply) -> list[str]:
    return [pod["metadata"]["name"] for pod in reply.json["items"]]


def select(api: Server, query: str, token: str | None = None) -> Reply:
    return api.call("GET", f"{api.pods}?{query}", token=token)


# Lists by label


@pytest.fixture
def labelled(api: Server) -> Server:
    api.create_pod("two", {"run": "sonobuoy-master"})
    api.create_pod("one", {"run": "sonobuoy-master", "sonobuoy-component": "aggregator"})
    api.create_pod("zero")
    return api


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("run=sonobuoy-master", ["one", "two"]),
        ("run%3Dsonobuoy-master", ["one", "two"]),
        ("run==sonobuoy-master", ["one", "two"]),
        ("run=sonobuoy-master,sonobuoy-component=aggregator", ["one"]),
        ("run=other", []),
        ("other=sonobuoy-master", []),
        ("sonobuoy-component", ["one"]),
        ("run!=sonobuoy-master", ["zero"]),
        ("", ["one", "two", "zero"]),
    ],
)
def test_a_list_has_the_pods_with_all_these_labels(
    labelled: Server, selector: str, expected: list[str]
) -> None:
    """Sorted by name; no match is an empty list."""
    reply = select(labelled, f"labelSelector={selector}")

    assert (200, "PodList", "v1") == (reply.status, reply.json["kind"], reply.json["apiVersion"])
    assert expected == names(reply)


# Annotations by JSON merge patch


def test_annotations_are_merged(api: Server) -> None:
    """New ones are added, others kept, null deletes; the answer is the Pod as stored."""
    made = api.create_pod()
    api.annotate({"a/x": "1", "a/y": "2"})
    reply = api.annotate({"a/x": None, "a/z": "3"})

    assert 200 == reply.status
    assert {"a/y": "2", "a/z": "3"} == annotations(reply.json)
    assert reply.json == api.call("GET", f"{api.pods}/{POD}").json
    assert made["spec"]["containers"] == reply.json["spec"]["containers"]
    assert int(version(reply.json)) > int(version(made))


def test_an_identical_patch_is_no_write(api: Server) -> None:
    """A repair of what is not broken costs no version and wakes no watch."""
    api.create_pod()
    first = api.annotate({"a": "1"}).json
    second = api.annotate({"a": "1"}).json

    assert version(first) == version(second)


def test_no_pod_of_that_name(api: Server) -> None:
    """404, and nothing is created."""
    reply = api.patch_pod({"metadata": {"annotations": {"a": "1"}}}, pod="none")

    assert (404, "NotFound", "none") == (
        reply.status,
        reply.reason,
        reply.json["details"]["name"],
    )


@pytest.mark.parametrize(
    "wrong",
    [{"a": 3}, {"a": {"b": "c"}}, {"a": ["b"]}, [], "x", {"a b": "c"}, {"-a": "c"}, {"": "c"}],
    ids=repr,
)
def test_what_is_no_annotation_is_invalid(api: Server, wrong: Any) -> None:
    """422 for values that are no text and keys that are no names; nothing of it is stored."""
    api.create_pod()
    reply = api.annotate(wrong)

    assert (422, "Invalid") == (reply.status, reply.reason)
    assert {} == annotations(api.call("GET", f"{api.pods}/{POD}").json)


def test_all_annotations_together_have_a_limit(api: Server) -> None:
    """256 KiB of keys and values, in bytes, with those of others; 422 beyond."""
    api.create_pod()
    api.annotate({"foreign": "x" * 1000})
    room = LIMIT - 1007
    full = api.annotate({"k": "x" * (room - 1)})
    over = api.annotate({"k": "x" * room})
    wide = api.annotate({"k": "ü" * (room // 2 + 1)})

    assert [200, 422, 422] == [full.status, over.status, wide.status]
    assert {"metadata.annotations"} == {c["field"] for c in over.json["details"]["causes"]}
    assert "Too long: may not be more than 262144 bytes" in over.message
    now = annotations(api.call("GET", f"{api.pods}/{POD}").json)
    assert room - 1 == len(now["k"])


def test_the_right_to_patch_may_be_for_one_pod(api: Server) -> None:
    """403 for any other, whether it is there or not; reading is not in it."""
    api.create_pod()
    token = api.token("annotator", (Rule(("patch",), ("pods",), (POD,)),))
    body = {"metadata": {"annotations": {"a": "1"}}}

    assert 200 == api.patch_pod(body, token=token).status
    assert 403 == api.patch_pod(body, token=token, pod="none").status
    assert 403 == api.call("GET", f"{api.pods}/{POD}", token=token).status


@pytest.mark.cluster
def test_the_index_of_a_completion(controlplane: ControlPlane, namespace: str) -> None:
    """The Job controller annotates each Pod of an Indexed Job with it."""
    adapter = {"name": "main", "image": "i", "securityContext": RESTRICTED}
    spec = {
        "completions": 2,
        "completionMode": "Indexed",
        "template": {"spec": {"restartPolicy": "Never", "containers": [adapter]}},
    }
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": spec}
    controlplane.request("POST", f"/apis/batch/v1/namespaces/{namespace}/jobs", job)
    path = f"/api/v1/namespaces/{namespace}/pods"
    (pod,) = controlplane.api.wait_for(path, lambda seen: seen["items"])["items"]

    assert 0 == read_pod(pod, Names()).index
