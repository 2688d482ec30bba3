"""`reporter.kube.api` and the aggregator's Pod: finding it by label, annotating it."""

from collections.abc import Iterator
from typing import Any

import pytest

from reporter.errors import (
    Conflict,
    Denied,
    Forbidden,
    InvalidRequest,
    KubeError,
    NotFound,
    Unavailable,
)
from reporter.kube.api import MOST_PODS, KubeApi
from tests.fakekube import Answer, FakeKube, Reset, make_job, make_pod

NAMESPACE = "default"
LABEL = "sonobuoy-component=aggregator"


def pod(name: str, **labels: str) -> dict[str, Any]:
    made = make_pod(make_job(), name=name, annotations={"foreign": "x"})
    made["metadata"]["labels"] = {name.replace("_", "-"): value for name, value in labels.items()}
    return made


@pytest.fixture
def fake() -> Iterator[FakeKube]:
    with FakeKube(role="aggregator") as fake:
        fake.create_pod(pod("two", sonobuoy_component="aggregator"))
        fake.create_pod(pod("one", sonobuoy_component="aggregator"))
        fake.create_pod(pod("other"))
        yield fake


def test_pods_are_found_by_their_label(fake: FakeKube, api: KubeApi) -> None:
    """Sorted by name; the selector is one query value, whatever is in it."""
    found = api.list_pods(NAMESPACE, LABEL)

    assert ["one", "two"] == [pod["metadata"]["name"] for pod in found]
    assert [] == api.list_pods(NAMESPACE, "sonobuoy-component=other")
    entry = fake.journal[0]
    assert ("GET", "/api/v1/namespaces/default/pods") == (entry.method, entry.path)
    assert {"labelSelector": LABEL, "limit": str(MOST_PODS)} == entry.query


def test_a_namespace_that_does_not_exist_has_no_pods(api: KubeApi) -> None:
    """The server does not tell the difference."""
    assert [] == api.list_pods("nowhere", LABEL)


def test_no_more_pods_than_fit_into_an_answer(fake: FakeKube, api: KubeApi) -> None:
    """Each may carry 256 KiB of annotations."""
    for at in range(2 * MOST_PODS):
        big = pod(f"pod-{at:02}", sonobuoy_component="aggregator")
        big["metadata"]["annotations"] = {"a": "x" * 260_000}
        fake.create_pod(big)

    assert MOST_PODS == len(api.list_pods(NAMESPACE, LABEL, timeout=30))


@pytest.mark.parametrize(
    "body",
    [
        {"kind": "PodList", "metadata": {}, "items": "x"},
        {"kind": "PodList", "metadata": {}, "items": ["x"]},
        {"kind": "JobList", "metadata": {}, "items": []},
        b"<html>",
    ],
    ids=repr,
)
def test_a_list_of_something_else_is_an_outage(
    fake: FakeKube, api: KubeApi, body: dict[str, Any] | bytes
) -> None:
    """A proxy's answer is none of the API server."""
    fake.fail(Answer(200, body=body))
    with pytest.raises(Unavailable):
        api.list_pods(NAMESPACE, LABEL)


def test_a_list_of_nothing_may_be_null(fake: FakeKube, api: KubeApi) -> None:
    """What Go makes of an empty list."""
    fake.fail(Answer(200, body={"kind": "PodList", "metadata": {}, "items": None}))

    assert [] == api.list_pods(NAMESPACE, LABEL)


def test_annotations_are_merged_into_those_of_others(fake: FakeKube, api: KubeApi) -> None:
    """With a JSON merge patch; None deletes; the answer is the new Pod."""
    api.annotate_pod(NAMESPACE, "one", {"a/x": "1", "a/y": "2"})
    changed = api.annotate_pod(NAMESPACE, "one", {"a/x": None, "a/y": "3"})

    assert {"foreign": "x", "a/y": "3"} == changed["metadata"]["annotations"]
    assert fake.pod("one") == changed
    entry = fake.journal[-1]
    assert ("PATCH", "/api/v1/namespaces/default/pods/one") == (entry.method, entry.path)
    assert {"fieldManager": "status-reporter", "fieldValidation": "Strict"} == entry.query
    assert "application/merge-patch+json" == entry.headers["content-type"]
    assert {"metadata": {"annotations": {"a/x": None, "a/y": "3"}}} == entry.json


def test_too_many_annotations_are_refused(fake: FakeKube, api: KubeApi) -> None:
    """256 KiB with those of others, and the error's text is short."""
    with pytest.raises(InvalidRequest, match="may not be more than 262144 bytes") as caught:
        api.annotate_pod(NAMESPACE, "one", {"a": "x" * 262_140})

    assert len(str(caught.value)) <= 300
    assert {"foreign": "x"} == fake.pod("one")["metadata"]["annotations"]


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (Answer(403), Denied),
        (Answer(409), Conflict),
        (Answer(422), InvalidRequest),
        (Answer(500), Unavailable),
        (Reset(), Unavailable),
        (Answer(200, body={"kind": "Status", "metadata": {}}), Unavailable),
    ],
    ids=str,
)
def test_a_refusal_is_one_error_after_one_request(
    fake: FakeKube, api: KubeApi, fault: Answer | Reset, error: type[KubeError]
) -> None:
    """No retry is hidden here."""
    fake.fail(fault)
    with pytest.raises(error) as caught:
        api.annotate_pod(NAMESPACE, "one", {"a": "1"})

    assert error is type(caught.value)
    assert 1 == len(fake.journal)


def test_a_pod_that_is_gone(api: KubeApi) -> None:
    """404 by name."""
    with pytest.raises(NotFound):
        api.annotate_pod(NAMESPACE, "none", {"a": "1"})


def test_the_aggregators_rights_are_enough_and_no_more(fake: FakeKube, api: KubeApi) -> None:
    """List and patch of Pods: it reads none by name and no Job."""
    api.list_pods(NAMESPACE, LABEL)
    api.annotate_pod(NAMESPACE, "one", {"a": "1"})
    for forbidden in (api.get_pod, api.get_job):
        with pytest.raises(Forbidden):
            forbidden(NAMESPACE, "one")


def test_the_sidecar_may_do_neither(fake: FakeKube, api: KubeApi) -> None:
    """Its rights have not grown."""
    fake.write_token(fake.token("reporter"))
    with pytest.raises(Forbidden, match="cannot list"):
        api.list_pods(NAMESPACE, LABEL)
    with pytest.raises(Forbidden, match="cannot patch"):
        api.annotate_pod(NAMESPACE, "one", {"a": "1"})
