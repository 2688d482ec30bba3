"""`reporter.kube.api` against an API server over TLS: requests, refusals, outages, credentials."""

import os
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from reporter.errors import (
    Conflict,
    Forbidden,
    Gone,
    InvalidRequest,
    KubeError,
    NotFound,
    SettingsError,
    Unauthorized,
    Unavailable,
)
from reporter.kube.api import LONGEST_IDLE, KubeApi
from reporter.kube.client import Client
from tests.fakekube import Answer, FakeKube, Hang, Reset, Slow, make_job, make_pod

NAMESPACE = "default"
JOB = "validate"


@pytest.fixture
def fake() -> Iterator[FakeKube]:
    with FakeKube() as fake:
        fake.create_pod(make_pod(fake.create_job(make_job(JOB)), name="pod"))
        yield fake


def connect(fake: FakeKube, *, relax_x509_strict: bool = False) -> KubeApi:
    return KubeApi.connect(
        fake.server,
        ca_file=fake.ca_file,
        token_file=fake.token_file,
        relax_x509_strict=relax_x509_strict,
    )


@pytest.fixture
def api(fake: FakeKube) -> Iterator[KubeApi]:
    api = connect(fake)
    yield api
    api.close()


def condition(message: str = "words") -> dict[str, Any]:
    now = "2030-01-01T12:00:00Z"
    element = {
        "type": "Available",
        "status": "True",
        "reason": "AllGood",
        "message": message,
        "lastProbeTime": now,
        "lastTransitionTime": now,
    }
    return {"status": {"conditions": [element]}}


# Requests


def test_reading_gives_the_object_as_the_server_has_it(fake: FakeKube, api: KubeApi) -> None:
    """The Pod and the whole Job, as plain dicts."""
    assert fake.pod("pod") == api.get_pod(NAMESPACE, "pod")
    assert fake.job(JOB) == api.get_job(NAMESPACE, JOB)


def test_requests_are_the_published_ones(fake: FakeKube, api: KubeApi) -> None:
    """The least rights are measured by these paths; without the content type it would be a 415."""
    api.get_pod(NAMESPACE, "pod")
    api.get_job(NAMESPACE, JOB)
    body = condition()
    changed = api.patch_job_status(NAMESPACE, JOB, body)

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
    api.create_event(NAMESPACE, event)
    with pytest.raises(Conflict):
        api.create_event(NAMESPACE, event)
    with pytest.raises(InvalidRequest):
        api.create_event(NAMESPACE, event | {"unknown": 1})

    (stored,) = fake.events()
    assert ("validate.1", "AllGood") == (stored["metadata"]["name"], stored["reason"])
    sent = fake.journal[0]
    assert ("POST", "/apis/events.k8s.io/v1/namespaces/default/events") == (sent.method, sent.path)
    assert {"fieldManager": "status-reporter", "fieldValidation": "Strict"} == sent.query
    assert "application/json" == sent.headers["content-type"]


def test_one_connection_serves_requests_in_a_row(fake: FakeKube, api: KubeApi) -> None:
    """TLS handshakes are what a request costs; they are not repeated."""
    for _ in range(5):
        api.get_job(NAMESPACE, JOB)
    with pytest.raises(NotFound):
        api.get_job(NAMESPACE, "other")
    api.get_pod(NAMESPACE, "pod")

    assert fake.handshakes == 1


def test_names_cannot_lead_to_another_path(fake: FakeKube, api: KubeApi) -> None:
    """A name with a slash stays a name."""
    with pytest.raises(NotFound):
        api.get_pod(NAMESPACE, "../jobs/x?watch=true")

    assert fake.journal[-1].path.startswith("/api/v1/namespaces/default/pods/..%2Fjobs%2Fx%3F")


def test_threads_may_use_it_at_the_same_time(fake: FakeKube, api: KubeApi) -> None:
    """The main loop and the watch thread share it."""
    failures: list[Exception] = []

    def read() -> None:
        try:
            for _ in range(20):
                api.get_job(NAMESPACE, JOB)
                api.get_pod(NAMESPACE, "pod")
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [] == failures
    assert len(fake.journal) == 160


