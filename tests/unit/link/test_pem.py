"""PEM texts and what can be read out of them without a library."""

import base64
import ssl
from datetime import timedelta

import pytest
from cryptography import x509
from hypothesis import given
from hypothesis import strategies as st

from reporter.link import pem
from tests.integration.link.certs import Authority, identities


@pytest.mark.parametrize("days", [1, 365 * 10, 365 * 40])
def test_end_of_a_certificate(days):
    """Both notations of a time: with two digits of the year, and from 2050 on with four."""
    text = Authority(valid=(timedelta(0), timedelta(days=days))).pem
    until = x509.load_pem_x509_certificate(text.encode()).not_valid_after_utc
    assert until.timestamp() == pem.expires(text)


@given(st.binary(max_size=200))
def test_any_bytes_have_an_end_or_none(data):
    """It is for a warning only and must never fail."""
    text = base64.b64encode(data).decode()
    block = f"-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n"
    assert pem.expires(block) is None or isinstance(pem.expires(block), float)


@given(st.integers(0, 400), st.integers(0, 255))
def test_damaged_certificate_has_an_end_or_none(position, value):
    """One byte of a real certificate changed."""
    der = bytearray(identities().server.der)
    der[min(position, len(der) - 1)] = value
    text = base64.b64encode(bytes(der)).decode()
    block = f"-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n"
    assert pem.expires(block) is None or isinstance(pem.expires(block), float)


def test_blocks_with_other_text_and_line_ends():
    """What people paste."""
    text = "# mine\r\n-----BEGIN A B-----\r\nAAAA\r\n-----END A B-----\r\nrest -----BEGIN C-----\n"
    assert [("A B", "-----BEGIN A B-----\r\nAAAA\r\n-----END A B-----\n")] == pem.blocks(text)


@pytest.mark.parametrize("text", ["", "-----BEGIN CERTIFICATE-----\n", "x" * 10])
def test_nothing_to_find(text):
    """Said in words."""
    with pytest.raises(pem.PemError, match="has no PEM block CERTIFICATE"):
        pem.certificates(text)
    with pytest.raises(pem.PemError, match="has no PEM block EC PRIVATE KEY"):
        pem.private_key(text)


def test_bare_context_is_the_same_everywhere():
    """No trust in anybody, no strictness that differs by version, TLS 1.2 and up."""
    context = pem.bare_context()
    assert [] == context.get_ca_certs()
    assert not context.verify_flags & ssl.VERIFY_X509_STRICT
    assert ssl.TLSVersion.TLSv1_2 == context.minimum_version
    assert (ssl.CERT_REQUIRED, True, None) == (
        context.verify_mode,
        context.check_hostname,
        context.keylog_filename,
    )
