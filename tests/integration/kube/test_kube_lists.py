"""`reporter.kube` as people use it: their kubeconfig, and lists of Jobs, Pods and events; logs."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from reporter.errors import (
    Expired,
    Forbidden,
    InvalidRequest,
    SettingsError,
    TooLarge,
    Unavailable,
)
from reporter.kube.api import PAGE, KubeApi
from reporter.kube.resources import Resource
from tests.blackbox.ctl.cluster import kubeconfig
from tests.fakekube import Answer, FakeKube, make_job
from tests.fakekube.kinds import Kind


@pytest.fixture
def fake() -> Iterator[FakeKube]:
    with FakeKube(role="admin") as fake:
        yield fake


@pytest.fixture
def api(fake: FakeKube, tmp_path: Path) -> Iterator[KubeApi]:
    api, _ = KubeApi.from_kubeconfig(str(kubeconfig(tmp_path / "config", fake)))
    yield api
    api.close()


def names(found: Any) -> list[str]:
    return [each["metadata"]["name"] for each in found]


def test_jobs_come_page_by_page(fake: FakeKube, api: KubeApi) -> None:
    """All of them, each once, also those of all namespaces."""
    for number in range(2 * PAGE + 1):
        fake.create_job(make_job(f"j{number:03}", uid=str(number)))
    fake.create_job(make_job("far", "other", uid="far"))

    assert 2 * PAGE + 1 == len(set(names(api.list_all("Job", "default"))))
    assert 3 == len(fake.requests("GET", "/jobs"))
    assert 2 * PAGE + 2 == len(set(names(api.list_all("Job", None))))
    assert ["j007"] == names(api.list_all("Job", "default", "job-name=j007"))
    assert [] == names(api.list_all("Job", "nowhere"))


def test_objects_too_large_for_one_answer(fake: FakeKube, api: KubeApi) -> None:
    """Fewer are asked for at once, until one is too large by itself."""
    for name in "abcd":
        fake.store.create("ConfigMap", {"metadata": {"name": name}, "data": {"x": "x" * 1_000}})
    page = api.list_page("ConfigMap", "default", limit=4, most=12_000)

    assert (["a", "b"], 4) == (names(page.items), page.limit)
    assert ["4", "2"] == [each.query["limit"] for each in fake.requests("GET", "/configmaps")]
    with pytest.raises(TooLarge):
        api.list_page("ConfigMap", "default", limit=4, most=1_000)


def test_trouble_on_a_later_page(fake: FakeKube, api: KubeApi) -> None:
    """Raised, not taken for the end."""
    for number in range(PAGE + 1):
        fake.create_job(make_job(f"j{number:03}", uid=str(number)))
    fake.fail(Answer(500), nth=2)

    with pytest.raises(Unavailable):
        list(api.list_all("Job", "default"))


@pytest.mark.parametrize(
    "body",
    [
        {"kind": "EventList", "metadata": {}, "items": {"a": 1}},
        {"kind": "EventList", "metadata": {}, "items": ["x"]},
        {"kind": "PodList", "metadata": {}, "items": []},
        b"<html>",
    ],
    ids=repr,
)
def test_what_is_no_list(fake: FakeKube, api: KubeApi, body: dict[str, Any] | bytes) -> None:
    """Unavailable: something in between has answered."""
    fake.fail(Answer(body=body))
    with pytest.raises(Unavailable):
        api.list_page("Event", "default")


def test_a_list_of_nothing_may_be_null(fake: FakeKube, api: KubeApi) -> None:
    """What Go makes of an empty list."""
    fake.fail(Answer(200, body={"kind": "PodList", "metadata": {}, "items": None}))

    assert [] == list(api.list_all("Pod", "default"))


def test_pages_that_take_too_long(fake: FakeKube, api: KubeApi) -> None:
    """The refusal brings along what goes on all the same."""
    for name in "abcd":
        fake.store.create("ConfigMap", {"metadata": {"name": name}})
    first = api.list_page("ConfigMap", None, limit=3)
    fake.store.create("Secret", {"metadata": {"name": "later"}})
    fake.store.compact()
    with pytest.raises(Expired) as refused:
        api.list_page("ConfigMap", None, limit=3, more=first.more)

    assert ["d"] == names(api.list_page("ConfigMap", None, more=refused.value.more).items)


def test_only_metadata(fake: FakeKube, api: KubeApi) -> None:
    """A server that sends whole objects all the same is refused."""
    fake.store.create("Secret", {"metadata": {"name": "s"}, "data": {"a": "Yg=="}})
    (found,) = api.list_all("Secret", "default", metadata_only=True)

    assert {"kind", "apiVersion", "metadata"} == set(found)
    whole = {"kind": "SecretList", "metadata": {}, "items": [{"metadata": {"name": "s"}}]}
    fake.fail(Answer(body=whole), path="/secrets")
    with pytest.raises(Unavailable, match="PartialObjectMetadataList"):
        api.list_page("Secret", "default", metadata_only=True)


def test_a_kind_that_only_the_server_knows(fake: FakeKube, api: KubeApi) -> None:
    """Its list may have any name; a group with a path in it leads nowhere else."""
    things = Resource("things.example.com", "v2", "things", "Thing", namespaced=True)
    fake.fail(Answer(body={"kind": "Thingies", "metadata": {}, "items": [{"a": 1}]}))

    assert [{"a": 1}] == list(api.list_all(things, "default"))
    with pytest.raises(Forbidden):
        api.list_page(replace(things, group="../api"), None)
    assert [
        "/apis/things.example.com/v2/namespaces/default/things",
        "/apis/..%2Fapi/v2/things",
    ] == [each.path for each in fake.requests("GET")]


def test_what_is_offered(fake: FakeKube, api: KubeApi) -> None:
    """With two requests; a group whose server is away is noted, and the rest is there."""
    fake.offered.serve(Kind("PodMetrics", "metrics.k8s.io", "pods", version="v1beta1"), [])
    fake.offered.broken["broken.example.com"] = "v1"
    found = api.discover()
    pods = [each for each in found.resources if each.plural == "pods"]

    assert ["pods", "pods.metrics.k8s.io"] == [each.name for each in pods]
    assert ["Pod", "PodMetrics"] == [each.kind for each in pods]
    assert [("broken.example.com", "v1")] == [(e.group, e.version) for e in found.troubles]
    assert 2 == len(fake.requests("GET", "/api"))


def test_a_server_that_knows_no_such_document(fake: FakeKube, api: KubeApi) -> None:
    """It is too old, or a proxy asks it in its own way."""
    fake.fail(Answer(body={"kind": "APIGroupList", "groups": []}), path="/apis")
    with pytest.raises(InvalidRequest, match="has no aggregated discovery; Kubernetes has it"):
        api.discover()


def test_a_document_that_is_too_large(fake: FakeKube, api: KubeApi) -> None:
    """It is given up on the way; the next request has a new connection."""
    fake.fail(Answer(body=b"x" * 100_000), path="/version")
    with pytest.raises(TooLarge):
        list(api.read("/version", most=99_999))

    assert api.server_version().startswith("v1.")


def test_a_kubeconfig_that_skips_verification_works(
    fake: FakeKube, tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    """As with kubectl, without a CA and without a word."""
    path = kubeconfig(tmp_path / "config", fake)
    content = yaml.safe_load(path.read_text())
    content["clusters"][0]["cluster"] = {"server": fake.server, "insecure-skip-tls-verify": True}
    path.write_text(yaml.safe_dump(content))
    api, _ = KubeApi.from_kubeconfig(str(path))
    assert [] == list(api.list_all("Job", "default"))
    api.close()
    assert [] == [str(each.message) for each in recwarn]


def test_a_server_of_an_unknown_ca_is_not_asked(fake: FakeKube, tmp_path: Path) -> None:
    """Without a CA in the kubeconfig the system's count; the certificate is what is wrong."""
    path = kubeconfig(tmp_path / "config", fake)
    content = yaml.safe_load(path.read_text())
    content["clusters"][0]["cluster"] = {"server": fake.server}
    path.write_text(yaml.safe_dump(content))
    api, _ = KubeApi.from_kubeconfig(str(path))
    with pytest.raises(Unavailable, match=r"(?i)certificate verify failed"):
        list(api.list_all("Job", "default"))
    api.close()
    assert [] == fake.requests()


