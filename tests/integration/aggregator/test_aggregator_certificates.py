"""The certificates of a run: who accepts them, who is kept out, what is kept and handed out."""

import base64
import json
import os
import re
import shutil
import socket
import ssl
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from reporter.aggregator.certificates.export import (
    export_files,
    export_secrets,
    export_status,
    secrets,
)
from reporter.aggregator.certificates.run import (
    Authority,
    CertificateError,
    Issued,
    Pair,
    issue_run,
    issue_status,
    validity,
)
from reporter.aggregator.certificates.tls import StatusContext, status_context, worker_context
from reporter.core.run.plan import Key, Plan, Plugin
from reporter.link import WorkerConfig
from reporter.runtime.private_file import write_private
from reporter.wire.connection_file import decode
from tests.bed import binaries

ROOT = Path(__file__).resolve().parents[3]
RUN = "4f6f8d5e-5d0a-4f3e-8a53-3a5a0c7b9a11"
PLAN = Plan(
    RUN,
    (
        Plugin("e2e"),
        Plugin("sysd", nodes=("node1", "node2")),
        Plugin("logs", nodes=("node1", "node2"), identity="node"),
    ),
)
NAMES = ("127.0.0.1", "::1", "aggregator.ns.svc", "localhost")
E2E, SYSD, LOGS_1 = Key("e2e", "global"), Key("sysd", "*"), Key("logs", "node1")
HANG = 30.0
URL = "https://aggregator.ns.svc:8080"


def issue(plan: Plan = PLAN, names: tuple[str, ...] = NAMES, *, late: float = 0.0) -> Issued:
    """Certificates made `late` seconds from now, as the clocks of others see it."""
    return issue_run(plan, names, now=time.time() + late)


@pytest.fixture(scope="module")
def issued() -> Issued:
    return issue()


def read(pem: bytes) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pem)


def extension(pem: bytes, kind: type[Any]) -> Any:
    return read(pem).extensions.get_extension_for_class(kind)


def leaves(issued: Issued) -> list[Pair]:
    return [issued.server, *issued.clients.values()]


# TLS without sockets


def client_context(
    ca: bytes, pair: Pair | None, folder: Path, *, strict: bool = True
) -> ssl.SSLContext:
    """A worker's context: this CA alone, the host's name checked."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=ca.decode())
    if strict:
        context.verify_flags |= ssl.VERIFY_X509_STRICT
    if pair is not None:
        folder.mkdir(exist_ok=True)
        (folder / "pair.pem").write_bytes(pair.certificate + pair.key)
        context.load_cert_chain(folder / "pair.pem")
    return context


class Handshake:
    """One handshake in memory: what each side says against it, and both ends."""

    def __init__(
        self, server: ssl.SSLContext, client: ssl.SSLContext, name: str = "127.0.0.1"
    ) -> None:
        there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.server = server.wrap_bio(there, back, server_side=True)
        self.client = client.wrap_bio(back, there, server_hostname=name)
        self.refusals: dict[str, ssl.SSLError] = {}
        waiting = {"client": self.client, "server": self.server}
        for _ in range(10):
            for side, end in list(waiting.items()):
                try:
                    end.do_handshake()
                    del waiting[side]
                except ssl.SSLWantReadError:
                    pass
                except ssl.SSLError as error:
                    self.refusals.setdefault(side, error)
        # With TLS 1.3 the client is done before the server has looked at its certificate.
        for end in (self.client, self.server):
            with suppress(ssl.SSLError):
                end.read(1)

    @property
    def refused_by_server(self) -> str:
        error = self.refusals.get("server")
        return "" if error is None else f"{error.reason} {getattr(error, 'verify_message', '')}"

    @property
    def names(self) -> set[tuple[str, str]]:
        """What the server knows of the client."""
        return set((self.server.getpeercert() or {}).get("subjectAltName", ()))


def shake(
    issued: Issued,
    folder: Path,
    pair: Pair | None = None,
    *,
    name: str = "127.0.0.1",
    adjust: Callable[[ssl.SSLContext], object] = lambda _: None,
) -> Handshake:
    """A handshake of the worker listener with a client of the same run, unless a pair is given."""
    client = client_context(issued.ca, pair, folder)
    adjust(client)
    return Handshake(worker_context(issued.ca, issued.server), client, name)


# What the certificates hold


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
        ((), 100, 100),
    ],
    ids=[
        "the plan's",
        "72 hours",
        "a shorter one",
        "two orders, one after the other",
        "one order, side by side",
        "no plugins",
    ],
)
def test_they_are_valid_as_long_as_the_run_may_take(
    plugins: tuple[Plugin, ...], timeout: int, expected: int
) -> None:
    """From ten minutes before now to an hour after the last timeout."""
    plan = Plan(RUN, plugins, timeout_seconds=timeout)
    now = 1_900_000_000.0
    made = issue_run(plan, ("127.0.0.1",), now=now)

    assert expected + 3600 == validity(plan)
    for pem in (made.ca, *(pair.certificate for pair in leaves(made))):
        assert now - 600 == read(pem).not_valid_before_utc.timestamp()
        assert now + expected + 3600 == read(pem).not_valid_after_utc.timestamp()


# Who gets in


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("version", ["TLSv1_2", "TLSv1_3"])
def test_a_client_of_the_run_gets_in(
    issued: Issued, tmp_path: Path, name: str, version: str
) -> None:
    """By every name, IPv6 too, with TLS 1.2 and 1.3; the server sees the identity."""

    def only(context: ssl.SSLContext) -> None:
        context.minimum_version = context.maximum_version = ssl.TLSVersion[version]

    done = shake(issued, tmp_path, issued.clients[SYSD], name=name, adjust=only)

    assert {} == done.refusals
    assert version.replace("_", ".") == done.server.version()
    assert {("DNS", "sysd"), ("URI", f"urn:status-aggregator:{RUN}:sysd:*")} == done.names


@pytest.mark.parametrize("late", [540.0, 0.0, -21_600.0])
def test_a_clock_may_be_nine_minutes_behind(tmp_path: Path, late: float) -> None:
    """F22: made by an aggregator whose clock is ahead; and hours ago."""
    made = issue(late=late)

    assert {} == shake(made, tmp_path, made.clients[E2E]).refusals


def test_another_name_is_not_the_servers(issued: Issued, tmp_path: Path) -> None:
    """The client refuses before it sends anything."""
    done = shake(issued, tmp_path, issued.clients[E2E], name="other.ns.svc")

    assert "Hostname mismatch" in done.refusals["client"].verify_message  # type: ignore[attr-defined]


class OwnCa:
    """An operator's CA, whose leaves may be of any shape."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = self._named("an operator")
        built = self._begun(self._name, self._key.public_key(), 0, 3600)
        built = built.add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        usage = dict.fromkeys(
            (
                "content_commitment",
                "key_encipherment",
                "data_encipherment",
                "key_agreement",
                "encipher_only",
                "decipher_only",
                "digital_signature",
            ),
            False,
        )
        built = built.add_extension(x509.KeyUsage(**usage, key_cert_sign=True, crl_sign=True), True)
        self._id = x509.SubjectKeyIdentifier.from_public_key(self._key.public_key())
        built = built.add_extension(self._id, False)
        self.pem = built.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    def leaf(self, *, start: float = 0, end: float = 3600, strict: bool = True) -> Pair:
        """A client certificate valid between these seconds from now; else one without key ids."""
        key = ec.generate_private_key(ec.SECP256R1())
        built = self._begun(self._named("e2e"), key.public_key(), start, end)
        built = built.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), False)
        built = built.add_extension(x509.SubjectAlternativeName([x509.DNSName("e2e")]), False)
        if strict:
            issuer = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(self._id)
            built = built.add_extension(issuer, False)
        return Pair(
            built.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM),
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            ),
        )

    def _named(self, name: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])

    def _begun(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey, start: float, end: float
    ) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now + timedelta(seconds=start - 60))
            .not_valid_after(now + timedelta(seconds=end))
        )


