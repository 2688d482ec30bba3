"""The keys and certificates of one bed: its own authority, made anew for each run."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests import certificates

LIFE = (-certificates.HOUR, timedelta(days=30))


class Authority:
    """A certificate authority that writes PEM files into a folder (``NAME.crt``, ``NAME.key``)."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._authority = certificates.Authority("status-reporter test bed", valid=LIFE)
        (folder / "ca.crt").write_text(self._authority.pem)

    def issue(
        self, file: str, user: str, *, groups: Sequence[str] = (), server: Sequence[str] = ()
    ) -> None:
        """Write a certificate for the client `user` in `groups`, or for a server's names."""
        parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        name = x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, user)])
        purpose = certificates.SERVER if server else certificates.CLIENT
        pair = self._authority.issue(name, server, purpose=purpose, valid=LIFE)
        (self.folder / f"{file}.crt").write_text(pair.certificate)
        write_private(self.folder / f"{file}.key", pair.sec1)


def write_signing_key(folder: Path, file: str) -> None:
    """Write the key pair that signs service account tokens (``FILE.key``, ``FILE.pub``)."""
    key = ec.generate_private_key(ec.SECP256R1())
    write_private(folder / f"{file}.key", certificates.key_pem(key, certificates.FORMS[1]))
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    (folder / f"{file}.pub").write_bytes(public)


def write_private(path: Path, text: str) -> None:
    """Write what nobody else may read."""
    path.touch(mode=0o600)
    path.write_text(text)
