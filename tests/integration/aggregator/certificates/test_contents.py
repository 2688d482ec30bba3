"""What the certificates of a run hold: names, usages, identifiers, validity."""

from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

from reporter.aggregator.certificates.run import Issued, validity
from reporter.pki.issuing import CertificateError
from reporter.run.plan import Key, Plan, Plugin
from tests.aggregators.issued import issue_run
from tests.integration.aggregator.certificates.world import (
    E2E,
    LOGS_1,
    PLAN,
    RUN,
    SYSD,
    alternatives,
    common_name,
    extension,
    issue,
    leaves,
    read,
)


def test_every_client_has_its_certificate(issued: Issued) -> None:
    """One for a plugin without nodes, one for all nodes of a plugin, or one for each node."""
    assert {
        E2E: ("e2e", {"DNS:e2e", f"URI:urn:status-aggregator:{RUN}:e2e:global"}),
        SYSD: ("sysd", {"DNS:sysd", f"URI:urn:status-aggregator:{RUN}:sysd:*"}),
        LOGS_1: ("logs", {"DNS:logs", f"URI:urn:status-aggregator:{RUN}:logs:node1"}),
        Key("logs", "node2"): (
            "logs",
            {"DNS:logs", f"URI:urn:status-aggregator:{RUN}:logs:node2"},
        ),
    } == {
        key: (common_name(pair.certificate), alternatives(pair.certificate))
        for key, pair in issued.clients.items()
    }


def test_the_servers_certificate_has_every_name(issued: Issued) -> None:
    """Addresses as addresses, IPv6 too; doubled and bracketed ones once."""
    again = issue(names=("[::1]", "::1", "127.0.0.1", "Aggregator.NS.svc", "aggregator.ns.svc"))

    assert {"IP:127.0.0.1", "IP:::1", "DNS:aggregator.ns.svc", "DNS:localhost"} == alternatives(
        issued.server.certificate
    )
    assert {"IP:::1", "IP:127.0.0.1", "DNS:aggregator.ns.svc"} == alternatives(
        again.server.certificate
    )
    assert "status-aggregator" == common_name(issued.server.certificate)
    assert f"status-aggregator CA {RUN}" == common_name(issued.ca)


def test_a_long_name_of_a_run_is_told_apart(tmp_path: Path) -> None:
    """A common name has 64 characters: two runs that begin alike are still two."""
    one = Plan("r" * 62 + "1", PLAN.plugins)
    two = Plan("r" * 62 + "2", PLAN.plugins)

    assert common_name(issue(one).ca) != common_name(issue(two).ca)
    assert f"urn:status-aggregator:{one.run}:e2e:global" in str(
        alternatives(issue(one).clients[E2E].certificate)
    )


@pytest.mark.parametrize(
    "names", [(), ("",), ("a b",), ("host:8080",), ("http://x",), ("x" * 254,), ("ok", "ü.de")]
)
def test_a_name_that_no_certificate_can_hold(names: tuple[str, ...]) -> None:
    """Said before anything is made; what is wrong is named."""
    with pytest.raises(CertificateError) as caught:
        issue(names=names)

    assert all(repr(name) in str(caught.value) for name in names if name != "ok")


def test_keys_usages_and_identifiers(issued: Issued) -> None:
    """What Go, OpenSSL and Python's strict check ask for: distinct subjects, key ids, purposes."""
    ca = read(issued.ca)
    basic = extension(issued.ca, x509.BasicConstraints)
    usage = extension(issued.ca, x509.KeyUsage)
    identifier = extension(issued.ca, x509.SubjectKeyIdentifier).value.digest
    assert (True, True, 0) == (basic.critical, basic.value.ca, basic.value.path_length)
    assert (True, True, True) == (usage.critical, usage.value.key_cert_sign, usage.value.crl_sign)
    for pair in leaves(issued):
        leaf = read(pair.certificate)
        basic = extension(pair.certificate, x509.BasicConstraints)
        usage = extension(pair.certificate, x509.KeyUsage)
        assert (True, False) == (basic.critical, basic.value.ca)
        assert (True, True, False) == (
            usage.critical,
            usage.value.digital_signature,
            usage.value.key_cert_sign,
        )
        assert identifier == (
            extension(pair.certificate, x509.AuthorityKeyIdentifier).value.key_identifier
        )
        assert extension(pair.certificate, x509.SubjectKeyIdentifier)
        assert leaf.subject != ca.subject
        assert isinstance(leaf.public_key().curve, ec.SECP256R1)  # type: ignore[union-attr]
        assert isinstance(leaf.signature_hash_algorithm, hashes.SHA256)
    purposes = [
        list(extension(pair.certificate, x509.ExtendedKeyUsage).value) for pair in leaves(issued)
    ]
    client = [ExtendedKeyUsageOID.CLIENT_AUTH]
    assert [[ExtendedKeyUsageOID.SERVER_AUTH], client, client, client, client] == purposes
    serials = [
        read(pem).serial_number for pem in (issued.ca, *(p.certificate for p in leaves(issued)))
    ]
    assert len(serials) == len(set(serials))


def test_keys_are_one_block_of_the_old_form(issued: Issued) -> None:
    """A Sonobuoy worker decodes the first block and knows only `EC PRIVATE KEY`."""
    for pair in leaves(issued):
        lines = pair.key.decode().splitlines()
        assert "-----BEGIN EC PRIVATE KEY-----" == lines[0]
        assert "-----END EC PRIVATE KEY-----" == lines[-1]
        assert 1 == pair.key.count(b"-----BEGIN ")
        assert 1 == pair.certificate.count(b"-----BEGIN CERTIFICATE-----")
        key = serialization.load_pem_private_key(pair.key, None)
        assert read(pair.certificate).public_key() == key.public_key()
        assert "PRIVATE" not in repr(pair)


@pytest.mark.parametrize(
    ("plugins", "timeout", "expected"),
    [
        ((Plugin("a"),), 21_600, 21_600),
        ((Plugin("a"), Plugin("b", timeout_seconds=259_200)), 21_600, 259_200),
        ((Plugin("a", timeout_seconds=60),), 21_600, 60),
        ((Plugin("a"), Plugin("b", order=1, timeout_seconds=400)), 100, 500),
        ((Plugin("a", order=1, timeout_seconds=400), Plugin("b", order=1)), 100, 400),
    ],
    ids=[
        "the plan's",
        "72 hours",
        "a shorter one",
        "two orders, one after the other",
        "one order, side by side",
    ],
)
def test_they_are_valid_as_long_as_the_run_may_take(
    plugins: tuple[Plugin, ...], timeout: int, expected: int
) -> None:
    """From ten minutes before now to an hour after the last timeout."""
    plan = Plan(RUN, plugins, timeout_seconds=timeout)
    now = 1_900_000_000.0
    made = issue_run(plan, ("127.0.0.1",), now=now)

    assert expected + 3600 == validity(plan, None)
    for pem in (made.ca, *(pair.certificate for pair in leaves(made))):
        assert now - 600 == read(pem).not_valid_before_utc.timestamp()
        assert now + expected + 3600 == read(pem).not_valid_after_utc.timestamp()
