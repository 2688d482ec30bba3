"""Fixtures of the tests of certificates."""

import time
from pathlib import Path

import pytest

from reporter.aggregator.certificates.export import (
    export_files,
    export_status,
)
from reporter.aggregator.certificates.run import (
    Issued,
)
from reporter.pki.status import issue_status
from tests.integration.aggregator.certificates.world import URL, issue


@pytest.fixture(scope="module")
def issued() -> Issued:
    return issue()


@pytest.fixture
def status_files(tmp_path: Path) -> Path:
    folder = tmp_path / "status"
    now = time.time()
    issued = issue_status(["127.0.0.1", "status.example"], now=now)
    export_status(issued, folder, address="https://127.0.0.1:8081", now=now)
    return folder


@pytest.fixture
def files(issued: Issued, tmp_path: Path) -> Path:
    """The exported files, and the server's beside them."""
    export_files(issued, tmp_path / "certs", url=URL)
    (tmp_path / "certs" / "server.crt").write_bytes(issued.server.certificate)
    (tmp_path / "certs" / "server.key").write_bytes(issued.server.key)
    return tmp_path / "certs"
