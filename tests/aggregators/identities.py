"""Certificates for the scripted aggregator: of our shape, of Sonobuoy's, and broken on purpose."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cache

from cryptography import x509
from cryptography.x509.oid import NameOID

from tests import certificates
from tests.certificates import DAY, SERVER, Pair

RUN = "6c1c8a1e-0000-4000-8000-000000000001"


class Authority(certificates.Authority):
    """A CA of our shape; with `sonobuoy` its leaves have its own subject and no key ids."""

    def __init__(
        self,
        *,
        sonobuoy: bool = False,
        is_ca: bool = True,
        valid: tuple[timedelta, timedelta] = DAY,
        more: Sequence[x509.ExtensionType] = (),
    ) -> None:
        self.sonobuoy = sonobuoy
        super().__init__(
            _sonobuoys_name() if sonobuoy else f"status-aggregator CA {RUN}",
            key_ids=not sonobuoy,
            is_ca=is_ca,
            path_length=None if sonobuoy else 0,
            valid=valid,
            more=more,
        )

    def server(
        self,
        names: Sequence[str] = ("127.0.0.1", "::1", "localhost"),
        *,
        purpose: x509.ObjectIdentifier = SERVER,
        valid: tuple[timedelta, timedelta] = DAY,
        more: Sequence[x509.ExtensionType] = (),
    ) -> Pair:
        """Issue a server's certificate for these names and addresses.

        `more` are critical extensions.
        """
        name = self.name if self.sonobuoy else "status-aggregator"
        return self.issue(name, names, purpose=purpose, valid=valid, more=more)

    def client(self, plugin: str = "e2e", node: str = "*") -> Pair:
        """Issue a worker's certificate."""
        names = (plugin, f"urn:status-aggregator:{RUN}:{plugin}:{node}")
        return self.issue(self.name if self.sonobuoy else plugin, names)


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