# Refusals


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, InvalidRequest),
        (403, Forbidden),
        (404, NotFound),
        (409, Conflict),
        (413, InvalidRequest),
        (415, InvalidRequest),
        (422, InvalidRequest),
        (429, Unavailable),
        (500, Unavailable),
        (503, Unavailable),
        (504, Unavailable),
    ],
)
def test_a_refusal_is_one_error_after_one_request(
    fake: FakeKube, api: KubeApi, status: int, error: type[KubeError]
) -> None:
    """No retry is hidden anywhere, also where the server asks for one."""
    fake.fail(Answer(status, {"Retry-After": "1"}))
    with pytest.raises(error) as caught:
        api.get_job(NAMESPACE, JOB)

    assert error is type(caught.value)
    assert len(fake.journal) == 1
    assert fake.job(JOB) == api.get_job(NAMESPACE, JOB)


def test_the_servers_wish_to_wait_is_handed_on(fake: FakeKube, api: KubeApi) -> None:
    """As seconds; the caller caps it."""
    fake.fail(Answer(503, {"Retry-After": "7200"}))
    with pytest.raises(Unavailable) as caught:
        api.patch_job_status(NAMESPACE, JOB, condition())

    assert caught.value.retry_after == 7200.0


def test_another_job_of_that_name_is_gone(fake: FakeKube, api: KubeApi) -> None:
    """The uid in the patch is another one."""
    with pytest.raises(Gone):
        api.patch_job_status(NAMESPACE, JOB, condition() | {"metadata": {"uid": "other"}})


def test_a_write_since_the_read_is_a_conflict(fake: FakeKube, api: KubeApi) -> None:
    """The resourceVersion in the patch makes it compare-and-swap."""
    read = api.get_job(NAMESPACE, JOB)["metadata"]["resourceVersion"]
    api.patch_job_status(NAMESPACE, JOB, condition("first"))
    body = condition("second") | {"metadata": {"resourceVersion": read}}
    with pytest.raises(Conflict):
        api.patch_job_status(NAMESPACE, JOB, body)

    assert fake.condition(JOB, "Available")["message"] == "first"  # type: ignore[index]


def test_an_unknown_field_is_refused_with_a_short_text(fake: FakeKube, api: KubeApi) -> None:
    """Strict validation is on, and its 422 repeats the whole patch."""
    with pytest.raises(InvalidRequest) as caught:
        api.patch_job_status(NAMESPACE, JOB, condition("x" * 5000) | {"status": {"typo": 1}})

    assert len(str(caught.value)) <= 300
    assert "422 Invalid" in str(caught.value)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(fake: FakeKube, api: KubeApi, status: int) -> None:
    """The token goes to nobody else, and a PATCH does not become a GET."""
    location = f"{fake.server}/apis/batch/v1/namespaces/default/jobs/{JOB}/status"
    fake.fail(Answer(status, {"Location": location}, b""))
    with pytest.raises(Unavailable):
        api.patch_job_status(NAMESPACE, JOB, condition())

    assert len(fake.journal) == 1


# Outages


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>proxy</html>",
        b"[]",
        b'{"kind": "Status", "metadata": {}}',
        b'{"kind": "Pod", "metadata": {}}',
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"kind": "Job", "metadata": {}, "x": "' + b"x" * 5_000_000 + b'"}',
    ],
    ids=lambda body: repr(body[:32]),
)
def test_garbage_is_an_outage(fake: FakeKube, api: KubeApi, body: bytes) -> None:
    """A 200 that is no Job is no answer, and the next request is not disturbed by it."""
    fake.fail(Answer(200, body=body))
    with pytest.raises(Unavailable):
        api.get_job(NAMESPACE, JOB)

    assert fake.job(JOB) == api.get_job(NAMESPACE, JOB)


def test_half_a_body_is_an_outage(fake: FakeKube, api: KubeApi) -> None:
    """The connection ends before the announced length."""
    fake.fail(Answer(200, {"Content-Length": "100", "Connection": "close"}, b'{"kind": "Job"'))
    fake.wait_for(lambda: True)
    ended = threading.Timer(0.2, fake.drop_connections)
    ended.start()
    with pytest.raises(Unavailable):
        api.get_job(NAMESPACE, JOB)
    ended.join()


@pytest.mark.parametrize("apply", [False, True])
def test_a_reset_is_an_outage_after_one_request(fake: FakeKube, api: KubeApi, apply: bool) -> None:
    """Whether the patch was carried out cannot be known; nothing is sent twice."""
    fake.fail(Reset(apply=apply))
    with pytest.raises(Unavailable):
        api.patch_job_status(NAMESPACE, JOB, condition())

    assert len(fake.journal) == 1
    assert apply == (fake.condition(JOB, "Available") is not None)


