"""Certificates for tests: authorities of every shape, and what they issue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

HOUR = timedelta(hours=1)
DAY = (-HOUR, 24 * HOUR)
"""Valid from an hour ago until tomorrow."""
CLIENT, SERVER = ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH


@dataclass(frozen=True)
class Pair:
    """A certificate and its key, both PEM; `sec1` is the key as Sonobuoy's workers want it."""

    certificate: str
    pkcs8: str
    sec1: str

    @property
    def der(self) -> bytes:
        """The certificate as it goes over the wire."""
        return x509.load_pem_x509_certificate(self.certificate.encode()).public_bytes(Encoding.DER)


class Authority:
    """A CA. Its leaves are for clients or servers, of any names, valid now or not.

    `strict=False` leaves out the extensions that Python 3.13's strict check asks for, here and in
    what it issues; `key_ids=False` only the identifiers of the keys.
    """

    def __init__(
        self,
        subject: str | x509.Name = "a CA of the tests",
        *,
        strict: bool = True,
        key_ids: bool = True,
        is_ca: bool = True,
        path_length: int | None = 0,
        valid: tuple[timedelta, timedelta] = DAY,
        more: Sequence[x509.ExtensionType] = (),
    ) -> None:
        self._strict, self._key_ids = strict, key_ids and strict
        self._key = ec.generate_private_key(ec.SECP256R1())
        self.name = common_name(subject) if isinstance(subject, str) else subject
        limit = x509.BasicConstraints(is_ca, path_length if is_ca else None)
        self._certificate = self._sign(self.name, self._key, valid, [limit, *more])
        self.pem = self._certificate.public_bytes(Encoding.PEM).decode()

    def issue(
        self,
        subject: str | x509.Name,
        names: Sequence[str] = (),
        *,
        purpose: x509.ObjectIdentifier | None = CLIENT,
        valid: tuple[timedelta, timedelta] = DAY,
        key_ids: bool = True,
        more: Sequence[x509.ExtensionType] = (),
    ) -> Pair:
        """Issue a certificate for DNS names, addresses and URIs; `more` are critical extensions."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = common_name(subject) if isinstance(subject, str) else subject
        plain: list[x509.ExtensionType] = []
        if names:
            plain.append(x509.SubjectAlternativeName([_alternative(text) for text in names]))
        if purpose is not None:
            plain.append(x509.ExtendedKeyUsage([purpose]))
        if key_ids and self._key_ids:
            issuer = self._key.public_key()
            plain.append(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer))
        critical = [x509.BasicConstraints(False, None), *more]
        made = self._sign(name, key, valid, critical, plain)
        return Pair(made.public_bytes(Encoding.PEM).decode(), *map(key_pem, (key, key), FORMS))

    def _sign(
        self,
        subject: x509.Name,
        key: ec.EllipticCurvePrivateKey,
        valid: tuple[timedelta, timedelta],
        critical: list[x509.ExtensionType],
        plain: Sequence[x509.ExtensionType] = (),
    ) -> x509.Certificate:
        if self._strict:
            critical = [*critical, _usage(signs=key is self._key)]
        if self._key_ids:
            plain = [*plain, x509.SubjectKeyIdentifier.from_public_key(key.public_key())]
        now = datetime.now(UTC)
        built = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self.name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now + valid[0])
            .not_valid_after(now + valid[1])
        )
        for extension in critical:
            built = built.add_extension(extension, self._strict)
        for extension in plain:
            built = built.add_extension(extension, False)
        return built.sign(self._key, hashes.SHA256())


FORMS = (PrivateFormat.PKCS8, PrivateFormat.TraditionalOpenSSL)


def key_pem(key: ec.EllipticCurvePrivateKey, form: PrivateFormat) -> str:
    """A private key as PEM."""
    return key.private_bytes(Encoding.PEM, form, NoEncryption()).decode()


def common_name(text: str) -> x509.Name:
    """A subject of one common name."""
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _alternative(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(text))
    except ValueError:
        return x509.UniformResourceIdentifier(text) if ":" in text else x509.DNSName(text)


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def ending_at(end: datetime, *, serial: int = 1, name: str = "x") -> str:
    """A certificate in PEM, signed by its own key, that ends at a given moment."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = common_name(name)
    built = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(serial)
        .not_valid_before(datetime(1951, 1, 1, tzinfo=UTC))
        .not_valid_after(end)
    )
    return built.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM).decode()
