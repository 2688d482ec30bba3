"""The certificates of one run: a CA of its own, the server's certificate, one for every client.

All are made at the first start. The CA's key lives only while they are made and is written nowhere,
so nobody can add a client later. The server's key and certificate and the CA certificate are kept
for a restart. Where plugins are launched, clients are made as they are needed instead, and the CA's
key is kept beside the others until the last plugin has its certificate. How certificates are made
is in `issuing.py`; no contexts (`tls.py`) and no exported files (`export.py`) here.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
from reporter.run.names import ANY_NODE, client_uri
from reporter.run.plan import LONGEST_TIMEOUT, Key, Plan

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


def validity(plan: Plan) -> float:
    """Return the seconds that the certificates of this run are good for.

    Plugins of one order run side by side, orders one after the other; each may take its timeout.
    """
    longest: dict[int, int] = {}
    for plugin in plan.plugins:
        timeout = plan.timeout_of(plugin.name)
        longest[plugin.order] = max(longest.get(plugin.order, 0), timeout)
    return min(sum(longest.values()) or plan.timeout_seconds, LONGEST_TIMEOUT) + LONGER


def issue_run(plan: Plan, names: Sequence[str], *, now: float) -> Issued:
    """Make the certificates of a run. `names` are the server's: addresses and DNS names, no ports.

    `now` is Unix time. Raises CertificateError for names that no certificate can hold.
    """
    subjects = server_names(names)
    authority = Issuer.new(_ca_name(plan.run), now, validity(plan))
    return Issued(
        run=plan.run,
        ca=authority.pem,
        server=authority.issue("status-aggregator", subjects, ExtendedKeyUsageOID.SERVER_AUTH),
        clients={key: _client(authority, plan.run, key) for key in _clients(plan)},
    )


def _client(authority: Issuer, run: str, key: Key) -> Pair:
    names = [x509.DNSName(key.plugin), x509.UniformResourceIdentifier(client_uri(run, *key))]
    return authority.issue(key.plugin, names, ExtendedKeyUsageOID.CLIENT_AUTH)


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
    fresh: bool
    uncovered: tuple[str, ...] = ()
    issuer: Issuer | None = field(default=None, repr=False)
    """Where clients are made as they are needed, until `forget_key`."""
    key_file: Path | None = None

    def client(self, run: str, key: Key) -> Pair:
        """Make a client's certificate. Raises CertificateError once the CA's key is gone."""
        if self.issuer is None:
            raise CertificateError("the key of the run's certificate authority is not kept")
        return _client(self.issuer, run, key)

    @classmethod
    def open_issuing(
        cls, directory: Path, plan: Plan, names: Sequence[str], *, now: float, seconds: float
    ) -> Self:
        """Do what `open` does, for a run whose clients are made as they are needed.

        The certificates are good for so many `seconds`. Nothing is handed out, and the CA's key is
        kept until `forget_key`.
        """
        subjects = server_names(names)
        path = directory / _CA_KEY
        if not (directory / _FILE).exists():
            issuer = Issuer.new(_ca_name(plan.run), now, seconds)
            server = issuer.issue("status-aggregator", subjects, ExtendedKeyUsageOID.SERVER_AUTH)
            private_directory(directory)
            # First: without the other file, which makes it a restart, this one means nothing.
            write_private(path, issuer.key)
            write_private(directory / _FILE, server.key + server.certificate + issuer.pem)
            return cls(issuer.pem, server, now + seconds, fresh=True, issuer=issuer, key_file=path)
        kept = cls.open(directory, plan, names, now=now, hand_out=lambda _: None)
        try:
            key = serialization.load_pem_private_key(path.read_bytes(), None)
        except FileNotFoundError:
            return kept  # it is forgotten
        except OSError as error:
            raise CertificateError(f"{path}: {error.strerror}") from None
        except (ValueError, TypeError, UnsupportedAlgorithm):
            raise CertificateError(f"{path}: not the original key") from None
        certificate = x509.load_pem_x509_certificate(kept.ca)
        if certificate.public_key() != key.public_key():
            raise CertificateError(f"{path}: not the key of this run's certificate authority")
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        return replace(kept, issuer=Issuer(certificate, key), key_file=path)

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
        hand_out: Callable[[Issued], None],
    ) -> Self:
        """Read the certificates kept in `directory`; at the first start make and keep them.

        `hand_out` gets what was made and exports it, before anything is kept: a start that is
        killed in between is a first start again. Raises CertificateError when a kept file is
        unreadable, broken or of another run or a name cannot be one, and OSError as `hand_out` and
        the disk do.
        """
        server_names(names)
        path = directory / _FILE
        try:
            kept = path.read_bytes()
        except FileNotFoundError:
            issued = issue_run(plan, names, now=now)
            hand_out(issued)
            private_directory(directory)
            # One file, so that it is there as a whole or not at all.
            write_private(path, issued.server.key + issued.server.certificate + issued.ca)
            return cls(issued.ca, issued.server, _expiry(issued), fresh=True)
        except OSError as error:
            raise CertificateError(f"{path}: {error.strerror}") from None
        try:
            return cls._restored(kept, plan, names)
        except ValueError as error:
            raise CertificateError(
                f"{path}: {error}; restore the original file, or delete the run and start a new "
                "one (if you deployed the aggregator yourself: with an empty state directory)"
            ) from None

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
            fresh=False,
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


def _expiry(issued: Issued) -> float:
    return x509.load_pem_x509_certificate(issued.ca).not_valid_after_utc.timestamp()