@pytest.mark.parametrize(
    ("who", "reason"),
    [
        ("nobody", "PEER_DID_NOT_RETURN_A_CERTIFICATE"),
        ("another run", "certificate verify failed|CERTIFICATE_VERIFY_FAILED"),
        ("the server itself", "unsuitable certificate purpose"),
        ("the same run, made anew", "CERTIFICATE_VERIFY_FAILED"),
    ],
)
def test_others_are_kept_out(issued: Issued, tmp_path: Path, who: str, reason: str) -> None:
    """A19, A55: the handshake fails on the server's side, which is where it is counted."""
    pair = {
        "nobody": None,
        "another run": issue(Plan("another", PLAN.plugins)).clients[E2E],
        "the server itself": issued.server,
        "the same run, made anew": issue().clients[E2E],
    }[who]
    done = shake(issued, tmp_path, pair)

    assert any(word in done.refused_by_server for word in reason.split("|"))


@pytest.mark.parametrize(
    ("shape", "reason"),
    [
        ({"start": -7200, "end": -3600}, "certificate has expired"),
        ({"start": 3600, "end": 7200}, "certificate is not yet valid"),
        ({"strict": False}, "Missing Authority Key Identifier"),
        ({}, ""),
    ],
    ids=["expired", "not yet valid", "without key identifiers", "as it should be"],
)
def test_a_ca_of_the_operators_own(
    issued: Issued, tmp_path: Path, shape: dict[str, Any], reason: str
) -> None:
    """A55: only the times and the shape are wrong; strict in the same way on every Python."""
    own = OwnCa()
    client = client_context(issued.ca, own.leaf(**shape), tmp_path)
    done = Handshake(worker_context(own.pem, issued.server), client)

    assert bool(reason) == ("server" in done.refusals)
    assert reason in done.refused_by_server


@pytest.mark.filterwarnings("ignore:.*TLSv1_1 is deprecated:DeprecationWarning")
def test_old_tls_is_refused(issued: Issued, tmp_path: Path) -> None:
    """A55: TLS 1.1, by a client that would speak it."""

    def old(context: ssl.SSLContext) -> None:
        context.set_ciphers("DEFAULT:@SECLEVEL=0")
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1

    done = shake(issued, tmp_path, issued.clients[E2E], adjust=old)

    assert "UNSUPPORTED_PROTOCOL" in done.refused_by_server


