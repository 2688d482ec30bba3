"""`reporter.kube` and objects of any kind: create, get, delete, list, watch, logs."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from reporter.errors import (
    AlreadyExists,
    Conflict,
    Denied,
    Forbidden,
    InvalidRequest,
    NotFound,
    Unavailable,
)
from reporter.kube.api import WARN, KubeApi
from reporter.kube.resources import KINDS
from tests.fakekube import Answer, FakeKube, Hang, Reset, make_job, make_pod
from tests.fakekube import kinds as fake_kinds
from tests.kube_client import connect


@pytest.fixture
def fake() -> Iterator[FakeKube]:
    with FakeKube(role="admin") as fake:
        yield fake


def config(name: str = "x", **data: str) -> dict[str, Any]:
    return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name}, "data": data}


def test_every_kind_has_its_path() -> None:
    """The fake's table was held against the real server; both say the same."""
    fake = {
        (kind.name, kind.group, kind.plural, kind.namespaced) for kind in fake_kinds.KINDS.values()
    }
    assert fake >= {
        (kind.kind, kind.group, kind.plural, kind.namespaced) for kind in KINDS.values()
    }


REVIEWS = {"SelfSubjectAccessReview", "LocalSubjectAccessReview"}


@pytest.mark.parametrize("kind", sorted(set(KINDS) - {"Event"} - REVIEWS))
def test_the_life_of_an_object(api: KubeApi, kind: str) -> None:
    """Created, read, listed, and deleted with its uid, wherever it lives."""
    namespace = "default" if KINDS[kind].namespaced else None
    made = api.create(kind, namespace, {"metadata": {"name": "x"}})

    assert made == api.get(kind, namespace, "x")
    assert ["x"] == [one["metadata"]["name"] for one in api.list_all(kind, namespace)]
    with pytest.raises(Conflict):
        api.delete(kind, namespace, "x", uid="another")
    api.delete(kind, namespace, "x", uid=made["metadata"]["uid"])
    with pytest.raises(NotFound):
        api.delete(kind, namespace, "x")
    with pytest.raises(NotFound):
        api.get(kind, namespace, "x")


def test_a_name_that_is_taken(api: KubeApi, fake: FakeKube) -> None:
    """An error of its own: a quota that others use at the same moment is a conflict, too."""
    api.create("ConfigMap", "default", config(a="b"))
    with pytest.raises(AlreadyExists):
        api.create("ConfigMap", "default", config(a="c"))
    fake.fail(Answer(409))
    with pytest.raises(Conflict) as caught:
        api.create("ConfigMap", "default", config("y"))

    assert Conflict is type(caught.value)
    assert {"a": "b"} == api.get("ConfigMap", "default", "x")["data"]


def test_a_dry_run_and_unknown_fields(api: KubeApi, fake: FakeKube) -> None:
    """Both are asked of the server."""
    api.create("ConfigMap", "default", config(), dry_run=True, validation=WARN)
    with pytest.raises(NotFound):
        api.get("ConfigMap", "default", "x")
    (asked,) = fake.requests("POST")

    assert {
        "fieldManager": "status-reporter",
        "fieldValidation": "Warn",
        "dryRun": "All",
    } == asked.query


def test_refused_by_a_policy_or_for_want_of_a_right(api: KubeApi, fake: FakeKube) -> None:
    """The first says why in the server's words, the second may be granted later."""
    words = 'pods "x" is forbidden: exceeded quota: none, requested: pods=1, used: pods=0'
    fake.fail(
        Answer(403, said=words),
        method="POST",
    )
    with pytest.raises(Denied) as caught:
        api.create("Pod", "default", {"metadata": {"name": "x"}})
    assert words == caught.value.said

    fake.write_token(fake.token("nothing"))
    other = connect(fake)
    with pytest.raises(Forbidden) as refused:
        other.create("Pod", "default", {"metadata": {"name": "x"}})
    other.close()
    assert Forbidden is type(refused.value)


def test_annotations_are_merged_into_those_of_others(api: KubeApi, fake: FakeKube) -> None:
    """With a JSON merge patch; None deletes; the answer is the new object."""
    fake.create_pod(make_pod(fake.create_job(make_job()), name="p", annotations={"foreign": "x"}))
    for annotations in ({"a/x": "1", "a/y": "2"}, {"a/x": None, "a/y": "3"}):
        body = {"metadata": {"annotations": annotations}}
        changed = api.patch("Pod", "default", "p", body, merge="json")

    assert {"foreign": "x", "a/y": "3"} == changed["metadata"]["annotations"]
    assert fake.pod("p") == changed
    sent = fake.journal[-1]
    assert {"fieldManager": "status-reporter", "fieldValidation": "Strict"} == sent.query
    assert "application/merge-patch+json" == sent.headers["content-type"]

    body = {"metadata": {"annotations": {"a": "x" * 262_140}}}
    with pytest.raises(InvalidRequest, match="may not be more than 262144 bytes") as caught:
        api.patch("Pod", "default", "p", body, merge="json")
    assert len(str(caught.value)) <= 300


