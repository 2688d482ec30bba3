"""Which peer this worker accepts as its aggregator, and the TLS contexts that follow from it.

The run's CA is the only anchor and the host's name is checked. There is one exception, tried only
after OpenSSL has said "self-signed": Sonobuoy gives its CA and its leaves the same subject, which
OpenSSL cannot tell apart. Such a leaf is verified here, and then is the only one that may answer.
Only that needs `cryptography`, which is imported then. Sockets are opened elsewhere.
"""

import ssl
import time
from collections.abc import Callable
from datetime import UTC, datetime
from ipaddress import ip_address
from typing import TYPE_CHECKING, TypeVar

from reporter.errors import ReporterError
from reporter.link import pem

if TYPE_CHECKING:
    from cryptography import x509

    from reporter.link.config import WorkerConfig
    from reporter.link.connection import Dial

SELF_SIGNED = 18
"""OpenSSL's X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT."""
_UNTRUSTED = "the aggregator's certificate is not trusted"
_OTHER_RUN = "certificate of another run"
_OF_OTHERS = {7, 19, 20, 21}
"""OpenSSL's codes for a certificate that is valid, but not signed by a CA that is known."""


class TrustError(ReporterError):
    """The peer cannot prove that it is the aggregator of this run. No request was sent to it."""


class Trust:
    """What one client trusts; safe to share between threads. `wall` gives Unix seconds."""

    def __init__(self, config: "WorkerConfig", *, wall: Callable[[], float] = time.time) -> None:
        self._config, self._wall = config, wall
        self._normal = self._context()
        self._normal.load_verify_locations(cadata=config.ca_cert)
        self.by_hand = False
        """Whether an aggregator's certificate had Sonobuoy's shape and was verified here."""

    def secure(self, dial: "Dial") -> ssl.SSLSocket:
        """Return a connection to the aggregator, on which nothing has been sent yet.

        Raises `TrustError`, and what `dial` raises.
        """
        try:
            return dial(self._normal)
        except ssl.SSLCertVerificationError as error:
            if error.verify_code != SELF_SIGNED:
                why = error.verify_message
                if error.verify_code in _OF_OTHERS:
                    why = f"{_OTHER_RUN} ({why})"
                raise TrustError(f"{_UNTRUSTED}: {why}") from error
        looking = self._context()
        looking.check_hostname = False
        looking.verify_mode = ssl.CERT_NONE
        with dial(looking) as unsafe:
            leaf = unsafe.getpeercert(binary_form=True) or b""
        check_by_hand(leaf, self._config.ca_cert, self._config.host, self._wall())
        pinned = self._context()
        # The leaf itself is the anchor, though it is no CA.
        pinned.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        pinned.load_verify_locations(cadata=leaf)
        try:
            connection = dial(pinned)
        except ssl.SSLCertVerificationError as error:
            raise TrustError(f"{_UNTRUSTED}: it keeps changing") from error
        if connection.getpeercert(binary_form=True) != leaf:
            connection.close()
            raise TrustError(f"{_UNTRUSTED}: it keeps changing")
        self.by_hand = True
        return connection

    def _context(self) -> ssl.SSLContext:
        context = pem.bare_context()
        pem.load_identity(context, self._config.client_cert, self._config.client_key)
        return context


def check_by_hand(leaf: bytes, authority: str, host: str, now: float) -> None:
    """Check a leaf (DER) that OpenSSL cannot place: issued by this CA (PEM), for this host, now.

    Raises `TrustError` on any doubt.
    """
    try:
        from cryptography import x509
    except ImportError:
        raise TrustError(
            "the aggregator's certificate is a Sonobuoy-style certificate, which OpenSSL cannot "
            "verify; install the package cryptography to verify it"
        ) from None
    try:
        certificate = x509.load_der_x509_certificate(leaf)
        issuer = x509.load_pem_x509_certificate(authority.encode())
        doubt = _doubt(certificate, issuer, host, datetime.fromtimestamp(now, UTC))
    except Exception as error:  # whatever a foreign certificate makes the library raise
        doubt = f"it cannot be read ({type(error).__name__})"
    if doubt:
        raise TrustError(f"{_UNTRUSTED}: {doubt}")


def _doubt(
    leaf: "x509.Certificate", issuer: "x509.Certificate", host: str, now: datetime
) -> str | None:
    """Say what speaks against the leaf; nothing speaks for it otherwise."""
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature

    try:
        leaf.verify_directly_issued_by(issuer)
    except (InvalidSignature, ValueError, TypeError):
        return f"{_OTHER_RUN} (it was not issued by the CA of this run)"
    for what, certificate in (("it", leaf), ("the CA", issuer)):
        if not certificate.not_valid_before_utc <= now <= certificate.not_valid_after_utc:
            return f"{what} is not valid now"
        if any(
            extension.critical and isinstance(extension.value, x509.UnrecognizedExtension)
            for extension in certificate.extensions
        ):
            return f"{what} has an unknown critical extension"
    constraints = _extension(issuer, x509.BasicConstraints)
    usage = _extension(issuer, x509.KeyUsage)
    if not (constraints and constraints.ca and usage and usage.key_cert_sign):
        return "the CA certificate is not a CA certificate"
    if _extension(issuer, x509.NameConstraints):
        return "the CA has name constraints, which are not supported"
    purposes = _extension(leaf, x509.ExtendedKeyUsage)
    if not purposes or x509.oid.ExtendedKeyUsageOID.SERVER_AUTH not in purposes:
        return "it is not a server certificate"
    names = _extension(leaf, x509.SubjectAlternativeName)
    if not names or not _named(names, host):
        return f"it is not valid for {host}"
    return None


def _named(names: "x509.SubjectAlternativeName", host: str) -> bool:
    from cryptography import x509

    try:
        return ip_address(host) in names.get_values_for_type(x509.IPAddress)
    except ValueError:
        listed = names.get_values_for_type(x509.DNSName)
        return host.lower() in {name.lower() for name in listed}


Extension = TypeVar("Extension", bound="x509.ExtensionType")


def _extension(certificate: "x509.Certificate", kind: type[Extension]) -> Extension | None:
    from cryptography import x509

    try:
        return certificate.extensions.get_extension_for_class(kind).value
    except x509.ExtensionNotFound:
        return None