@pytest.mark.parametrize("offered", [["h2", "http/1.1"], ["http/1.1"], ["h2"], []])
def test_only_http_1_1_is_agreed(issued: Issued, tmp_path: Path, offered: list[str]) -> None:
    """A Sonobuoy worker speaks nothing else; who asks for more is not sent away."""
    done = shake(
        issued, tmp_path, issued.clients[E2E], adjust=lambda it: it.set_alpn_protocols(offered)
    )

    assert {} == done.refusals
    expected = "http/1.1" if "http/1.1" in offered else None
    assert expected == done.server.selected_alpn_protocol()


@pytest.mark.parametrize("version", ["TLSv1_2", "TLSv1_3"])
def test_no_session_tickets(issued: Issued, tmp_path: Path, version: str) -> None:
    """Nothing that outlives a connection is handed to a client."""

    def only(context: ssl.SSLContext) -> None:
        context.maximum_version = ssl.TLSVersion[version]

    done = shake(issued, tmp_path, issued.clients[E2E], adjust=only)
    session = done.client.session

    assert {} == done.refusals
    assert session is None or not session.has_ticket


def test_the_environment_has_no_say(
    issued: Issued, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SSLKEYLOGFILE would write down the keys of every connection."""
    monkeypatch.setenv("SSLKEYLOGFILE", str(tmp_path / "keys"))
    done = shake(issued, tmp_path / "client", issued.clients[E2E])

    assert {} == done.refusals
    assert not (tmp_path / "keys").exists()


def test_broken_certificates_of_the_worker_listener(issued: Issued) -> None:
    """One clear error, whatever is wrong."""
    for ca, pair in (
        (b"nonsense", issued.server),
        (issued.ca, Pair(issued.server.certificate, issued.clients[E2E].key)),
        (issued.ca, Pair(b"", b"")),
    ):
        with pytest.raises(CertificateError, match="worker listener"):
            worker_context(ca, pair)


# The status listener


@pytest.fixture
def status_files(tmp_path: Path) -> Path:
    folder = tmp_path / "status"
    now = time.time()
    issued = issue_status(["127.0.0.1", "status.example"], now=now)
    export_status(issued, folder, address="https://127.0.0.1:8081", now=now)
    return folder


def test_a_status_certificate_that_is_replaced_is_read_again(status_files: Path) -> None:
    """Half of a change serves the certificate before; the second half makes the new one count."""
    told: list[str | None] = []
    current = StatusContext(
        status_files / "server.crt", status_files / "server.key", None, told.append
    )
    first = current()
    assert first is current()
    other = issue_status(["other.example"], now=time.time())
    write_private(status_files / "server.crt", other.server.certificate)

    assert first is current()
    assert first is current()
    write_private(status_files / "server.key", other.server.key)
    second = current()

    assert second is not first
    assert second is current()
    assert ["not the key" in told[0], None] == [True, *told[1:]]


def test_a_status_certificate_that_is_taken_away_goes_on_serving(status_files: Path) -> None:
    """What cannot be read is said; connections go on with what was read before."""
    told: list[str | None] = []
    current = StatusContext(
        status_files / "server.crt",
        status_files / "server.key",
        status_files / "ca.pem",
        told.append,
    )
    first = current()
    (status_files / "ca.pem").unlink()

    assert first is current()
    assert 1 == len(told)
    assert "ca.pem: No such file or directory" == told[0].removeprefix(f"{status_files}/")


def pair_in(folder: Path, name: str) -> Pair:
    return Pair((folder / f"{name}.crt").read_bytes(), (folder / f"{name}.key").read_bytes())


def test_the_files_of_the_status_listener(status_files: Path) -> None:
    """`certs --for status`: a server, a client and their CA, of one making; nothing else."""
    names = {"server.crt", "server.key", "client.crt", "client.key", "ca.pem", "connection.json"}
    ca = read((status_files / "ca.pem").read_bytes())

    assert names == {path.name for path in status_files.iterdir()}
    assert {0o600} == {stat.S_IMODE(path.stat().st_mode) for path in status_files.iterdir()}
    for name in ("server", "client"):
        read(pair_in(status_files, name).certificate).verify_directly_issued_by(ca)
    expected = {"IP:127.0.0.1", "DNS:status.example"}
    assert expected == alternatives(pair_in(status_files, "server").certificate)
    lifetime = ca.not_valid_after_utc - ca.not_valid_before_utc
    assert timedelta(hours=48, minutes=10) == lifetime
    written = (status_files / "connection.json").read_bytes()
    connection = decode(written, now=time.time(), max_age=60.0)
    client = pair_in(status_files, "client")
    assert ("https://127.0.0.1:8081", client.certificate, client.key) == (
        connection.address,
        connection.certificate.encode(),
        connection.key.encode(),
    )


@pytest.mark.parametrize("name", ["127.0.0.1", "status.example"])
def test_a_reader_with_a_certificate(status_files: Path, tmp_path: Path, name: str) -> None:
    """It is asked for one and known by it."""
    context = status_context(
        status_files / "server.crt", status_files / "server.key", status_files / "ca.pem"
    )
    ca = (status_files / "ca.pem").read_bytes()
    client = client_context(ca, pair_in(status_files, "client"), tmp_path)
    done = Handshake(context, client, name)

    assert {} == done.refusals
    assert {("DNS", "status-reader")} == done.names


def test_a_probe_without_a_certificate(status_files: Path, tmp_path: Path) -> None:
    """It gets in and is nobody: probes cannot present certificates."""
    context = status_context(
        status_files / "server.crt", status_files / "server.key", status_files / "ca.pem"
    )
    client = client_context((status_files / "ca.pem").read_bytes(), None, tmp_path)
    done = Handshake(context, client)

    assert {} == done.refusals
    assert set() == done.names


def test_a_reader_with_a_certificate_of_somebody_else(
    status_files: Path, issued: Issued, tmp_path: Path
) -> None:
    """A worker's certificate is none for the status; showing one is worse than showing none."""
    context = status_context(
        status_files / "server.crt", status_files / "server.key", status_files / "ca.pem"
    )
    ca = (status_files / "ca.pem").read_bytes()
    done = Handshake(context, client_context(ca, issued.clients[E2E], tmp_path))

    assert "CERTIFICATE_VERIFY_FAILED" in done.refused_by_server


def test_without_a_client_ca_nobody_is_asked(status_files: Path, tmp_path: Path) -> None:
    """A client's certificate is not even looked at."""
    context = status_context(status_files / "server.crt", status_files / "server.key")
    ca = (status_files / "ca.pem").read_bytes()
    done = Handshake(context, client_context(ca, pair_in(status_files, "client"), tmp_path))

    assert {} == done.refusals
    assert set() == done.names


@pytest.mark.parametrize(
    ("certificate", "key", "ca", "named"),
    [
        ("missing", "server.key", None, "No such file"),
        ("server.crt", "missing", None, "No such file"),
        ("server.crt", "client.key", None, "not the key of this certificate"),
        ("server.key", "server.key", None, "not PEM"),
        ("server.crt", "encrypted.key", None, "encrypted"),
        ("server.crt", "server.key", "missing", "missing: No such file"),
        ("server.crt", "server.key", "empty", "empty: "),
    ],
)
def test_files_of_the_status_listener_that_cannot_be_used(
    status_files: Path, certificate: str, key: str, ca: str | None, named: str
) -> None:
    """One line with the file and the reason; an encrypted key does not ask the terminal."""
    (status_files / "empty").touch()
    own = serialization.load_pem_private_key((status_files / "server.key").read_bytes(), None)
    (status_files / "encrypted.key").write_bytes(
        own.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"secret"),
        )
    )
    with pytest.raises(CertificateError) as caught:
        status_context(
            status_files / certificate, status_files / key, status_files / ca if ca else None
        )

    assert named in str(caught.value)
    assert "\n" not in str(caught.value)