def test_deleting_takes_the_pods_along(api: KubeApi, fake: FakeKube) -> None:
    """A Job that is deleted without a word about it leaves them behind."""
    fake.create_pod(make_pod(fake.create_job(make_job()), name="p"))
    api.delete("Job", "default", "validate")

    with pytest.raises(NotFound):
        api.get("Pod", "default", "p")


def test_a_list_and_a_watch_from_there(api: KubeApi, fake: FakeKube) -> None:
    """Nothing is missed between them, and nothing is told twice."""
    labels = {"a": "b"}
    api.create("Secret", "default", {"metadata": {"name": "one", "labels": labels}})
    page = api.list_page("Secret", "default", "a=b")
    api.create("Secret", "default", {"metadata": {"name": "two", "labels": labels}})
    api.create("Secret", "default", {"metadata": {"name": "other"}})
    watch = api.watch("Secret", "default", "a=b", resource_version=page.resource_version)
    event, found = next(iter(watch))
    watch.close()

    assert (["one"], "") == ([one["metadata"]["name"] for one in page.items], page.more)
    assert ("ADDED", "two") == (event, found["metadata"]["name"])


def test_a_list_of_large_objects(api: KubeApi, fake: FakeKube) -> None:
    """The pages get smaller until one fits, and larger again; one object alone may be larger."""
    sizes = [9_000_000, *[1_450_000] * 5, *[10] * 150]
    for number, size in enumerate(sizes):
        fake.create_job(make_job(f"job-{number:03}", uid=str(number)))
        fake.update_job(
            f"job-{number:03}",
            lambda job, size=size: job["metadata"].update(annotations={"a": "x" * size}),
        )
    names = [job["metadata"]["name"] for job in api.list_all("Job", None)]

    assert [f"job-{number:03}" for number in range(len(sizes))] == names
    limits = [entry.query["limit"] for entry in fake.requests("GET", "/jobs")]
    assert ["100", "50", "25", "12", "6", "3", "1"] == limits[:7]
    assert "100" == limits[-1]
    assert len(limits) < 20


@pytest.fixture
def pod(fake: FakeKube) -> str:
    fake.create_pod(make_pod(fake.create_job(make_job()), name="p"))
    return "p"


def test_a_whole_log(api: KubeApi, fake: FakeKube, pod: str) -> None:
    """However long it is, piece by piece."""
    log = b"".join(b"line %d\n" % number for number in range(100_000))
    fake.store.logs["default", pod, "adapter"] = log

    assert log == b"".join(api.stream_log("default", pod, "adapter"))


def test_a_log_that_is_not_there(api: KubeApi, fake: FakeKube, pod: str) -> None:
    """The Pod, the container, or a node to ask."""
    with pytest.raises(NotFound):
        list(api.stream_log("default", "other", "adapter"))
    with pytest.raises(InvalidRequest, match="container other is not valid"):
        list(api.stream_log("default", pod, "other"))
    fake.update_pod(pod, lambda found: found["spec"].pop("nodeName") and None)

    assert [] == list(api.stream_log("default", pod, "adapter"))


@pytest.mark.parametrize(
    "fault", [Reset(), Answer(500), Answer(headers={"Content-Length": "100"}, body=b"half")]
)
def test_a_log_that_breaks(api: KubeApi, fake: FakeKube, pod: str, fault: Any) -> None:
    """Unavailable, to be asked for again; also where the rest never comes."""
    fake.fail(fault, path="/log")
    with pytest.raises(Unavailable):
        list(api.stream_log("default", pod, "adapter", silence=0.05))


def test_a_log_is_ended_from_another_thread(api: KubeApi, fake: FakeKube, pod: str) -> None:
    """Also one that is followed and says nothing."""
    fake.fail(Hang(), path="/log")
    stream = api.stream_log("default", pod, "adapter", follow=True, silence=None)
    found: list[bytes] = []
    reading = threading.Thread(target=lambda: found.extend(stream))
    reading.start()
    fake.wait_for(lambda: fake.requests("GET", "/log"))
    stream.close()
    reading.join(20)

    assert ([], False) == (found, reading.is_alive())
    assert [] == list(stream)
    (asked,) = fake.requests("GET", "/log")
    assert {"container": "adapter", "follow": "true"} == asked.query
