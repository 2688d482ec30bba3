"""The certificates of one run: a CA of its own, the server's certificate, one for every client.

All are made at the first start. The CA's key lives only while they are made and is written nowhere,
so nobody can add a client later. The server's key and certificate and the CA certificate are kept
for a restart. Where plugins are launched, clients are made as they are needed instead, and the CA's
key is kept beside the others until the last plugin has its certificate. How certificates are made
is in `issuing.py`; no contexts (`tls.py`) and no exported files (`export.py`) here.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

from reporter.common.private_file import private_directory, write_private
from reporter.pki.issuing import (
    CertificateError,
    Issuer,
    Pair,
    certificate_pem,
    common_name,
    general_name,
    key_pem,
    server_names,
)
from reporter.run.identity import ANY_NODE, client_uri
from reporter.run.launch_file import Launch, longest
from reporter.run.plan import Key, Plan

LONGER = 3600.0  # after the last timeout: retries, late results, the last answers
NEAR_EXPIRY = 3600.0

_FILE, _CA_KEY = "server.pem", "ca.key"
_CA = "status-aggregator CA "
_MAX_COMMON_NAME = 64


@dataclass(frozen=True)
class Issued:
    """What a first start makes. `clients` by plugin and node (`*`: any, `global`: no node)."""

    run: str
    ca: bytes
    server: Pair
    clients: Mapping[Key, Pair]


def validity(plan: Plan, launch: Launch | None) -> float:
    """Return the seconds that the certificates of this run are good for."""
    return longest(plan, launch) + LONGER


def _client(issuer: Issuer, run: str, key: Key) -> Pair:
    names = [x509.DNSName(key.plugin), x509.UniformResourceIdentifier(client_uri(run, *key))]
    return issuer.issue(key.plugin, names, ExtendedKeyUsageOID.CLIENT_AUTH)


@dataclass
class Authority:
    """What the aggregator holds of its run's certificates: enough to be known again.

    `fresh` says that they were made by this start. `uncovered` are names it is reached by now and
    which its certificate does not have: clients that use them will not trust it.
    """

    ca: bytes
    server: Pair
    expires_at: float
    """Unix time."""
    fresh: bool = False
    uncovered: tuple[str, ...] = ()
    issuer: Issuer | None = field(default=None, repr=False)
    """Where clients are made as they are needed, until `forget_key`."""
    key_file: Path | None = None

    def client(self, run: str, key: Key) -> Pair:
        """Make a client's certificate. Raises CertificateError once the CA's key is gone."""
        if self.issuer is None:
            raise CertificateError("the key of the run's certificate authority is not kept")
        return _client(self.issuer, run, key)

    def forget_key(self) -> None:
        """Remove the CA's key, so that nobody can add a client. Raises OSError."""
        self.issuer = None
        if self.key_file is not None:
            self.key_file.unlink(missing_ok=True)

    @classmethod
    def open(
        cls,
        directory: Path,
        plan: Plan,
        names: Sequence[str],
        *,
        now: float,
        seconds: float,
        hand_out: Callable[[Issued], None] | None,
    ) -> Self:
        """Read the certificates kept in `directory`; at the first start make and keep them.

        `names` are the server's: addresses and DNS names, no ports. `now` is Unix time; they are
        good for so many `seconds`. `hand_out` gets what was made and exports it, before anything is
        kept: a start that is killed in between is a first start again. Without it, clients are made
        as they are needed, and the CA's key is kept until `forget_key`. Raises CertificateError
        when a kept file is unreadable, broken or of another run or a name cannot be one, and
        OSError as `hand_out` and the disk do.
        """
        subjects = server_names(names)
        path, key_file = directory / _FILE, directory / _CA_KEY
        fresh = False
        try:
            kept = path.read_bytes()
        except FileNotFoundError:  # no other: what was handed out before would be worth nothing
            fresh = True
            issuer = Issuer.new(_ca_name(plan.run), now, seconds)
            server = issuer.issue("status-aggregator", subjects, ExtendedKeyUsageOID.SERVER_AUTH)
            private_directory(directory)
            if hand_out is None:
                # First: without the other file, which makes it a restart, this one means nothing.
                write_private(key_file, issuer.key)
            else:
                clients = {key: _client(issuer, plan.run, key) for key in _clients(plan)}
                hand_out(Issued(plan.run, issuer.pem, server, clients))
            # One file, so that it is there as a whole or not at all.
            kept = server.key + server.certificate + issuer.pem
            write_private(path, kept)
        except OSError as error:
            raise CertificateError(f"{path}: {error.strerror}") from None
        try:
            held = cls._restored(kept, plan, names)
        except ValueError as error:
            raise CertificateError(
                f"{path}: {error}; restore the original file, or delete the run and start a new "
                "one (if you deployed the aggregator yourself: with an empty state directory)"
            ) from None
        held.fresh = fresh
        if hand_out is None:
            held._restore_issuer(key_file)
        return held

    def _restore_issuer(self, key_file: Path) -> None:
        """Read the CA's key, unless it is forgotten."""
        try:
            key = serialization.load_pem_private_key(key_file.read_bytes(), None)
        except FileNotFoundError:
            return
        except OSError as error:
            raise CertificateError(f"{key_file}: {error.strerror}") from None
        except (ValueError, TypeError, UnsupportedAlgorithm):
            raise CertificateError(f"{key_file}: not the original key") from None
        certificate = x509.load_pem_x509_certificate(self.ca)
        if certificate.public_key() != key.public_key():
            raise CertificateError(f"{key_file}: not the key of this run's certificate authority")
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        self.issuer, self.key_file = Issuer(certificate, key), key_file

    @classmethod
    def _restored(cls, kept: bytes, plan: Plan, names: Sequence[str]) -> Self:
        try:
            certificates = x509.load_pem_x509_certificates(kept)
            key = serialization.load_pem_private_key(kept, None)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            raise ValueError("not the original key and certificates") from None
        if len(certificates) != 2 or not isinstance(key, ec.EllipticCurvePrivateKey):
            raise ValueError("not the original key and two certificates")
        server, ca = certificates
        if common_name(ca) != _ca_name(plan.run):
            raise ValueError(
                f"belongs to run {common_name(ca).removeprefix(_CA)}, not to {plan.run}"
            )
        try:
            server.verify_directly_issued_by(ca)
        except Exception:
            raise ValueError("the server certificate was not issued by this CA") from None
        if key.public_key() != server.public_key():
            raise ValueError("the key is not the certificate's")
        held = set(server.extensions.get_extension_for_class(x509.SubjectAlternativeName).value)
        return cls(
            ca=certificate_pem(ca),
            server=Pair(certificate_pem(server), key_pem(key)),
            expires_at=min(c.not_valid_after_utc.timestamp() for c in certificates),
            uncovered=tuple(name for name in names if general_name(name) not in held),
        )

    def expired(self, now: float) -> bool:
        """Say whether no client will trust us any more."""
        return now >= self.expires_at

    def warning(self, now: float) -> str | None:
        """Return what to warn of once the end is an hour away or has come, else nothing."""
        left = self.expires_at - now
        if left > NEAR_EXPIRY:
            return None
        when = datetime.fromtimestamp(self.expires_at, UTC).isoformat()
        return f"the certificates of this run {'expire' if left > 0 else 'expired'} at {when}"


def _clients(plan: Plan) -> Iterable[Key]:
    for plugin in plan.plugins:
        if plugin.nodes and plugin.identity == "plugin":
            yield Key(plugin.name, ANY_NODE)
        else:
            yield from plugin.keys


def _ca_name(run: str) -> str:
    name = f"{_CA}{run}"
    if len(name) <= _MAX_COMMON_NAME:
        return name
    return f"{_CA}{hashlib.sha256(run.encode()).hexdigest()[:40]}"