# What is kept


def open_run(
    state: Path,
    hand_out: Callable[[Issued], None] = lambda _: None,
    *,
    plan: Plan = PLAN,
    names: tuple[str, ...] = NAMES,
    now: float | None = None,
) -> Authority:
    at = time.time() if now is None else now
    return Authority.open(state / "tls", plan, names, now=at, hand_out=hand_out)


def test_a_restart_keeps_everything_and_hands_out_nothing(tmp_path: Path) -> None:
    """Workers that trusted the old process trust the new one."""
    handed: list[Issued] = []
    first = open_run(tmp_path, handed.append)
    second = open_run(tmp_path, handed.append)

    assert 1 == len(handed)
    assert (True, False) == (first.fresh, second.fresh)
    assert (first.ca, first.server) == (second.ca, second.server)
    assert first.expires_at == second.expires_at
    client = client_context(handed[0].ca, handed[0].clients[E2E], tmp_path / "client")
    assert {} == Handshake(worker_context(second.ca, second.server), client).refusals


def test_the_key_of_the_ca_is_nowhere(tmp_path: Path) -> None:
    """Every key on the disk after a first start is a leaf's: state, files, manifests."""
    handed: list[Issued] = []

    def hand_out(issued: Issued) -> None:
        handed.append(issued)
        export_files(issued, tmp_path / "certs", url=URL)
        export_secrets(issued, tmp_path / "secrets.yaml")

    open_run(tmp_path / "state", hand_out)
    found = list(keys_below(tmp_path))
    (issued,) = handed
    known = {point(read(pair.certificate).public_key()) for pair in leaves(issued)}

    # One in the state; of each of the four clients two in files and one in the manifests.
    assert 13 == len(found)
    assert known == set(map(point, found))
    assert point(read(issued.ca).public_key()) not in known


