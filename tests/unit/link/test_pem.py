"""PEM texts and what can be read out of them without a library."""

import ssl

import pytest

from reporter.link import pem


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
