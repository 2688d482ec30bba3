"""Certificates of the fake API server, written as PEM files."""

from collections.abc import Sequence
from pathlib import Path

from tests import certificates


class Authority(certificates.Authority):
    """A CA. `strict=False` leaves out the extensions that Python 3.13's strict check asks for."""

    def __init__(self, *, strict: bool = True) -> None:
        super().__init__("fakekube-ca", strict=strict)

    def write(self, path: Path) -> None:
        """Write the CA certificate."""
        path.write_text(self.pem)

    def write_pair(self, certificate: Path, key: Path, addresses: Sequence[str]) -> None:
        """Write a certificate for these IP addresses, good for clients too, and its key."""
        pair = self.issue("fakekube", addresses, purpose=None)
        certificate.write_text(pair.certificate)
        key.write_text(pair.pkcs8)
