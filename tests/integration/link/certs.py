"""Certificates for the scripted aggregator: of our shape, of Sonobuoy's, and broken on purpose."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

RUN = "6c1c8a1e-0000-4000-8000-000000000001"
HOUR = timedelta(hours=1)


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
    """A CA of our shape; with `sonobuoy` its leaves have its own subject and no key ids."""

    def __init__(
        self,
        *,
        sonobuoy: bool = False,
        is_ca: bool = True,
        valid: tuple[timedelta, timedelta] = (-HOUR, 24 * HOUR),
        more: Sequence[x509.ExtensionType] = (),
    ) -> None:
        self.sonobuoy = sonobuoy
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _sonobuoys_name() if sonobuoy else _common_name(f"status-aggregator CA {RUN}")
        built = _certificate(self._name, self._name, self._key.public_key(), valid)
        built = built.add_extension(
            x509.BasicConstraints(ca=is_ca, path_length=None if sonobuoy or not is_ca else 0), True
        )
        built = built.add_extension(_usage(signs=True), True)
        for extension in more:
            built = built.add_extension(extension, True)
        if not sonobuoy:
            built = built.add_extension(
                x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), False
            )
        self._certificate = built.sign(self._key, hashes.SHA256())
        self.pem = self._certificate.public_bytes(Encoding.PEM).decode()

    def server(
        self,
        names: Sequence[str] = ("127.0.0.1", "::1", "localhost"),
        *,
        purpose: x509.ObjectIdentifier = ExtendedKeyUsageOID.SERVER_AUTH,
        valid: tuple[timedelta, timedelta] = (-HOUR, 24 * HOUR),
        more: Sequence[x509.ExtensionType] = (),
    ) -> Pair:
        """Issue a server's certificate for these names and addresses.

        `more` are critical extensions.
        """
        alternatives = [_general(name) for name in names]
        return self._issue("status-aggregator", alternatives, purpose, valid, more)

    def client(self, plugin: str = "e2e", node: str = "*") -> Pair:
        """Issue a worker's certificate."""
        uri = f"urn:status-aggregator:{RUN}:{plugin}:{node}"
        return self._issue(
            plugin,
            [x509.DNSName(plugin), x509.UniformResourceIdentifier(uri)],
            ExtendedKeyUsageOID.CLIENT_AUTH,
            (-HOUR, 24 * HOUR),
        )

    def _issue(
        self,
        name: str,
        alternatives: Sequence[x509.GeneralName],
        purpose: x509.ObjectIdentifier,
        valid: tuple[timedelta, timedelta],
        more: Sequence[x509.ExtensionType] = (),
    ) -> Pair:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = self._name if self.sonobuoy else _common_name(name)
        built = _certificate(subject, self._name, key.public_key(), valid)
        built = built.add_extension(x509.SubjectAlternativeName(alternatives), False)
        built = built.add_extension(x509.BasicConstraints(ca=False, path_length=None), True)
        built = built.add_extension(_usage(signs=False), True)
        built = built.add_extension(x509.ExtendedKeyUsage([purpose]), False)
        for extension in more:
            built = built.add_extension(extension, True)
        if not self.sonobuoy:
            built = built.add_extension(
                x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False
            ).add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), False
            )
        return Pair(
            built.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM).decode(),
            *(
                key.private_bytes(Encoding.PEM, form, NoEncryption()).decode()
                for form in (PrivateFormat.PKCS8, PrivateFormat.TraditionalOpenSSL)
            ),
        )


@dataclass(frozen=True)
class Identities:
    """What a run needs: its CA, the aggregator's certificate, a worker's."""

    ca: Authority
    server: Pair
    client: Pair


@cache
def identities() -> Identities:
    """One set for the tests that do not care."""
    ca = Authority()
    return Identities(ca, ca.server(), ca.client())


def _sonobuoys_name() -> x509.Name:
    with warnings.catch_warnings():
        # What it writes there is too long for a country; who reads it is warned too.
        warnings.simplefilter("ignore")
        country = x509.NameAttribute(NameOID.COUNTRY_NAME, "USA", _validate=False)
    return x509.Name([country, x509.NameAttribute(NameOID.ORGANIZATION_NAME, "sonobuoy")])


def _common_name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _certificate(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    valid: tuple[timedelta, timedelta],
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + valid[0])
        .not_valid_after(now + valid[1])
    )


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
