"""The connection file's content: written, read, refused; and when a certificate ends."""

import base64
import json
import ssl
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from reporter.wire.connection_file import ConnectionFile, UnusableFile, decode, encode
from reporter.wire.pem import not_after

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
AT = NOW.timestamp()
DAY = 86_400.0


def certificate(end: datetime, *, serial: int = 1, name: str = "x") -> str:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    built = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(serial)
        .not_valid_before(datetime(1951, 1, 1, tzinfo=UTC))
        .not_valid_after(end)
    )
    return built.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()


PEM = certificate(NOW + timedelta(days=1))


@pytest.mark.parametrize(
    "end",
    [
        datetime(1999, 12, 31, 23, 59, 59, tzinfo=UTC),
        datetime(2030, 1, 2, tzinfo=UTC),
        datetime(2049, 12, 31, tzinfo=UTC),
        datetime(2050, 1, 1, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC),
    ],
)
def test_the_end_of_a_certificate(end):
    """Both ways to write a time, of this century and others; long names and numbers."""
    for more in ({}, {"serial": 2**150, "name": "n" * 64}):
        assert end.timestamp() == not_after("text before\n" + certificate(end, **more))


def sequence(content: bytes) -> bytes:
    size = len(content)
    return b"\x30" + (bytes([0x81, size]) if size < 256 else b"\x82" + size.to_bytes(2)) + content


def test_the_end_of_a_certificate_of_version_1():
    """The version is left out there: what a few old tools still make."""
    end = datetime(2031, 2, 3, 4, 5, 6, tzinfo=UTC)
    third = x509.load_pem_x509_certificate(certificate(end).encode())
    whole, signed = third.public_bytes(serialization.Encoding.DER), third.tbs_certificate_bytes
    after_version = signed.partition(b"\xa0\x03\x02\x01\x02")[2]
    first = sequence(sequence(after_version) + whole.partition(signed)[2])
    text = ssl.DER_cert_to_PEM_cert(first)

    assert x509.Version.v1 is x509.load_pem_x509_certificate(text.encode()).version
    assert end.timestamp() == not_after(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-----BEGIN CERTIFICATE-----\n!!\n-----END CERTIFICATE-----",
        "-----BEGIN CERTIFICATE-----\n\n-----END CERTIFICATE-----",
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----",
        "-----BEGIN CERTIFICATE-----\nMIAA\n-----END CERTIFICATE-----",
        "-----BEGIN CERTIFICATE-----\nMIWAAAAA\n-----END CERTIFICATE-----",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        PEM.replace("CERTIFICATE", "PRIVATE KEY"),
    ],
)
def test_what_is_no_certificate(text):
    """A ValueError that says so."""
    with pytest.raises(ValueError, match=r"^(no|not|a) "):
        not_after(text)


def test_a_certificate_without_a_readable_end():
    """The tag or the digits are wrong."""
    body = base64.b64decode("".join(PEM.splitlines()[1:-1]))
    at = body.index(b"300102120000Z")
    for damaged in (body[: at - 2] + b"\x04" + body[at - 1 :], body[:at] + b"x" + body[at + 1 :]):
        text = base64.b64encode(damaged).decode()
        with pytest.raises(ValueError, match="expiry"):
            not_after(f"-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----")


@given(st.binary(max_size=300))
def test_any_bytes_give_a_time_or_an_error(data):
    """Never another exception."""
    text = base64.b64encode(data).decode()
    try:
        not_after(f"-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----")
    except ValueError:
        return


@given(st.integers(min_value=0, max_value=len(PEM) - 60), st.integers(0, 255))
def test_a_damaged_certificate_gives_a_time_or_an_error(at, value):
    """Wherever the damage is."""
    body = bytearray(base64.b64decode("".join(PEM.splitlines()[1:-1])))
    body[at % len(body)] = value
    text = base64.b64encode(bytes(body)).decode()
    try:
        not_after(f"-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----")
    except ValueError:
        return


def fields(**changed):
    made = {
        "host_address": "h:1",
        "created_at": NOW.isoformat(),
        "ca_cert": PEM,
        "client_cert": PEM,
        "client_key": "key",
    }
    return json.dumps({key: value for key, value in (made | changed).items() if value is not None})


def read(text, *, now=AT, max_age=2 * DAY):
    return decode(text.encode(), now=now, max_age=max_age)


def test_what_is_written_is_read_again():
    """With exactly the published fields."""
    connection = ConnectionFile("https://h:1", AT, PEM, PEM, "key")

    assert connection == read(encode(connection).decode())
    assert {"host_address", "created_at", "ca_cert", "client_cert", "client_key"} == set(
        json.loads(encode(connection))
    )


@pytest.mark.parametrize(
    ("changed", "now", "words"),
    [
        ({}, AT + 2 * DAY + 1, "is too old: created 48h0m1s ago, the limit is 48h0m0s"),
        ({"created_at": NOW.isoformat()}, AT - 301, "created in the future"),
        ({"created_at": None}, AT, "created_at is not a time"),
        ({"created_at": 5}, AT, "created_at is not a string"),
        ({"host_address": None}, AT, "host_address is missing"),
        ({"ca_cert": []}, AT, "ca_cert is not a string"),
        ({"client_key": None}, AT, "must be given together"),
        ({"client_cert": None}, AT, "must be given together"),
        ({"client_cert": "x"}, AT, "client_cert: not a PEM certificate"),
        ({}, AT + DAY, "has expired: its ca_cert ended at 2030-01-02T12:00:00Z"),
        ({"ca_cert": ""}, AT + DAY, "has expired: its client_cert ended at"),
    ],
)
def test_what_is_refused(changed, now, words):
    """Each with its own message."""
    with pytest.raises(UnusableFile, match=words.replace("(", r"\(")):
        read(fields(**changed), now=now)


@pytest.mark.parametrize(
    ("text", "words"),
    [("[]", "not a JSON object"), (" " * 2**20 + "{}", "larger than"), ("{", "JSON")],
)
def test_what_is_no_such_file(text, words):
    """Broken, and how."""
    with pytest.raises(UnusableFile, match=f"is invalid: .*{words}"):
        read(text)


@pytest.mark.parametrize("shift", [-300, 0, DAY - 1])
def test_what_is_taken(shift):
    """A clock that is a little behind, and any age below the limit."""
    assert "h:1" == read(fields(), now=AT + shift).address


def test_certificates_may_be_missing():
    """Plain HTTP needs none."""
    found = read(fields(ca_cert=None, client_cert=None, client_key=None))

    assert ("", "", "") == (found.ca, found.certificate, found.key)


@given(st.binary(max_size=200))
def test_any_bytes_give_a_connection_or_a_refusal(data):
    """Never another exception."""
    try:
        decode(data, now=AT, max_age=DAY)
    except UnusableFile:
        return
