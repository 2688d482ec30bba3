"""The certificates of a status listener that is reached from outside, and of its readers."""

from collections.abc import Sequence
from dataclasses import dataclass

from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

from reporter.pki.issuing import Issuer, Pair, server_names

TWO_DAYS = 48 * 3600.0


@dataclass(frozen=True)
class StatusIssued:
    """What the status listener and those who read it need, of a CA of their own."""

    ca: bytes
    server: Pair
    client: Pair


def issue_status(hosts: Sequence[str], *, now: float, seconds: float = TWO_DAYS) -> StatusIssued:
    """Make the certificates of a status listener that is reached as `hosts`, and of its readers."""
    subjects = server_names(hosts)
    authority = Issuer.new("status-aggregator status CA", now, seconds)
    reader = "status-reader"
    return StatusIssued(
        ca=authority.pem,
        server=authority.issue("status-aggregator", subjects, ExtendedKeyUsageOID.SERVER_AUTH),
        client=authority.issue(reader, [x509.DNSName(reader)], ExtendedKeyUsageOID.CLIENT_AUTH),
    )