def test_the_context_says_the_namespace(fake: FakeKube, tmp_path: Path) -> None:
    """The current one, or the one that is named."""
    path = str(kubeconfig(tmp_path / "config", fake, namespace="mine"))
    for context, expected in ((None, "mine"), ("here", "mine"), ("nowhere", "")):
        api, namespace = KubeApi.from_kubeconfig(path, context=context)
        api.close()
        assert expected == namespace


@pytest.mark.parametrize(
    "content",
    [
        None,
        "",
        "{",
        "[]",
        "5",
        "current-context: x",
        "current-context: here\ncontexts: 5\nclusters: 5",
        "current-context: a\ncontexts: [{name: a, context: {cluster: b}}]\n"
        "clusters: [{name: b, cluster: {server: 'http://127.0.0.1:1'}}]",
        "current-context: a\ncontexts: [{name: a, context: {cluster: b}}]\n"
        "clusters: [{name: b, cluster: {server: 'https://h', certificate-authority: /no/such}}]",
    ],
)
def test_a_kubeconfig_that_cannot_be_used(tmp_path: Path, content: str | None) -> None:
    """SettingsError, whatever is wrong with it."""
    path = tmp_path / "config"
    if content is not None:
        path.write_text(content)
    with pytest.raises(SettingsError, match="kubeconfig"):
        KubeApi.from_kubeconfig(str(path))
