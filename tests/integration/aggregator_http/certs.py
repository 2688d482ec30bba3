"""Certificates of a run, good ones and all the wrong kinds, made once per test process."""

import datetime
import functools
import ipaddress
import os
import ssl
from dataclasses import dataclass

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from reporter.aggregator.certificates import tls
from reporter.aggregator.certificates.run import Pair

RUN = "0f3f2a4e-0000-4000-8000-000000000001"
HOUR = datetime.timedelta(hours=1)


@dataclass(frozen=True)
class Authority:
    """A certificate authority of the tests."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @classmethod
    def make(cls, name: str) -> "Authority":
        key = ec.generate_private_key(ec.SECP256R1())
        subject = _name(name)
        usage = _usage(signs=True)
        certificate = (
            _begun(subject, subject, key, -HOUR, HOUR)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .sign(key, hashes.SHA256())
        )
        return cls(certificate, key)

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    def issue(
        self,
        name: str,
        *sans: str,
        start: datetime.timedelta = -HOUR,
        end: datetime.timedelta = HOUR,
        server: bool = False,
    ) -> Pair:
        """Issue a certificate with names like `uri:...`, `ip:...` or plain DNS names."""
        key = ec.generate_private_key(ec.SECP256R1())
        usage = ExtendedKeyUsageOID.SERVER_AUTH if server else ExtendedKeyUsageOID.CLIENT_AUTH
        certificate = (
            _begun(_name(name), self.certificate.subject, key, start, end)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            .add_extension(x509.SubjectAlternativeName([_san(san) for san in sans]), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()),
                critical=False,
            )
            .sign(self.key, hashes.SHA256())
        )
        return Pair(
            certificate.public_bytes(serialization.Encoding.PEM),
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.TraditionalOpenSSL,
                serialization.NoEncryption(),
            ),
        )


def _begun(subject, issuer, key, start, end):
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + start)
        .not_valid_after(now + end)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _san(text: str) -> x509.GeneralName:
    kind, _, rest = text.partition(":")
    if kind == "uri":
        return x509.UniformResourceIdentifier(rest)
    if kind == "ip":
        return x509.IPAddress(ipaddress.ip_address(rest))
    return x509.DNSName(text)


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


def uri(plugin: str, node: str, run: str = RUN) -> str:
    """The URI of a client certificate."""
    return f"uri:urn:status-aggregator:{run}:{plugin}:{node}"


@functools.cache
def authority() -> Authority:
    """The CA of the run under test."""
    return Authority.make("status-aggregator CA test")


@functools.cache
def stranger() -> Authority:
    """Another run's CA."""
    return Authority.make("status-aggregator CA other")


@functools.cache
def server() -> Pair:
    """The server's certificate."""
    return authority().issue("status-aggregator", "ip:127.0.0.1", "localhost", server=True)


@functools.cache
def client(plugin: str, node: str = "*") -> Pair:
    """A worker's certificate, of the shape that a run issues."""
    return authority().issue(plugin, plugin, uri(plugin, node))


def server_context() -> ssl.SSLContext:
    """The worker listener's context."""
    return tls.worker_context(authority().pem, server())


def client_context(pair: Pair | None, ca: bytes | None = None) -> ssl.SSLContext:
    """A worker's context; without a pair it shows no certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=(ca or authority().pem).decode())
    if pair is not None:
        fd = os.memfd_create("client")
        try:
            os.write(fd, pair.certificate + pair.key)
            context.load_cert_chain(f"/proc/self/fd/{fd}")
        finally:
            os.close(fd)
    return context
