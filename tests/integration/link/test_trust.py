"""Whom a worker takes for its aggregator."""

import ssl
import sys
from dataclasses import replace

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

from reporter.link import Outcome, ResultSource, TrustError
from reporter.link.trust import check_by_hand
from tests.aggregators.identities import Authority, Identities, identities
from tests.certificates import HOUR
from tests.integration.link.scripted import Scripted
from tests.scripted_server import Say

RESULT = ResultSource.from_bytes(b"{}", "a.json")
EXPIRED = (-24 * HOUR, -HOUR)
NOT_YET = (HOUR, 24 * HOUR)
UNHEARD_OF = x509.UnrecognizedExtension(x509.ObjectIdentifier("1.2.3.4"), b"\x05\x00")
LIMITED = x509.NameConstraints([x509.DNSName("example")], None)


def sonobuoy(**options: object) -> Identities:
    """A run of Sonobuoy's shape."""
    ca = Authority(sonobuoy=True, **options)
    return Identities(ca, ca.server(), ca.client())


@pytest.mark.parametrize(
    ("server", "words"),
    [
        (lambda: identities().ca.server(["aggregator.example"]), "IP address mismatch"),
        (lambda: Authority().server(), "unable to get local issuer"),
        (lambda: identities().ca.server(valid=EXPIRED), "expired"),
        (lambda: identities().ca.server(valid=NOT_YET), "not yet valid"),
        (
            lambda: identities().ca.server(purpose=ExtendedKeyUsageOID.CLIENT_AUTH),
            "(unsuitable|unsupported) certificate purpose",
        ),
    ],
    ids=["other name", "other CA", "expired", "not yet valid", "a client's"],
)
def test_w17_three_handshakes_and_no_request(connect, fake_time, server, words):
    """W17: a certificate that is not trusted gets no byte of a request, three times."""
    with Scripted(server=server()) as aggregator:
        with pytest.raises(TrustError, match=words):
            connect(aggregator.config()).put_result(RESULT)
        assert (3, []) == (aggregator.connections, aggregator.requests)
    assert 2 == len(fake_time.waits)


def test_progress_and_heartbeat_raise_at_the_first_handshake(connect):
    """They are not tried again, so there is nothing to wait for."""
    with Scripted(server=Authority().server()) as aggregator:
        client = connect(aggregator.config())
        for call in (client.heartbeat, lambda: client.post_progress(b"{}")):
            with pytest.raises(TrustError):
                call()
        assert (2, []) == (aggregator.connections, aggregator.requests)


def test_aggregator_that_moves_is_trusted_again(connect, fake_time):
    """A foreign certificate twice, then the right one: somebody else had the address meanwhile."""
    with Scripted(server=Authority().server()) as aggregator:
        fake_time.at(2.0, lambda: aggregator.present(identities().server))
        delivery = connect(aggregator.config()).put_result(RESULT)
    assert (Outcome.ACCEPTED, 3) == (delivery.outcome, delivery.attempts)


