"""The status listener's certificates: read again, asked for, broken."""

import shutil
import ssl
import stat
import time
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from reporter.aggregator.certificates.run import Issued
from reporter.aggregator.certificates.tls import StatusContext, stand_in_context, status_context
from reporter.common.private_file import write_private
from reporter.pki.issuing import CertificateError, Pair
from reporter.pki.status import issue_status
from reporter.run.connection_file import decode
from tests.integration.aggregator.certificates.world import (
    E2E,
    Handshake,
    alternatives,
    client_context,
    read,
)


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


def test_a_status_certificate_that_is_missing_when_the_run_goes_on(status_files: Path) -> None:
    """Probes are answered in its place; when it comes it is taken."""
    place, told, missing = status_files / "gone", list[str | None](), list[str]()

    def stand_in(error: str) -> ssl.SSLContext:
        missing.append(error)
        return stand_in_context(time.time())

    def current() -> StatusContext:
        names = ("server.crt", "server.key", "ca.pem")
        return StatusContext(*(place / name for name in names), told.append, stand_in)

    first = current()
    assert ["No such file or directory"] == [each.rpartition(": ")[2] for each in missing]
    done = Handshake(first(), ssl._create_unverified_context())
    assert ({}, set()) == (done.refusals, done.names)
    trusting = client_context((status_files / "ca.pem").read_bytes(), None, status_files)
    assert "server" in Handshake(first(), trusting).refusals

    shutil.copytree(status_files, place)
    assert {} == Handshake(first(), trusting).refusals
    assert [None] == told
    (place / "server.crt").write_text("no certificate")
    with pytest.raises(CertificateError, match="not PEM"):
        current()


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
