"""TLS with the certificates of a run: who gets in and who is kept out."""

import ssl
from pathlib import Path
from typing import Any

import pytest

from reporter.aggregator.certificates.run import Issued
from reporter.aggregator.certificates.tls import worker_context
from reporter.pki.issuing import CertificateError, Pair
from reporter.run.plan import Plan
from tests import certificates
from tests.certificates import HOUR
from tests.integration.aggregator.certificates.world import (
    E2E,
    NAMES,
    PLAN,
    RUN,
    SYSD,
    Handshake,
    client_context,
    issue,
    shake,
)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("version", ["TLSv1_2", "TLSv1_3"])
def test_a_client_of_the_run_gets_in(
    issued: Issued, tmp_path: Path, name: str, version: str
) -> None:
    """By every name, IPv6 too, with TLS 1.2 and 1.3; the server sees the identity."""

    def only(context: ssl.SSLContext) -> None:
        context.minimum_version = context.maximum_version = ssl.TLSVersion[version]

    done = shake(issued, tmp_path, issued.clients[SYSD], name=name, adjust=only)

    assert {} == done.refusals
    assert version.replace("_", ".") == done.server.version()
    assert {("DNS", "sysd"), ("URI", f"urn:status-aggregator:{RUN}:sysd:*")} == done.names


@pytest.mark.parametrize("late", [540.0, 0.0, -21_600.0])
def test_a_clock_may_be_nine_minutes_behind(tmp_path: Path, late: float) -> None:
    """F22: made by an aggregator whose clock is ahead; and hours ago."""
    made = issue(late=late)

    assert {} == shake(made, tmp_path, made.clients[E2E]).refusals


def test_another_name_is_not_the_servers(issued: Issued, tmp_path: Path) -> None:
    """The client refuses before it sends anything."""
    done = shake(issued, tmp_path, issued.clients[E2E], name="other.ns.svc")

    assert "Hostname mismatch" in done.refusals["client"].verify_message  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("who", "reason"),
    [
        ("nobody", "PEER_DID_NOT_RETURN_A_CERTIFICATE"),
        ("another run", "certificate verify failed|CERTIFICATE_VERIFY_FAILED"),
        ("the server itself", "unsuitable certificate purpose"),
        ("the same run, made anew", "CERTIFICATE_VERIFY_FAILED"),
    ],
)
def test_others_are_kept_out(issued: Issued, tmp_path: Path, who: str, reason: str) -> None:
    """A19, A55: the handshake fails on the server's side, which is where it is counted."""
    pair = {
        "nobody": None,
        "another run": issue(Plan("another", PLAN.plugins)).clients[E2E],
        "the server itself": issued.server,
        "the same run, made anew": issue().clients[E2E],
    }[who]
    done = shake(issued, tmp_path, pair)

    assert any(word in done.refused_by_server for word in reason.split("|"))


@pytest.mark.parametrize(
    ("shape", "reason"),
    [
        ({"valid": (-2 * HOUR, -HOUR)}, "certificate has expired"),
        ({"valid": (HOUR, 2 * HOUR)}, "certificate is not yet valid"),
        ({"key_ids": False}, "Missing Authority Key Identifier"),
        ({}, ""),
    ],
    ids=["expired", "not yet valid", "without key identifiers", "as it should be"],
)
def test_a_ca_of_the_operators_own(
    issued: Issued, tmp_path: Path, shape: dict[str, Any], reason: str
) -> None:
    """A55: only the times and the shape are wrong; strict in the same way on every Python."""
    own = certificates.Authority("an operator")
    leaf = own.issue("e2e", ["e2e"], **shape)
    pair = Pair(leaf.certificate.encode(), leaf.pkcs8.encode())
    client = client_context(issued.ca, pair, tmp_path)
    done = Handshake(worker_context(own.pem.encode(), issued.server), client)

    assert bool(reason) == ("server" in done.refusals)
    assert reason in done.refused_by_server


@pytest.mark.filterwarnings("ignore:.*TLSv1_1 is deprecated:DeprecationWarning")
def test_old_tls_is_refused(issued: Issued, tmp_path: Path) -> None:
    """A55: TLS 1.1, by a client that would speak it."""

    def old(context: ssl.SSLContext) -> None:
        context.set_ciphers("DEFAULT:@SECLEVEL=0")
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1

    done = shake(issued, tmp_path, issued.clients[E2E], adjust=old)

    assert "UNSUPPORTED_PROTOCOL" in done.refused_by_server


@pytest.mark.parametrize("offered", [["h2", "http/1.1"], ["http/1.1"], ["h2"], []])
def test_only_http_1_1_is_agreed(issued: Issued, tmp_path: Path, offered: list[str]) -> None:
    """A Sonobuoy worker speaks nothing else; who asks for more is not sent away."""
    done = shake(
        issued, tmp_path, issued.clients[E2E], adjust=lambda it: it.set_alpn_protocols(offered)
    )

    assert {} == done.refusals
    expected = "http/1.1" if "http/1.1" in offered else None
    assert expected == done.server.selected_alpn_protocol()


@pytest.mark.parametrize("version", ["TLSv1_2", "TLSv1_3"])
def test_no_session_tickets(issued: Issued, tmp_path: Path, version: str) -> None:
    """Nothing that outlives a connection is handed to a client."""

    def only(context: ssl.SSLContext) -> None:
        context.maximum_version = ssl.TLSVersion[version]

    done = shake(issued, tmp_path, issued.clients[E2E], adjust=only)
    session = done.client.session

    assert {} == done.refusals
    assert session is None or not session.has_ticket


def test_the_environment_has_no_say(
    issued: Issued, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SSLKEYLOGFILE would write down the keys of every connection."""
    monkeypatch.setenv("SSLKEYLOGFILE", str(tmp_path / "keys"))
    done = shake(issued, tmp_path / "client", issued.clients[E2E])

    assert {} == done.refusals
    assert not (tmp_path / "keys").exists()


def test_broken_certificates_of_the_worker_listener(issued: Issued) -> None:
    """One clear error, whatever is wrong."""
    for ca, pair in (
        (b"nonsense", issued.server),
        (issued.ca, Pair(issued.server.certificate, issued.clients[E2E].key)),
        (issued.ca, Pair(b"", b"")),
    ):
        with pytest.raises(CertificateError, match="worker listener"):
            worker_context(ca, pair)
