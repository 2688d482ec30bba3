"""`reporter.kube.api` against an API server over TLS: requests and refusals."""

import threading

import pytest

from reporter.errors import (
    Conflict,
    Gone,
    InvalidRequest,
    NotFound,
    Unavailable,
)
from reporter.kube.api import KubeApi
from reporter.kube.resources import NEW_EVENT
from tests.fakekube import Answer, FakeKube
from tests.integration.kube.connecting import JOB, NAMESPACE, condition, read, write

# Requests


def test_reading_gives_the_object_as_the_server_has_it(fake: FakeKube, api: KubeApi) -> None:
    """The Pod and the whole Job, as plain dicts."""
    assert fake.pod("pod") == api.get("Pod", NAMESPACE, "pod")
    assert fake.job(JOB) == read(api)


def test_requests_are_the_published_ones(fake: FakeKube, api: KubeApi) -> None:
    """The least rights are measured by these paths; without the content type it would be a 415."""
    api.get("Pod", NAMESPACE, "pod")
    read(api)
    body = condition()
    changed = write(api, body)

    status_path = f"/apis/batch/v1/namespaces/default/jobs/{JOB}/status"
    assert [
        ("GET", "/api/v1/namespaces/default/pods/pod", {}),
        ("GET", status_path, {}),
        (
            "PATCH",
            status_path,
            {"fieldManager": "status-reporter", "fieldValidation": "Strict"},
        ),
    ] == [(entry.method, entry.path, entry.query) for entry in fake.journal]
    patch = fake.journal[-1]
    assert patch.headers["content-type"] == "application/strategic-merge-patch+json"
    assert patch.headers["user-agent"] == "status-reporter"
    assert body == patch.json
    assert fake.job(JOB) == changed


def test_an_event_is_created_once(fake: FakeKube, api: KubeApi) -> None:
    """201 is a success too; the second one is a conflict."""
    event = {
        "metadata": {"name": "validate.1"},
        "eventTime": "2030-01-01T12:00:00.000000Z",
        "reportingController": "status-reporter",
        "reportingInstance": "pod",
        "action": "Report",
        "reason": "AllGood",
        "type": "Normal",
    }
    api.create(NEW_EVENT, NAMESPACE, event)
    with pytest.raises(Conflict):
        api.create(NEW_EVENT, NAMESPACE, event)
    with pytest.raises(InvalidRequest):
        api.create(NEW_EVENT, NAMESPACE, event | {"unknown": 1})

    (stored,) = fake.events()
    assert ("validate.1", "AllGood") == (stored["metadata"]["name"], stored["reason"])
    sent = fake.journal[0]
    assert ("POST", "/apis/events.k8s.io/v1/namespaces/default/events") == (sent.method, sent.path)
    assert {"fieldManager": "status-reporter", "fieldValidation": "Strict"} == sent.query
    assert "application/json" == sent.headers["content-type"]


def test_one_connection_serves_requests_in_a_row(fake: FakeKube, api: KubeApi) -> None:
    """TLS handshakes are what a request costs; they are not repeated."""
    for _ in range(5):
        read(api)
    with pytest.raises(NotFound):
        read(api, "other")
    api.get("Pod", NAMESPACE, "pod")

    assert fake.handshakes == 1


def test_names_cannot_lead_to_another_path(fake: FakeKube, api: KubeApi) -> None:
    """A name with a slash stays a name."""
    with pytest.raises(NotFound):
        api.get("Pod", NAMESPACE, "../jobs/x?watch=true")

    assert fake.journal[-1].path.startswith("/api/v1/namespaces/default/pods/..%2Fjobs%2Fx%3F")


def test_threads_may_use_it_at_the_same_time(fake: FakeKube, api: KubeApi) -> None:
    """The main loop and the watch thread share it."""
    failures: list[Exception] = []

    def ask() -> None:
        try:
            for _ in range(20):
                read(api)
                api.get("Pod", NAMESPACE, "pod")
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [] == failures
    assert len(fake.journal) == 160


# Refusals


def test_a_refusal_is_one_error_after_one_request(fake: FakeKube, api: KubeApi) -> None:
    """No retry is hidden anywhere; how long the server asks to wait is handed on."""
    fake.fail(Answer(503, {"Retry-After": "7200"}))
    with pytest.raises(Unavailable) as caught:
        read(api)

    assert caught.value.retry_after == 7200.0
    assert len(fake.journal) == 1
    assert fake.job(JOB) == read(api)


def test_another_job_of_that_name_is_gone(fake: FakeKube, api: KubeApi) -> None:
    """The uid in the patch is another one."""
    with pytest.raises(Gone):
        write(api, condition() | {"metadata": {"uid": "other"}})


@pytest.mark.parametrize("status", [302, 307])
def test_a_redirect_is_not_followed(fake: FakeKube, api: KubeApi, status: int) -> None:
    """The token goes to nobody else, and a PATCH does not become a GET."""
    location = f"{fake.server}/apis/batch/v1/namespaces/default/jobs/{JOB}/status"
    fake.fail(Answer(status, {"Location": location}, b""))
    with pytest.raises(Unavailable):
        write(api)

    assert len(fake.journal) == 1