def keys_below(folder: Path) -> Iterator[Any]:
    """Every private key in every file, also in base64."""
    for path in folder.rglob("*"):
        if path.is_file():
            texts = [path.read_bytes()]
            if path.suffix == ".yaml":
                documents = yaml.safe_load_all(texts[0])
                texts = [base64.b64decode(v) for d in documents for v in d["data"].values()]
            elif path.suffix == ".json":
                texts = [value.encode() for value in json.loads(texts[0]).values()]
            for text in texts:
                pieces = text.split(b"-----BEGIN EC PRIVATE KEY-----")[1:]
                assert text.count(b"PRIVATE KEY-----") == 2 * len(pieces)
                for piece in pieces:
                    yield serialization.load_pem_private_key(
                        b"-----BEGIN EC PRIVATE KEY-----" + piece, None
                    ).public_key()


def point(key: Any) -> bytes:
    found: bytes = key.public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return found


def test_what_is_kept_is_ours_alone(tmp_path: Path) -> None:
    """0600, also with an open umask; the directory 0700."""
    before = os.umask(0)
    try:
        open_run(tmp_path)
    finally:
        os.umask(before)
    (kept,) = (tmp_path / "tls").iterdir()

    assert 0o600 == stat.S_IMODE(kept.stat().st_mode)
    assert 0o700 == stat.S_IMODE(kept.parent.stat().st_mode)


@pytest.mark.parametrize("stop", [KeyboardInterrupt, OSError])
def test_a_first_start_that_ends_while_handing_out_is_one_again(
    tmp_path: Path, stop: type[BaseException]
) -> None:
    """Nothing is kept that nobody has got a client for; the next start makes all anew."""

    def broken(_: Issued) -> None:
        raise stop("broken")

    with pytest.raises(stop):
        open_run(tmp_path, broken)
    handed: list[Issued] = []
    second = open_run(tmp_path, handed.append)

    assert second.fresh
    assert handed[0].ca == second.ca


def test_debris_of_a_killed_start_is_no_hindrance(tmp_path: Path) -> None:
    """A half-written temporary file, readable by everybody."""
    (tmp_path / "tls").mkdir()
    debris = tmp_path / "tls" / ".server.pem.x1y2z3_4.new"
    debris.write_text("-----BEGIN")
    debris.chmod(0o666)
    os.utime(debris, (1, 1))

    assert open_run(tmp_path).fresh
    assert ["server.pem"] == [path.name for path in (tmp_path / "tls").iterdir()]
    assert 0o600 == stat.S_IMODE((tmp_path / "tls" / "server.pem").stat().st_mode)


def without_key(kept: bytes) -> bytes:
    return kept.partition(b"-----END EC PRIVATE KEY-----\n")[2]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda kept, other: b"", "not the key and the certificates"),
        (lambda kept, other: b"\xff\x00", "not the key and the certificates"),
        (lambda kept, other: kept[:700], "not the key and the certificates"),
        (lambda kept, other: kept[:900], "not the key and the"),
        (lambda kept, other: without_key(kept), "not the key and the certificates"),
        (lambda kept, other: kept + other, "not the key and the two certificates"),
        (
            lambda kept, other: kept[: -len(without_key(kept))] + without_key(other),
            "the key is not the certificate's",
        ),
        (
            lambda kept, other: kept.replace(first_certificate(kept), first_certificate(other)),
            "the server certificate is not of this CA",
        ),
    ],
    ids=[
        "empty",
        "no PEM",
        "cut in the certificate",
        "cut after it",
        "no key",
        "too many",
        "another key",
        "another certificate",
    ],
)
def test_what_is_kept_but_broken(
    tmp_path: Path, change: Callable[[bytes, bytes], bytes], said: str
) -> None:
    """The start ends with the file, the reason and the way out; nothing is made in its place."""
    open_run(tmp_path)
    open_run(tmp_path / "other")
    kept = tmp_path / "tls" / "server.pem"
    broken = change(kept.read_bytes(), (tmp_path / "other" / "tls" / "server.pem").read_bytes())
    kept.write_bytes(broken)
    with pytest.raises(CertificateError) as caught:
        open_run(tmp_path, lambda _: pytest.fail("handed out"))

    assert said in str(caught.value)
    assert str(kept) in str(caught.value)
    assert "put the right file back" in str(caught.value)
    assert broken == kept.read_bytes()


def first_certificate(kept: bytes) -> bytes:
    begin, end = b"-----BEGIN CERTIFICATE-----", b"-----END CERTIFICATE-----"
    start = kept.index(begin)
    return kept[start : kept.index(end, start)]


def test_certificates_of_another_run(tmp_path: Path) -> None:
    """A state directory of somebody else is said to be so."""
    open_run(tmp_path)
    with pytest.raises(CertificateError, match=f"of another run .*{RUN}.*, not of second"):
        open_run(tmp_path, plan=Plan("second", PLAN.plugins))


def test_what_is_kept_cannot_be_read(tmp_path: Path) -> None:
    """Said with the file's name."""
    (tmp_path / "tls" / "server.pem").mkdir(parents=True)
    with pytest.raises(CertificateError, match=r"server\.pem: Is a directory"):
        open_run(tmp_path)


def test_names_that_came_later_are_told(tmp_path: Path) -> None:
    """Nothing can be added without the CA's key: who uses the new name will not trust us."""
    open_run(tmp_path)
    again = open_run(tmp_path, names=("LOCALHOST", "[::1]", "10.0.0.7", "new.example"))

    assert ("10.0.0.7", "new.example") == again.uncovered
    assert () == open_run(tmp_path).uncovered


