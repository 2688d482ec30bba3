"""When a certificate ends: read from its PEM text, whatever the text is."""

import ssl
from datetime import UTC, datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from hypothesis import given
from hypothesis import strategies as st

from reporter.common.certificate import not_after
from tests.certificates import ending_at

PEM = ending_at(datetime(2030, 1, 2, 12, tzinfo=UTC))
DER = ssl.PEM_cert_to_DER_cert(PEM)


@pytest.mark.parametrize("label", ["CERTIFICATE", "X509 CERTIFICATE", "TRUSTED CERTIFICATE"])
def test_the_labels_of_a_certificate(label):
    """Three labels are in use for the same thing."""
    assert datetime(2030, 1, 2, 12, tzinfo=UTC).timestamp() == not_after(
        PEM.replace("CERTIFICATE", label)
    )


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
def test_the_end_of_a_ending_at(end):
    """Both ways to write a time, of this century and others; long names and numbers."""
    for more in ({}, {"serial": 2**150, "name": "n" * 64}):
        assert end.timestamp() == not_after("text before\n" + ending_at(end, **more))


def test_a_name_that_looks_like_a_validity():
    """Only the place of the validity says what it is; the issuer's name comes before it."""
    end = datetime(2031, 2, 3, tzinfo=UTC)
    name = "0\x1e\x17\r200101000000Z\x17\r210101000000Z"
    assert end.timestamp() == not_after(ending_at(end, name=name))


@given(st.integers(0, len(DER) - 1))
def test_a_truncated_certificate(size):
    """Refused wherever it is cut off."""
    with pytest.raises(ValueError, match="truncated"):
        not_after(ssl.DER_cert_to_PEM_cert(DER[:size]))


def sequence(content: bytes) -> bytes:
    size = len(content)
    return b"\x30" + (bytes([0x81, size]) if size < 256 else b"\x82" + size.to_bytes(2)) + content


def test_the_end_of_a_certificate_of_version_1():
    """The version is left out there: what a few old tools still make."""
    end = datetime(2031, 2, 3, 4, 5, 6, tzinfo=UTC)
    third = x509.load_pem_x509_certificate(ending_at(end).encode())
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
    at = DER.index(b"300102120000Z")
    for damaged in (DER[: at - 2] + b"\x04" + DER[at - 1 :], DER[:at] + b"x" + DER[at + 1 :]):
        with pytest.raises(ValueError, match="expiry"):
            not_after(ssl.DER_cert_to_PEM_cert(damaged))


@given(st.binary(max_size=300))
def test_any_bytes_give_a_time_or_an_error(data):
    """Never another exception."""
    try:
        not_after(ssl.DER_cert_to_PEM_cert(data))
    except ValueError:
        return


@given(st.integers(0, len(DER) - 1), st.integers(0, 255))
def test_a_damaged_certificate_gives_a_time_or_an_error(at, value):
    """Wherever the damage is."""
    body = bytearray(DER)
    body[at] = value
    try:
        not_after(ssl.DER_cert_to_PEM_cert(body))
    except ValueError:
        return