@pytest.mark.parametrize(
    "fault", [Hang(), Slow(every=0.05), Slow(every=0.05, headers=True)], ids=str
)
def test_the_timeout_bounds_the_whole_request(
    fake: FakeKube, api: KubeApi, fault: Hang | Slow
) -> None:
    """A server that says nothing, or a byte at a time, costs no more than the timeout."""
    api.get_job(NAMESPACE, JOB)
    fake.fail(fault)
    started = time.monotonic()
    with pytest.raises(Unavailable):
        api.get_job(NAMESPACE, JOB, timeout=0.5)

    assert 0.4 < time.monotonic() - started < 5
    assert fake.job(JOB) == api.get_job(NAMESPACE, JOB)


def test_a_server_that_goes_away_and_comes_back(fake: FakeKube, api: KubeApi) -> None:
    """Connections are refused while it is away; afterwards nothing remembers the outage."""
    api.get_job(NAMESPACE, JOB)
    fake.stop()
    with pytest.raises(Unavailable):
        api.get_job(NAMESPACE, JOB)
    fake.start()

    assert fake.job(JOB) == api.get_job(NAMESPACE, JOB)


def test_a_connection_closed_while_idle_is_not_used(fake: FakeKube, api: KubeApi) -> None:
    """A load balancer or a restart ends idle connections; the next request opens a new one."""
    api.get_job(NAMESPACE, JOB)
    fake.drop_connections()
    fake.stop()
    fake.start()

    assert fake.job(JOB) == api.get_job(NAMESPACE, JOB)


def test_a_refused_handshake_is_an_outage(fake: FakeKube, api: KubeApi) -> None:
    """TLS trouble is tried again later, not now."""
    fake.refuse_handshakes(1)
    with pytest.raises(Unavailable):
        api.get_job(NAMESPACE, JOB)

    assert fake.handshakes == 1
    assert fake.job(JOB) == api.get_job(NAMESPACE, JOB)


def test_a_name_without_address_is_an_outage(fake: FakeKube) -> None:
    """DNS trouble, too."""
    api = KubeApi.connect("https://nowhere.invalid", ca_file=fake.ca_file, token_file=None)
    with pytest.raises(Unavailable, match="nowhere"):
        api.get_job(NAMESPACE, JOB)


def test_a_peer_that_accepts_and_says_nothing(fake: FakeKube) -> None:
    """The handshake counts into the time for connecting."""
    with socket.create_server(("127.0.0.1", 0)) as mute:
        server = f"https://127.0.0.1:{mute.getsockname()[1]}"
        api = KubeApi.connect(server, ca_file=fake.ca_file, token_file=None)
        started = time.monotonic()
        with pytest.raises(Unavailable):
            api.get_job(NAMESPACE, JOB, timeout=0.5)

    assert time.monotonic() - started < 5


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux' full backlog that drops packets")
def test_a_peer_that_swallows_packets_costs_three_seconds(fake: FakeKube) -> None:
    """Connecting has a bound of its own below the request's."""
    with black_hole() as server:
        api = KubeApi.connect(server, ca_file=fake.ca_file, token_file=None)
        started = time.monotonic()
        with pytest.raises(Unavailable):
            api.get_job(NAMESPACE, JOB, timeout=30)

    assert 2.5 < time.monotonic() - started < 10


class black_hole:
    """An address on which TCP connects hang: its backlog is full."""

    def __enter__(self) -> str:
        self._stack = ExitStack()
        full = self._stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(3):
            one = self._stack.enter_context(socket.socket())
            one.setblocking(False)
            one.connect_ex(full.getsockname())
        return f"https://127.0.0.1:{full.getsockname()[1]}"

    def __exit__(self, *_: object) -> None:
        self._stack.close()