def test_a_name_that_cannot_be_one_after_a_restart(tmp_path: Path) -> None:
    """The setting is wrong, not the file."""
    open_run(tmp_path)
    with pytest.raises(CertificateError, match="neither IP addresses nor DNS names: 'a b'"):
        open_run(tmp_path, names=("a b",))


@pytest.mark.parametrize(
    ("left", "said", "expired"),
    [
        (3601, None, False),
        (3600, "end at ", False),
        (1, "end at ", False),
        (0, "ended at ", True),
        (-5, "ended at ", True),
    ],
)
def test_the_end_is_warned_of(tmp_path: Path, left: float, said: str | None, expired: bool) -> None:
    """An hour before; a start after the end is still one, for the status."""
    held = open_run(tmp_path, now=1_900_000_000.0)
    warning = held.warning(held.expires_at - left)

    assert 1_900_000_000.0 + validity(PLAN) == held.expires_at
    assert (said is None) == (warning is None)
    assert (said or "") in (warning or "")
    assert expired == held.expired(held.expires_at - left)


# What is handed out


def test_the_files_of_a_run(issued: Issued, tmp_path: Path) -> None:
    """Per plugin, per node where it has its own, and the CA; 0600 whatever the umask."""
    before = os.umask(0)
    try:
        export_files(issued, tmp_path / "new" / "certs", url=URL)
    finally:
        os.umask(before)
    names = ["e2e", "sysd", "logs@node1", "logs@node2"]
    files = {path.name: path for path in (tmp_path / "new" / "certs").iterdir()}

    expected = {f"{name}.{end}" for name in names for end in ("crt", "key", "json")} | {"ca.pem"}
    assert expected == set(files)
    assert {0o600} == {stat.S_IMODE(path.stat().st_mode) for path in files.values()}
    assert issued.clients[SYSD].key == files["sysd.key"].read_bytes()
    assert issued.clients[LOGS_1].certificate == files["logs@node1.crt"].read_bytes()
    assert issued.ca == files["ca.pem"].read_bytes()


def test_the_file_of_a_worker_is_all_it_needs(issued: Issued, tmp_path: Path) -> None:
    """`PLUGIN.json` through WORKER_CONFIG_FILE makes the worker, for a node's certificate too."""
    export_files(issued, tmp_path, url=URL)
    e2e = WorkerConfig.from_env({"WORKER_CONFIG_FILE": str(tmp_path / "e2e.json")})
    logs = WorkerConfig.from_env(
        {"WORKER_CONFIG_FILE": str(tmp_path / "logs@node1.json")}, scope="node"
    )

    assert (URL, "e2e", "global") == (e2e.aggregator_url, e2e.plugin, e2e.node)
    assert ("logs", "node1") == (logs.plugin, logs.node)
    assert issued.ca.decode() == e2e.ca_cert
    assert issued.clients[LOGS_1].key.decode() == logs.client_key


def test_files_of_an_earlier_run_are_replaced(issued: Issued, tmp_path: Path) -> None:
    """Also where somebody has put a link in the way: it is replaced, not followed."""
    target = tmp_path / "precious"
    target.write_text("mine")
    certs = tmp_path / "certs"
    export_files(issue(), certs, url=URL)
    (certs / "e2e.key").unlink()
    (certs / "e2e.key").symlink_to(target)
    export_files(issued, certs, url=URL)

    assert "mine" == target.read_text()
    assert issued.clients[E2E].key == (certs / "e2e.key").read_bytes()
    assert not (certs / "e2e.key").is_symlink()


def test_the_ca_comes_last(issued: Issued, tmp_path: Path) -> None:
    """Who waits for it finds everything else."""
    whole = tmp_path / "whole"
    export_files(issued, whole, url=URL)
    others = [path.name for path in whole.iterdir() if path.suffix in {".crt", ".key"}]
    assert 8 == len(others)
    for name in others:
        directory = tmp_path / f"without-{name}"
        (directory / name).mkdir(parents=True)
        with pytest.raises(OSError, match=re.escape(name)):
            export_files(issued, directory, url=URL)
        assert not (directory / "ca.pem").exists()


def test_the_ca_of_a_start_that_was_killed_goes_first(issued: Issued, tmp_path: Path) -> None:
    """Who waits for it must not find it beside keys of another CA."""
    export_files(issue(), tmp_path, url=URL)
    (tmp_path / "e2e.key").unlink()
    (tmp_path / "e2e.key").mkdir()
    with pytest.raises(OSError, match=r"e2e\.key"):
        export_files(issued, tmp_path, url=URL)

    assert not (tmp_path / "ca.pem").exists()


