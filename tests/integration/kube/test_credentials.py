"""`reporter.kube.api` against an API server over TLS: tokens, CAs, the environment of a cluster."""

import os
import sys
import time

import pytest

from reporter.errors import (
    Forbidden,
    SettingsError,
    Unauthorized,
    Unavailable,
)
from reporter.kube.api import KubeApi
from tests.fakekube import Answer, FakeKube, Hang, make_job
from tests.integration.kube.connecting import JOB, read
from tests.kube_client import connect

# Credentials


def test_a_rotated_token_is_read_after_a_401(fake: FakeKube, api: KubeApi) -> None:
    """One call, two requests: the old token is refused, the new one is good."""
    read(api)
    old, new = fake.read_token(), fake.token("reporter")
    fake.revoke(old)
    fake.write_token(new)

    assert fake.job(JOB) == read(api)
    assert [(200, f"bearer {old}"), (401, f"bearer {old}"), (200, f"bearer {new}")] == [
        (entry.status, entry.headers["authorization"]) for entry in fake.journal
    ]


def test_a_token_that_stays_bad_is_tried_twice(fake: FakeKube, api: KubeApi) -> None:
    """Then it is Unauthorized, until the file changes."""
    fake.revoke(fake.read_token())
    with pytest.raises(Unauthorized):
        read(api)
    assert [401, 401] == [entry.status for entry in fake.journal]

    fake.write_token(fake.token("reporter"))
    assert fake.job(JOB) == read(api)


def test_the_second_try_after_a_401_has_only_the_time_that_is_left(
    fake: FakeKube, api: KubeApi
) -> None:
    """The timeout is for both tries."""
    fake.fail(Answer(401))
    fake.fail(Hang(), nth=2)
    started = time.monotonic()
    with pytest.raises(Unavailable):
        read(api, timeout=0.5)

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
            read(api)
        assert "secret" not in str(caught.value)
        assert caught.value.__suppress_context__
    assert [] == fake.journal

    fake.write_token(good)
    assert fake.job(JOB) == read(api)


def test_a_token_file_that_comes_late(fake: FakeKube) -> None:
    """Making the client does not need it; the first request that finds it works."""
    good = fake.read_token()
    fake.remove_token()
    api = connect(fake)
    with pytest.raises(Unavailable, match="credentials"):
        read(api)
    fake.write_token(good)

    assert fake.job(JOB) == read(api)
    api.close()


def test_rights_that_come_late(fake: FakeKube, api: KubeApi) -> None:
    """Forbidden first, then the RoleBinding is there."""
    rules = fake.tokens.roles["reporter"]
    fake.tokens.roles["reporter"] = ()
    with pytest.raises(Forbidden, match="cannot get resource"):
        read(api)
    fake.tokens.roles["reporter"] = rules

    assert fake.job(JOB) == read(api)


@pytest.mark.parametrize("relax", [False, True])
def test_a_rotated_ca_counts_from_the_next_connection(fake: FakeKube, relax: bool) -> None:
    """Before the file has the new CA it is an outage; the CA before is trusted no longer."""
    api = connect(fake, relax_x509_strict=relax)
    read(api)
    fake.new_authority(publish=False)
    fake.stop()
    fake.start()
    with pytest.raises(Unavailable, match=r"(?i)certificate"):
        read(api)
    fake.publish_authority()

    assert fake.job(JOB) == read(api)
    api.close()


def test_a_certificate_for_another_name_is_refused() -> None:
    """Also relaxed, names are checked."""
    with FakeKube(certified=["192.0.2.1"]) as fake:
        api = connect(fake, relax_x509_strict=True)
        with pytest.raises(Unavailable, match=r"(?i)certificate"):
            read(api)


def test_a_ca_without_the_strict_extensions_works_relaxed() -> None:
    """KUBERNETES_RELAX_X509_STRICT is for exactly these clusters."""
    with FakeKube(strict_ca=False) as fake:
        fake.create_job(make_job(JOB))
        api = connect(fake, relax_x509_strict=True)

        assert fake.job(JOB) == read(api)
        api.close()


@pytest.mark.skipif(sys.version_info < (3, 13), reason="Python is strict about X.509 since 3.13")
def test_a_ca_without_the_strict_extensions_fails_otherwise() -> None:
    """Python 3.13 refuses it, as an outage with a text that says why."""
    with FakeKube(strict_ca=False) as fake:
        api = connect(fake)
        with pytest.raises(Unavailable, match=r"(?i)certificate verify failed"):
            read(api)


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
        read(api)


@pytest.mark.parametrize("server", ["http://127.0.0.1:1", "127.0.0.1:1", "https://", ""])
def test_only_https_addresses_are_taken(server: str) -> None:
    """A token is never sent in the clear."""
    with pytest.raises(ValueError, match="https://HOST:PORT"):
        KubeApi.connect(server, ca_file=None, token_file=None)