@pytest.mark.parametrize("maximum", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_both_versions_of_tls(connect, maximum):
    """1.2 and 1.3."""
    with Scripted(maximum=maximum) as aggregator:
        assert connect(aggregator.config()).put_result(RESULT).delivered


@pytest.mark.parametrize("maximum", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_aggregator_that_refuses_our_certificate(connect, fake_time, maximum):
    """Its alert is told; it is tried again, for it is not our trust that is missing."""
    with Scripted(maximum=maximum, client_ca=Authority()) as aggregator:
        delivery = connect(aggregator.config(), ends=lambda: fake_time.start + 5.0).put_result(
            RESULT
        )
    assert (Outcome.GAVE_UP, 0, []) == (delivery.outcome, delivery.status, aggregator.requests)
    assert "TLS: tlsv1 alert unknown ca" in delivery.text


@pytest.mark.parametrize("name", ["localhost", "LOCALHOST"])
def test_host_is_checked_by_name(connect, name):
    """A Service's DNS name, in any case."""
    with Scripted() as aggregator:
        url = aggregator.url.replace("127.0.0.1", name)
        assert connect(aggregator.config(aggregator_url=url)).put_result(RESULT).delivered


def test_w18_sonobuoy_shape_is_accepted(connect, events):
    """W18: CA and leaf of one name; looked at by hand before each connection."""
    who = sonobuoy()
    with Scripted(server=who.server, client_ca=who.ca, results=[Say(500), Say()]) as aggregator:
        client = connect(aggregator.config(who))
        assert 200 == client.heartbeat().status
        # The first handshake failed, the second was for looking, the third for speaking.
        assert (3, 1) == (aggregator.connections, len(aggregator.requests))
        assert client.put_result(RESULT).delivered
        assert (9, 3) == (aggregator.connections, len(aggregator.requests))
    assert ["checked_by_hand", "retry"] == [name for name, _ in events]


@pytest.mark.parametrize("host", ["localhost", "Localhost"])
def test_w18_sonobuoy_shape_by_name(connect, host):
    """W18: the host's name is checked there too, in any case."""
    who = sonobuoy()
    who = replace(who, server=who.ca.server(["LocalHost"]))
    with Scripted(server=who.server, client_ca=who.ca) as aggregator:
        url = aggregator.url.replace("127.0.0.1", host)
        assert connect(aggregator.config(who, aggregator_url=url)).put_result(RESULT).delivered


@pytest.mark.parametrize(
    ("shape", "server", "words"),
    [
        ({}, lambda ca: Authority(sonobuoy=True).server(), "not issued by the CA of this run"),
        ({}, lambda ca: ca.server(["10.9.9.9"]), "not valid for 127.0.0.1"),
        ({}, lambda ca: ca.server(["127.0.0.1.example"]), "not valid for 127.0.0.1"),
        ({}, lambda ca: ca.server(valid=EXPIRED), "it is not valid now"),
        ({}, lambda ca: ca.server(valid=NOT_YET), "it is not valid now"),
        ({"valid": EXPIRED}, lambda ca: ca.server(), "the CA is not valid now"),
        ({"is_ca": False}, lambda ca: ca.server(), "not a CA certificate"),
        (
            {},
            lambda ca: ca.server(purpose=ExtendedKeyUsageOID.CLIENT_AUTH),
            "not a server certificate",
        ),
        ({}, lambda ca: ca.server(more=[UNHEARD_OF]), "it has an unknown critical extension"),
        (
            {"more": [UNHEARD_OF]},
            lambda ca: ca.server(),
            "the CA has an unknown critical extension",
        ),
        ({"more": [LIMITED]}, lambda ca: ca.server(), "the CA has name constraints"),
    ],
    ids=[
        "wrong CA",
        "wrong SAN",
        "SAN of a name",
        "expired",
        "not yet",
        "CA expired",
        "CA:FALSE",
        "purpose",
        "unknown extension",
        "unknown extension of the CA",
        "name constraints",
    ],
)
def test_w18_sonobuoy_shape_in_doubt_is_refused(connect, shape, server, words):
    """W18: each doubt by itself, and no request byte is sent."""
    who = sonobuoy(**shape)
    with Scripted(server=server(who.ca), client_ca=who.ca) as aggregator:
        with pytest.raises(TrustError, match=words):
            connect(aggregator.config(who)).put_result(RESULT)
        assert (6, []) == (aggregator.connections, aggregator.requests)


def test_w18_leaf_that_changes_later_is_checked_again(connect):
    """W18: a new certificate of the same CA is taken, one of another CA is not."""
    who = sonobuoy()
    with Scripted(server=who.server, client_ca=who.ca) as aggregator:
        client = connect(aggregator.config(who))
        assert client.put_result(RESULT).delivered
        aggregator.present(who.ca.server())
        assert client.put_result(RESULT).delivered
        aggregator.present(Authority(sonobuoy=True).server())
        with pytest.raises(TrustError):
            client.put_result(RESULT)
        assert 2 == len(aggregator.requests)


def test_w18_another_certificate_at_the_second_look(connect):
    """W18: what is spoken to must be what was looked at."""
    who = sonobuoy()
    servers = [who.ca.server() for _ in range(12)]

    class Changing(Scripted):
        def context(self):
            self.present(servers.pop())
            return super().context()

    with Changing(server=who.server, client_ca=who.ca) as aggregator:
        with pytest.raises(TrustError, match="keeps changing"):
            connect(aggregator.config(who)).put_result(RESULT)
        assert [] == aggregator.requests


def test_without_cryptography_it_is_said_so(monkeypatch):
    """The package is optional: without it such an aggregator is not trusted, in clear words."""
    who = sonobuoy()
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(TrustError, match="install the package cryptography"):
        check_by_hand(who.server.der, who.ca.pem, "127.0.0.1", 0.0)


@pytest.mark.parametrize("leaf", [b"", b"\x30\x03\x02\x01\x01", b"x" * 1000])
def test_garbage_is_in_doubt(leaf):
    """Whatever the library raises."""
    with pytest.raises(TrustError, match="cannot be read"):
        check_by_hand(leaf, identities().ca.pem, "127.0.0.1", 0.0)