def test_secret_manifests(issued: Issued, tmp_path: Path) -> None:
    """One `kubernetes.io/tls` per client that says whose it is; a YAML reader gets them back."""
    path = tmp_path / "new" / "secrets.yaml"
    export_secrets(issued, path, namespace="conformance")
    documents = list(yaml.safe_load_all(path.read_text()))

    assert 0o600 == stat.S_IMODE(path.stat().st_mode)
    assert secrets(issued, namespace="conformance") == documents
    assert [
        "status-aggregator-e2e",
        "status-aggregator-sysd",
        "status-aggregator-logs.node1",
        "status-aggregator-logs.node2",
    ] == [document["metadata"]["name"] for document in documents]
    sysd = documents[1]
    assert {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": "status-aggregator-sysd",
            "namespace": "conformance",
            "annotations": {
                "status-reporter.io/run": RUN,
                "status-reporter.io/plugin": "sysd",
                "status-reporter.io/node": "*",
            },
        },
        "type": "kubernetes.io/tls",
    } == {key: value for key, value in sysd.items() if key != "data"}
    assert {
        "ca.crt": issued.ca,
        "tls.crt": issued.clients[SYSD].certificate,
        "tls.key": issued.clients[SYSD].key,
    } == {name: base64.b64decode(value) for name, value in sysd["data"].items()}
    assert "namespace" not in secrets(issued)[0]["metadata"]


def test_plugins_whose_names_are_no_secrets_names() -> None:
    """Capitals, underlines, odd dots, and names that would become one: each has its own."""
    plan = Plan(
        RUN,
        (
            Plugin("E2E"),
            Plugin("e2e"),
            Plugin("e_2.-e"),
            Plugin("a.b", nodes=("c",), identity="node"),
            Plugin("a", nodes=("b.c",), identity="node"),
            Plugin("long", nodes=("n" * 253,), identity="node"),
        ),
    )
    names = [secret["metadata"]["name"] for secret in secrets(issue(plan))]

    assert len(names) == len(set(names))
    assert "status-aggregator-e2e" == names[1]
    assert names[0].startswith("status-aggregator-e2e-")
    assert names[2].startswith("status-aggregator-e-2-e-")
    assert "status-aggregator-a.b.c" == names[3]
    assert names[4].startswith("status-aggregator-a-b-c-")
    assert all(len(name) <= 253 and name == name.lower() for name in names)


# What others say of them


@contextmanager
def listening(issued: Issued) -> Iterator[int]:
    """A worker listener for one connection: reads a request, answers 200 and closes."""
    context = worker_context(issued.ca, issued.server)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(HANG)

        def serve() -> None:
            with suppress(OSError):
                raw, _ = listener.accept()
                raw.settimeout(HANG)
                with context.wrap_socket(raw, server_side=True) as connection:
                    data = b""
                    while not data.endswith((b"0\r\n\r\n", b"Q\n")) and (
                        piece := connection.recv(4096)
                    ):
                        data += piece
                    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                    connection.sendall(answer)
                    connection.unwrap()

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def run(command: list[str], *, text: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, input=text, capture_output=True, text=True, timeout=HANG, check=False
    )


@pytest.fixture
def files(issued: Issued, tmp_path: Path) -> Path:
    """The exported files, and the server's beside them."""
    export_files(issued, tmp_path / "certs", url=URL)
    (tmp_path / "certs" / "server.crt").write_bytes(issued.server.certificate)
    (tmp_path / "certs" / "server.key").write_bytes(issued.server.key)
    return tmp_path / "certs"


OPENSSL = shutil.which("openssl")
needs_openssl = pytest.mark.skipif(OPENSSL is None, reason="there is no openssl program")


@needs_openssl
@pytest.mark.parametrize(
    ("name", "options", "good"),
    [
        ("server", ["-purpose", "sslserver", "-verify_ip", "127.0.0.1"], True),
        ("server", ["-purpose", "sslserver", "-verify_ip", "::1"], True),
        ("server", ["-purpose", "sslserver", "-verify_hostname", "aggregator.ns.svc"], True),
        ("server", ["-purpose", "sslserver", "-verify_hostname", "other"], False),
        ("server", ["-purpose", "sslclient"], False),
        ("e2e", ["-purpose", "sslclient"], True),
        ("logs@node1", ["-purpose", "sslclient"], True),
        ("e2e", ["-purpose", "sslserver"], False),
    ],
)
def test_openssl_verifies_strictly(files: Path, name: str, options: list[str], good: bool) -> None:
    """`-x509_strict` asks for all that newer Pythons ask for."""
    assert OPENSSL is not None
    verify = [OPENSSL, "verify", "-x509_strict", *options, "-CAfile", f"{files}/ca.pem"]
    done = run([*verify, f"{files}/{name}.crt"])

    assert good == (done.returncode == 0), done.stdout + done.stderr


@needs_openssl
@pytest.mark.parametrize(
    ("options", "good"),
    [(["-tls1_2"], True), (["-tls1_3"], True), (["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"], False)],
)
def test_openssl_connects(issued: Issued, files: Path, options: list[str], good: bool) -> None:
    """Mutual TLS with `s_client`, both versions; A55: not with TLS 1.1."""
    assert OPENSSL is not None
    with listening(issued) as port:
        done = run(
            [
                *(OPENSSL, "s_client", "-connect", f"127.0.0.1:{port}", "-x509_strict"),
                *("-CAfile", f"{files}/ca.pem", "-verify_ip", "127.0.0.1", "-verify_return_error"),
                *("-cert", f"{files}/e2e.crt", "-key", f"{files}/e2e.key", "-ign_eof", *options),
            ],
            text="x\nQ\n",
        )

    assert good == ("HTTP/1.1 200 OK" in done.stdout), done.stdout + done.stderr


