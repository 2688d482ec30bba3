"""The certificates of a run whose plugins are launched: clients are made as they are needed."""

from __future__ import annotations

import shutil
import stat
import time
from pathlib import Path

import pytest
from cryptography import x509

from reporter.aggregator.certificates.run import Authority
from reporter.aggregator.certificates.tls import worker_context
from reporter.pki.issuing import CertificateError
from tests.integration.aggregator.certificates.world import (
    E2E,
    NAMES,
    PLAN,
    RUN,
    Handshake,
    client_context,
)


def open_run(state: Path) -> Authority:
    return Authority.open(state / "tls", PLAN, NAMES, now=time.time(), seconds=7200, hand_out=None)


def test_a_client_made_after_a_restart_is_trusted(tmp_path: Path) -> None:
    """The CA is the same, and its key lies where only we can read it."""
    first = open_run(tmp_path)
    second = open_run(tmp_path)
    assert (True, False) == (first.fresh, second.fresh)
    assert first.ca == second.ca
    assert 0o600 == stat.S_IMODE((tmp_path / "tls" / "ca.key").stat().st_mode)
    for number, authority in enumerate((first, second)):
        pair = authority.client(RUN, E2E)
        client = client_context(authority.ca, pair, tmp_path / f"client{number}")
        assert {} == Handshake(worker_context(first.ca, first.server), client).refusals


def test_what_is_issued_ends_with_its_authority(tmp_path: Path) -> None:
    """However late it is made."""
    pair = open_run(tmp_path).client(RUN, E2E)
    kept = open_run(tmp_path)

    leaf = x509.load_pem_x509_certificate(pair.certificate)
    assert kept.expires_at == leaf.not_valid_after_utc.timestamp()


def test_once_the_key_is_forgotten_nobody_can_add_a_client(tmp_path: Path) -> None:
    """The key is gone; the server's certificate serves on. It may be forgotten twice."""
    first = open_run(tmp_path)
    for _ in range(2):
        first.forget_key()
    again = open_run(tmp_path)

    assert not (tmp_path / "tls" / "ca.key").exists()
    assert (first.ca, first.server) == (again.ca, again.server)
    for authority in (first, again):
        with pytest.raises(CertificateError, match="not kept"):
            authority.client(RUN, E2E)


def test_a_first_start_that_was_killed_is_one_again(tmp_path: Path) -> None:
    """Between the two files: nothing was told to anybody."""
    open_run(tmp_path)
    (tmp_path / "tls" / "server.pem").unlink()

    assert open_run(tmp_path).fresh


def test_a_key_that_is_none_or_of_another_run(tmp_path: Path) -> None:
    """The file is named."""
    open_run(tmp_path / "one")
    open_run(tmp_path / "two")
    key = tmp_path / "one" / "tls" / "ca.key"
    shutil.copy(tmp_path / "two" / "tls" / "ca.key", key)
    with pytest.raises(CertificateError, match=r"ca\.key: not the key of this run"):
        open_run(tmp_path / "one")
    key.write_bytes(b"no key")
    with pytest.raises(CertificateError, match=r"ca\.key: not the original key"):
        open_run(tmp_path / "one")
    key.unlink()
    key.mkdir()
    with pytest.raises(CertificateError, match="Is a directory"):
        open_run(tmp_path / "one")
