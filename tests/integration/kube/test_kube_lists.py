"""`reporter.kube` as people use it: their kubeconfig, and lists of Jobs, Pods and events; logs."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from reporter.errors import Forbidden, NotFound, SettingsError, Unavailable
from reporter.kube.api import KubeApi
from reporter.kube.objects import PAGE
from tests.blackbox.ctl.cluster import kubeconfig
from tests.fakekube import Answer, FakeKube, make_job, make_pod


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


def test_a_job_as_people_may_read_it(fake: FakeKube, api: KubeApi) -> None:
    """The Job itself, not its status subresource."""
    fake.create_job(make_job())

    assert "validate" == api.get("Job", "default", "validate")["metadata"]["name"]
    assert ["/apis/batch/v1/namespaces/default/jobs/validate"] == [e.path for e in fake.journal]
    with pytest.raises(NotFound):
        api.get("Job", "default", "other")


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


def test_trouble_on_a_later_page(fake: FakeKube, api: KubeApi) -> None:
    """Raised, not taken for the end."""
    for number in range(PAGE + 1):
        fake.create_job(make_job(f"j{number:03}", uid=str(number)))
    fake.fail(Answer(500), nth=2)

    with pytest.raises(Unavailable):
        list(api.list_all("Job", "default"))


def test_pods_of_all_namespaces(fake: FakeKube, api: KubeApi) -> None:
    """By their labels."""
    for namespace in ("a", "b"):
        fake.create_pod(make_pod(make_job(namespace=namespace)))

    assert ["a", "b"] == [
        pod["metadata"]["namespace"] for pod in api.list_pods(None, "job-name=validate")
    ]
    assert 1 == len(api.list_pods(None, "job-name=validate", limit=1))


def test_events_of_an_object(fake: FakeKube, api: KubeApi) -> None:
    """By its UID."""
    for uid in ("1", "2"):
        event = {"metadata": {"name": uid}, "involvedObject": {"uid": uid}, "reason": "Failed"}
        fake.store.create("Event", event)

    assert ["2"] == names(api.list_events("default", "involvedObject.uid=2"))


@pytest.mark.parametrize(
    "body",
    [
        {"kind": "EventList", "metadata": {}, "items": {"a": 1}},
        {"kind": "EventList", "metadata": {}, "items": ["x"]},
        {"kind": "PodList", "metadata": {}, "items": []},
    ],
)
def test_what_is_no_list(fake: FakeKube, api: KubeApi, body: dict[str, Any]) -> None:
    """Unavailable: something in between has answered."""
    fake.fail(Answer(body=body))
    with pytest.raises(Unavailable):
        api.list_events("default", "x=y")


def test_the_end_of_a_log(fake: FakeKube, api: KubeApi) -> None:
    """As bytes, bounded by the request."""
    fake.fail(Answer(body=b"line\n"), path="/log")

    assert b"line\n" == api.read_log("default", "p", "status-reporter")
    (asked,) = fake.requests("GET", "/log")
    assert {
        "container": "status-reporter",
        "tailLines": "100",
        "limitBytes": "65536",
    } == asked.query


def test_rights_are_those_of_the_token(fake: FakeKube, tmp_path: Path) -> None:
    """A kubeconfig of somebody without any."""
    path = kubeconfig(tmp_path / "config", fake, token=fake.token("nothing"))
    api, _ = KubeApi.from_kubeconfig(str(path))
    with pytest.raises(Forbidden):
        list(api.list_all("Job", "default"))
    api.close()


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