PEER = """
import socket, ssl, sys
port, ca, cert, key = sys.argv[1:]
context = ssl.create_default_context(cafile=ca)
context.load_cert_chain(cert, key)
with socket.create_connection(("127.0.0.1", int(port)), 20) as raw:
    with context.wrap_socket(raw, server_hostname="127.0.0.1") as connection:
        connection.sendall(b"x\\nQ\\n")
        strict = bool(context.verify_flags & ssl.VERIFY_X509_STRICT)
        print(sys.version_info[1], strict, connection.recv(15))
"""


def pythons() -> list[str]:
    """This Python, and one from the other end of the range if it is there."""
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    bash = shutil.which("bash")
    found = run([bash, str(ROOT / "scripts/python.sh"), "other", version]).stdout if bash else ""
    return [sys.executable, *filter(None, [found.strip()])]


@pytest.mark.parametrize("which", ["this", "other"])
def test_pythons_default_context_connects(issued: Issued, files: Path, which: str) -> None:
    """Strict since 3.13: what `ssl.create_default_context` gives a plugin's author."""
    found = pythons()
    if which == "other" and len(found) == 1:
        pytest.skip("no second Python version on this machine")
    with listening(issued) as port:
        pair = [f"{files}/sysd.crt", f"{files}/sysd.key"]
        arguments = [str(port), f"{files}/ca.pem", *pair]
        done = run([found[which == "other"], "-I", "-c", PEER, *arguments])

    minor, strict, answer = done.stdout.split(maxsplit=2) or ("", "", done.stderr)
    assert "b'HTTP/1.1 200 OK'" == answer.strip()
    assert str(int(minor) >= 13) == strict


@pytest.fixture(scope="module")
def go_peer() -> Path:
    """The Go program of `tests/bed/tlspeer`, built once for its source."""
    try:
        return binaries.program("tlspeer")
    except binaries.BedUnavailable as error:
        if os.environ.get("REQUIRE_CLUSTER") == "1":
            pytest.fail(f"REQUIRE_CLUSTER=1, but {error}", pytrace=False)
        pytest.skip(str(error))


@pytest.mark.cluster
@pytest.mark.parametrize(
    ("name", "purpose", "host", "good"),
    [
        ("server", "server", ["127.0.0.1"], True),
        ("server", "server", ["::1"], True),
        ("server", "server", ["aggregator.ns.svc"], True),
        ("server", "server", ["other"], False),
        ("server", "client", [], False),
        ("e2e", "client", [], True),
        ("logs@node2", "client", [], True),
        ("sysd", "server", [], False),
    ],
)
def test_go_verifies(
    go_peer: Path, files: Path, name: str, purpose: str, host: list[str], good: bool
) -> None:
    """The standard library that Sonobuoy's workers use."""
    done = run([str(go_peer), "verify", f"{files}/ca.pem", f"{files}/{name}.crt", purpose, *host])

    assert good == (done.returncode == 0), done.stderr


@pytest.mark.cluster
def test_a_go_client_connects(go_peer: Path, issued: Issued, files: Path) -> None:
    """It reads the key as a Sonobuoy worker does, and sends a chunked PUT."""
    with listening(issued) as port:
        pair = [f"{files}/sysd.crt", f"{files}/sysd.key"]
        dial = [str(go_peer), "dial", f"127.0.0.1:{port}", "127.0.0.1", f"{files}/ca.pem", *pair]
        done = run(dial)

    assert ("200 OK TLS 1.3\n", "") == (done.stdout, done.stderr)


@pytest.mark.cluster
def test_a_go_server_accepts_our_clients(
    go_peer: Path, issued: Issued, files: Path, tmp_path: Path
) -> None:
    """With the same certificates: a Go aggregator of the run would know them."""
    server = [f"{files}/server.crt", f"{files}/server.key"]
    with subprocess.Popen(
        [str(go_peer), "accept", f"{files}/ca.pem", *server],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            port = int(process.stdout.readline())
            context = client_context(issued.ca, issued.clients[LOGS_1], tmp_path)
            with (
                socket.create_connection(("127.0.0.1", port), HANG) as raw,
                context.wrap_socket(raw, server_hostname="localhost") as connection,
            ):
                connection.recv(1)
            said, complaint = process.communicate(timeout=HANG)
        finally:
            process.kill()

    assert (f"urn:status-aggregator:{RUN}:logs:node1 logs\n", "") == (said, complaint)


def common_name(pem: bytes) -> str:
    return str(read(pem).subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value)


def alternatives(pem: bytes) -> set[str]:
    """Subject alternative names as `KIND:VALUE`."""
    kinds = {x509.DNSName: "DNS", x509.IPAddress: "IP", x509.UniformResourceIdentifier: "URI"}
    names = extension(pem, x509.SubjectAlternativeName).value
    return {f"{kinds[type(name)]}:{name.value}" for name in names}
