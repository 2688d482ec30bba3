"""Certificates for the fake API server: a CA and a serving certificate, written as PEM files."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class Authority:
    """A CA. `strict=False` leaves out the extensions that Python 3.13's strict check asks for."""

    def __init__(self, *, strict: bool = True) -> None:
        self._strict = strict
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "fakekube-ca")])
        built = _certificate(self._name, self._name, self._key.public_key())
        built = built.add_extension(x509.BasicConstraints(ca=True, path_length=None), strict)
        if strict:
            built = built.add_extension(_usage(signs=True), True)
            built = built.add_extension(
                x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), False
            )
        self._certificate = built.sign(self._key, hashes.SHA256())

    def write(self, path: Path) -> None:
        """Write the CA certificate."""
        path.write_bytes(self._certificate.public_bytes(serialization.Encoding.PEM))

    def issue(self, certificate: Path, key: Path, addresses: Sequence[str]) -> None:
        """Write a serving certificate for these IP addresses, and its key."""
        own = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "fakekube")])
        names = [x509.IPAddress(ip_address(address)) for address in addresses]
        built = _certificate(name, self._name, own.public_key())
        built = built.add_extension(x509.SubjectAlternativeName(names), False)
        if self._strict:
            built = built.add_extension(x509.BasicConstraints(ca=False, path_length=None), True)
            built = built.add_extension(_usage(signs=False), True)
            built = built.add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), False
            )
        signed = built.sign(self._key, hashes.SHA256())
        certificate.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
        key.write_bytes(
            own.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )


def _certificate(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
    )


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )
