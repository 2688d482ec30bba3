"""`reporter.kube.api` against an API server over TLS: garbage, silence, lost connections."""

import sys
import threading
import time

import pytest

from reporter.errors import (
    Unavailable,
)
from reporter.kube import client
from reporter.kube.api import KubeApi
from tests.fakekube import Answer, FakeKube, Hang, Reset, Slow
from tests.integration.kube.connecting import JOB, full_backlog, mute_peer, read, watch, write
from tests.kube_client import connect


def test_garbage_is_an_outage(fake: FakeKube, api: KubeApi) -> None:
    """What is too much to be a Job is no answer, and does not disturb the next request."""
    fake.fail(Answer(200, body=b'{"kind": "Job", "metadata": {}, "x": "' + b"x" * 5_000_000))
    with pytest.raises(Unavailable):
        read(api)

    assert fake.job(JOB) == read(api)


def test_half_a_body_is_an_outage(fake: FakeKube, api: KubeApi) -> None:
    """The connection ends before the announced length."""
    fake.fail(Answer(200, {"Content-Length": "100", "Connection": "close"}, b'{"kind": "Job"'))
    fake.wait_for(lambda: True)
    ended = threading.Timer(0.2, fake.drop_connections)
    ended.start()
    with pytest.raises(Unavailable):
        read(api)
    ended.join()


@pytest.mark.parametrize("apply", [False, True])
def test_a_reset_is_an_outage_after_one_request(fake: FakeKube, api: KubeApi, apply: bool) -> None:
    """Whether the patch was carried out cannot be known; nothing is sent twice."""
    fake.fail(Reset(apply=apply))
    with pytest.raises(Unavailable):
        write(api)

    assert len(fake.journal) == 1
    assert apply == (fake.condition(JOB, "Available") is not None)


@pytest.mark.parametrize(
    "fault", [Hang(), Slow(every=0.05), Slow(every=0.05, headers=True)], ids=str
)
def test_the_timeout_bounds_the_whole_request(
    fake: FakeKube, api: KubeApi, fault: Hang | Slow
) -> None:
    """A server that says nothing, or a byte at a time, costs no more than the timeout."""
    read(api)
    fake.fail(fault)
    started = time.monotonic()
    with pytest.raises(Unavailable):
        read(api, timeout=0.5)

    assert 0.4 < time.monotonic() - started < 5
    assert fake.job(JOB) == read(api)


def test_a_server_that_goes_away_and_comes_back(fake: FakeKube, api: KubeApi) -> None:
    """Connections are refused while it is away; afterwards nothing remembers the outage."""
    read(api)
    fake.stop()
    with pytest.raises(Unavailable):
        read(api)
    fake.start()

    assert fake.job(JOB) == read(api)


def test_a_connection_closed_while_idle_is_not_used(fake: FakeKube, api: KubeApi) -> None:
    """A load balancer or a restart ends idle connections; the next request opens a new one."""
    read(api)
    fake.drop_connections()
    fake.stop()
    fake.start()

    assert fake.job(JOB) == read(api)


def test_a_refused_handshake_is_an_outage(fake: FakeKube, api: KubeApi) -> None:
    """TLS trouble is tried again later, not now."""
    fake.refuse_handshakes(1)
    with pytest.raises(Unavailable):
        read(api)

    assert fake.handshakes == 1
    assert fake.job(JOB) == read(api)


def test_a_name_without_address_is_an_outage(fake: FakeKube) -> None:
    """DNS trouble, too."""
    api = KubeApi.connect("https://nowhere.invalid", ca_file=fake.ca_file, token_file=None)
    with pytest.raises(Unavailable, match="nowhere"):
        read(api)


def test_a_peer_that_accepts_and_says_nothing(fake: FakeKube) -> None:
    """The handshake counts into the time for connecting."""
    with mute_peer() as server:
        api = KubeApi.connect(server, ca_file=fake.ca_file, token_file=None)
        started = time.monotonic()
        with pytest.raises(Unavailable):
            read(api, timeout=0.5)

    assert time.monotonic() - started < 5


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux' full backlog that drops packets")
def test_a_peer_that_swallows_packets_costs_three_seconds(fake: FakeKube) -> None:
    """Connecting has a bound of its own below the request's."""
    with full_backlog() as server:
        api = KubeApi.connect(server, ca_file=fake.ca_file, token_file=None)
        started = time.monotonic()
        with pytest.raises(Unavailable):
            read(api, timeout=30)

    assert 2.5 < time.monotonic() - started < 10


def test_proxies_in_the_environment_are_ignored(
    fake: FakeKube, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cluster traffic does not go through an HTTPS_PROXY that was meant for the adapter."""
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    api = connect(fake)
    read(api)
    old = fake.read_token()
    fake.write_token(fake.token("reporter"))
    fake.revoke(old)
    read(api)
    first, _ = next(iter(watch(api)))
    api.close()

    assert first == "ADDED"


def test_a_connection_that_was_idle_for_long_is_not_trusted(
    fake: FakeKube, api: KubeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a firewall has forgotten would swallow the verdict: a new connection is made."""
    read(api)
    read(api)
    assert 1 == fake.handshakes
    monkeypatch.setattr(client, "LONGEST_IDLE", -1.0)
    read(api)
    assert 2 == fake.handshakes