def test_proxies_in_the_environment_are_ignored(
    fake: FakeKube, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cluster traffic does not go through an HTTPS_PROXY that was meant for the adapter."""
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    api = connect(fake)
    api.get_job(NAMESPACE, JOB)
    old = fake.read_token()
    fake.write_token(fake.token("reporter"))
    fake.revoke(old)
    api.get_job(NAMESPACE, JOB)
    first, _ = next(iter(api.watch_pod(NAMESPACE, "pod")))
    api.close()

    assert first == "ADDED"


# Credentials


def test_a_rotated_token_is_read_after_a_401(fake: FakeKube, api: KubeApi) -> None:
    """One call, two requests: the old token is refused, the new one is good."""
    api.get_job(NAMESPACE, JOB)
    old, new = fake.read_token(), fake.token("reporter")
    fake.revoke(old)
    fake.write_token(new)

    assert fake.job(JOB) == api.get_job(NAMESPACE, JOB)
    assert [(200, f"bearer {old}"), (401, f"bearer {old}"), (200, f"bearer {new}")] == [
        (entry.status, entry.headers["authorization"]) for entry in fake.journal
    ]


def test_a_token_that_stays_bad_is_tried_twice(fake: FakeKube, api: KubeApi) -> None:
    """Then it is Unauthorized, until the file changes."""
    fake.revoke(fake.read_token())
    with pytest.raises(Unauthorized):
        api.get_job(NAMESPACE, JOB)
    assert [401, 401] == [entry.status for entry in fake.journal]

    fake.write_token(fake.token("reporter"))
    assert fake.job(JOB) == api.get_job(NAMESPACE, JOB)


def test_the_second_try_after_a_401_has_only_the_time_that_is_left(
    fake: FakeKube, api: KubeApi
) -> None:
    """The timeout is for both tries."""
    fake.fail(Answer(401))
    fake.fail(Hang(), nth=2)
    started = time.monotonic()
    with pytest.raises(Unavailable):
        api.get_job(NAMESPACE, JOB, timeout=0.5)

    assert time.monotonic() - started < 5


@pytest.mark.parametrize("content", ["", "secret-token\n", "secret-token\r\nX: y", "secret-€"])
def test_an_unusable_token_file_is_an_outage_until_it_is_good(
    fake: FakeKube, api: KubeApi, content: str
) -> None:
    """Half-written, empty, with a line break: nothing is sent, nothing leaks, it is read again."""
    good = fake.read_token()
    fake.write_token(content)
    for _ in range(2):
        with pytest.raises(Unavailable) as caught:
            api.get_job(NAMESPACE, JOB)
        assert "secret" not in str(caught.value)
        assert caught.value.__suppress_context__
    assert [] == fake.journal

    fake.write_token(good)
    assert fake.job(JOB) == api.get_job(NAMESPACE, JOB)


def test_a_token_file_that_comes_late(fake: FakeKube) -> None:
    """Making the client does not need it; the first request that finds it works."""
    good = fake.read_token()
    fake.remove_token()
    api = connect(fake)
    with pytest.raises(Unavailable, match="credentials"):
        api.get_job(NAMESPACE, JOB)
    fake.write_token(good)

    assert fake.job(JOB) == api.get_job(NAMESPACE, JOB)
    api.close()


def test_rights_that_come_late(fake: FakeKube, api: KubeApi) -> None:
    """Forbidden first, then the RoleBinding is there."""
    rules = fake.tokens.roles["reporter"]
    fake.tokens.roles["reporter"] = ()
    with pytest.raises(Forbidden, match="cannot get resource"):
        api.get_job(NAMESPACE, JOB)
    fake.tokens.roles["reporter"] = rules

    assert fake.job(JOB) == api.get_job(NAMESPACE, JOB)


@pytest.mark.parametrize("relax", [False, True])
def test_a_rotated_ca_counts_from_the_next_connection(fake: FakeKube, relax: bool) -> None:
    """Before the file has the new CA it is an outage; the CA before is trusted no longer."""
    api = connect(fake, relax_x509_strict=relax)
    api.get_job(NAMESPACE, JOB)
    fake.new_authority(publish=False)
    fake.stop()
    fake.start()
    with pytest.raises(Unavailable, match=r"(?i)certificate"):
        api.get_job(NAMESPACE, JOB)
    fake.publish_authority()

    assert fake.job(JOB) == api.get_job(NAMESPACE, JOB)
    api.close()


def test_a_certificate_for_another_name_is_refused() -> None:
    """Also relaxed, names are checked."""
    with FakeKube(certified=["192.0.2.1"]) as fake:
        api = connect(fake, relax_x509_strict=True)
        with pytest.raises(Unavailable, match=r"(?i)certificate"):
            api.get_job(NAMESPACE, JOB)


def test_a_ca_without_the_strict_extensions_works_relaxed() -> None:
    """KUBERNETES_RELAX_X509_STRICT is for exactly these clusters."""
    with FakeKube(strict_ca=False) as fake:
        fake.create_job(make_job(JOB))
        api = connect(fake, relax_x509_strict=True)

        assert fake.job(JOB) == api.get_job(NAMESPACE, JOB)
        api.close()


@pytest.mark.skipif(sys.version_info < (3, 13), reason="Python is strict about X.509 since 3.13")
def test_a_ca_without_the_strict_extensions_fails_otherwise() -> None:
    """Python 3.13 refuses it, as an outage with a text that says why."""
    with FakeKube(strict_ca=False) as fake:
        api = connect(fake)
        with pytest.raises(Unavailable, match=r"(?i)certificate verify failed"):
            api.get_job(NAMESPACE, JOB)


# In a cluster


@pytest.mark.parametrize("present", [{}, {"KUBERNETES_SERVICE_HOST": "10.96.0.1"}])
def test_outside_of_a_cluster_the_error_names_the_variables(
    monkeypatch: pytest.MonkeyPatch, present: dict[str, str]
) -> None:
    """Somebody runs the image by hand."""
    for name in ("KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.delenv(name, raising=False)
    for name, value in present.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError, match="KUBERNETES_SERVICE_HOST"):
        KubeApi.in_cluster()


@pytest.mark.parametrize(
    ("host", "port", "named"),
    [
        ("10.96.0.1", "abc", "KUBERNETES_SERVICE_PORT='abc'"),
        ("10.96.0.1", "0", "KUBERNETES_SERVICE_PORT='0'"),
        ("10.96.0.1", "65536", "KUBERNETES_SERVICE_PORT='65536'"),
        ("10.96.0.1", "\u0664\u0664\u0663", "KUBERNETES_SERVICE_PORT="),
        ("10.96.0.1", "443/x", "KUBERNETES_SERVICE_PORT='443/x'"),
        (":::[", "443", "KUBERNETES_SERVICE_HOST=':::\\['"),
    ],
)
def test_an_address_that_is_none_is_a_bad_setting(
    monkeypatch: pytest.MonkeyPatch, host: str, port: str, named: str
) -> None:
    """It is named; nothing is thrown at whoever reads the log."""
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", port)
    with pytest.raises(SettingsError, match=named):
        KubeApi.in_cluster()


@pytest.mark.parametrize("secure", [None, "443"])
def test_a_service_called_kubernetes_service_hides_no_port(
    monkeypatch: pytest.MonkeyPatch, secure: str | None
) -> None:
    """The kubelet then sets KUBERNETES_SERVICE_PORT twice."""
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "tcp://10.0.0.7:80")
    monkeypatch.delenv("KUBERNETES_SERVICE_PORT_HTTPS", raising=False)
    if secure:
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT_HTTPS", secure)
    KubeApi.in_cluster().close()


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_in_a_cluster_without_a_mounted_token(monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    """The client is made; its requests are outages until the files are there."""
    if os.path.exists("/var/run/secrets/kubernetes.io/serviceaccount/token"):
        pytest.skip("this machine is a Pod with a token")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "9")
    api = KubeApi.in_cluster()
    with pytest.raises(Unavailable, match="credentials"):
        api.get_job(NAMESPACE, JOB)


@pytest.mark.parametrize("server", ["http://127.0.0.1:1", "127.0.0.1:1", "https://", ""])
def test_only_https_addresses_are_taken(server: str) -> None:
    """A token is never sent in the clear."""
    with pytest.raises(ValueError, match="https://HOST:PORT"):
        KubeApi.connect(server, ca_file=None, token_file=None)


def test_a_connection_that_was_idle_for_long_is_not_trusted(fake: FakeKube) -> None:
    """What a firewall has forgotten would swallow the verdict: a new connection is made."""
    now = [0.0]
    client = Client(
        fake.server, ca_file=fake.ca_file, token_file=fake.token_file, relax_x509_strict=False
    )
    api = KubeApi(client, clock=lambda: now[0])
    handshakes = []
    for pause in (0.0, LONGEST_IDLE - 1, LONGEST_IDLE + 1):
        now[0] += pause
        api.get_job("default", JOB)
        handshakes.append(fake.handshakes)
    api.close()

    assert [1, 1, 2] == handshakes
