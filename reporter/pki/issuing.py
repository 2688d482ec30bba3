"""Making certificates: a CA, its leaves, and the names they may hold.

Those of a run are made in `aggregator/certificates/`, those of the readers of its status in
`status.py`. No files here.
"""

import ipaddress
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from reporter.errors import ReporterError

EARLIER = 600.0  # seconds; a worker's clock may be behind ours

_DNS_NAME = re.compile(r"(\*\.)?[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_-]+)*")


class CertificateError(ReporterError):
    """Certificates that cannot be made, kept or used; the text names the file and the reason."""


@dataclass(frozen=True)
class Pair:
    """A certificate and its key as PEM, one block each; the key is `EC PRIVATE KEY` (SEC1)."""

    certificate: bytes
    key: bytes = field(repr=False)


class Issuer:
    """A CA. Its certificates end with it. Threads may use it at the same time."""

    def __init__(self, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
        self._key, self._name = key, certificate.subject
        self._start = certificate.not_valid_before_utc
        self._end = certificate.not_valid_after_utc
        self._id = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        self.pem = certificate_pem(certificate)

    @classmethod
    def new(cls, name: str, now: float, seconds: float) -> Self:
        """Make one that lasts so many seconds from the Unix time `now`."""
        key, subject = ec.generate_private_key(ec.SECP256R1()), _name(name)
        start = datetime.fromtimestamp(now - EARLIER, UTC)
        end = datetime.fromtimestamp(now + seconds, UTC)
        built = _begun(subject, subject, key.public_key(), start, end)
        built = built.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        built = built.add_extension(_usage(signs=True), critical=True)
        return cls(built.sign(key, hashes.SHA256()), key)

    @property
    def key(self) -> bytes:
        """Its key as PEM, for those who keep it."""
        return key_pem(self._key)

    def issue(
        self, name: str, names: Iterable[x509.GeneralName], purpose: x509.ObjectIdentifier
    ) -> Pair:
        """Make a leaf for one purpose, and its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        built = _begun(_name(name), self._name, key.public_key(), self._start, self._end)
        built = built.add_extension(x509.BasicConstraints(ca=False, path_length=None), True)
        built = built.add_extension(_usage(signs=False), critical=True)
        built = built.add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        built = built.add_extension(x509.SubjectAlternativeName(names), critical=False)
        # Without it OpenSSL's and Python's strict checks refuse the chain.
        issuer = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(self._id)
        built = built.add_extension(issuer, critical=False)
        return Pair(certificate_pem(built.sign(self._key, hashes.SHA256())), key_pem(key))


def _begun(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    start: datetime,
    end: datetime,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(end)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def server_names(names: Sequence[str]) -> list[x509.GeneralName]:
    """Return addresses and DNS names for a server's certificate, each once.

    Raises CertificateError with all that are neither, or when there is none.
    """
    found: list[x509.GeneralName] = []
    wrong = []
    for name in names:
        try:
            found.append(general_name(name))
        except ValueError:
            wrong.append(name)
    if wrong:
        listed = ", ".join(map(repr, wrong))
        raise CertificateError(f"neither IP addresses nor DNS names: {listed}")
    if not found:
        raise CertificateError("the server needs at least one name or address")
    return list(dict.fromkeys(found))


def general_name(name: str) -> x509.GeneralName:
    """Return an address (IPv6 with or without brackets) or a DNS name. Raises ValueError."""
    bare = name[1:-1] if name.startswith("[") and name.endswith("]") else name
    try:
        address = ipaddress.ip_address(bare.partition("%")[0])
    except ValueError:
        if not _DNS_NAME.fullmatch(name) or len(name) > 253:
            raise
        return x509.DNSName(name.lower())
    return x509.IPAddress(address)


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def common_name(certificate: x509.Certificate) -> str:
    """Return the subject's common name."""
    found = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(found[0].value) if found else "no name"


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )


def certificate_pem(certificate: x509.Certificate) -> bytes:
    """Return it as one PEM block."""
    return certificate.public_bytes(serialization.Encoding.PEM)


def key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """Return it as one PEM block, not encrypted."""
    # SEC1, nothing before it: a Sonobuoy worker knows no other form and reads the first block only.
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
