"""The soak's proxy before the API server: what Pods get, and what the server gets."""

from __future__ import annotations

import http.client
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bed.certificates import Authority
from tests.blackbox.soak.proxy import RETRY_AFTER, Proxy, Trouble
from tests.http_server import Request
from tests.scripted_server import Say, ScriptedServer

JOB = "/apis/batch/v1/namespaces/n/jobs/j/status"
POD = "/api/v1/namespaces/n/pods/p"


class Upstream(ScriptedServer):
    """An API server that is content with everything."""

    def __init__(self, pki: Path) -> None:
        super().__init__()
        self._tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._tls.load_cert_chain(pki / "apiserver.crt", pki / "apiserver.key")

    def context(self) -> ssl.SSLContext:
        return self._tls

    def next_act(self, request: Request) -> Say:
        return Say(body={"said": request.method}, headers={"Content-Type": "application/json"})


class Pod:
    """Asks with a connection for each request."""

    def __init__(self, port: int, pki: Path) -> None:
        self._port = port
        self._tls = ssl.create_default_context(cafile=str(pki / "ca.crt"))

    def ask(
        self, method: str, path: str, body: bytes = b"", seconds: float = 20.0
    ) -> tuple[int, bytes, str | None]:
        """Return status, body, and Retry-After."""
        connection = http.client.HTTPSConnection(
            "127.0.0.1", self._port, context=self._tls, timeout=seconds
        )
        try:
            connection.request(method, path, body)
            answer = connection.getresponse()
            return answer.status, answer.read(), answer.headers.get("Retry-After")
        finally:
            connection.close()


@pytest.fixture
def pki(tmp_path: Path) -> Path:
    authority = Authority(tmp_path)
    authority.issue("apiserver", "kube-apiserver", server=["127.0.0.1"])
    return tmp_path


@pytest.fixture
def upstream(pki: Path) -> Iterator[Upstream]:
    with Upstream(pki) as server:
        server.listen()
        yield server


@pytest.fixture
def proxy(upstream: Upstream, pki: Path) -> Iterator[Proxy]:
    with Proxy(upstream.port, pki, "seed") as proxy:
        proxy.listen()
        yield proxy


@pytest.fixture
def pod(proxy: Proxy, pki: Path) -> Pod:
    return Pod(proxy.port, pki)


def test_without_trouble_everything_is_passed_on(pod: Pod, proxy: Proxy, upstream: Upstream):
    assert pod.ask("PATCH", JOB, b"patch") == (200, b'{"said": "PATCH"}', None)
    assert [b"patch"] == [each.body for each in upstream.requests]
    while not (noted := proxy.asked(0.0)):
        time.sleep(0.01)  # it notes what it has passed on
    assert [("PATCH", JOB, 200)] == [(e.method, e.path, e.status) for e in noted]


def test_only_what_is_meant_is_refused(pod: Pod, proxy: Proxy, upstream: Upstream):
    with proxy.during(Trouble(429, part="/pods")):
        refused, answered = pod.ask("GET", POD), pod.ask("GET", JOB)
    assert (429, str(RETRY_AFTER)) == (refused[0], refused[2])
    assert (200, b'{"said": "GET"}', None) == answered
    assert [JOB] == [each.target for each in upstream.requests]


def test_what_hangs_is_done_although_nobody_waits_for_it(
    pod: Pod, proxy: Proxy, upstream: Upstream, monkeypatch: pytest.MonkeyPatch
):
    rolls = iter([0.1, 0.6])  # it hangs, and so long
    monkeypatch.setattr(proxy, "roll", lambda *_: next(rolls))
    with proxy.during(Trouble("hang", ("PATCH",))):
        with pytest.raises(TimeoutError):
            pod.ask("PATCH", JOB, b"late", seconds=0.1)
        assert [b"late"] == [each.body for each in upstream.heard(1)]


def test_silence_ends_with_the_trouble(pod: Pod, proxy: Proxy, upstream: Upstream):
    ended = threading.Event()

    def asking() -> None:
        with pytest.raises(http.client.RemoteDisconnected):
            pod.ask("GET", JOB)
        ended.set()

    with proxy.during(Trouble("silent")):
        thread = threading.Thread(target=asking)
        thread.start()
        assert not ended.wait(0.3)
    assert ended.wait(10)
    thread.join()
    assert not upstream.requests
