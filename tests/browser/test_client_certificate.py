"""The live page from elsewhere: a browser with a client certificate, and a real aggregator."""

from __future__ import annotations

import datetime
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    load_pem_private_key,
    pkcs12,
)

from reporter.pki.issuing import Pair
from tests.aggregators import run_certificates as certs
from tests.aggregators.guarded import ELSEWHERE, Guarded
from tests.aggregators.served import plan
from tests.browser.conftest import need_browser
from tests.browser.test_live_page import LINK, ROWS, opened
from tests.browser.webdriver import Browser, driving

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

CERTUTIL, PK12UTIL = shutil.which("certutil"), shutil.which("pk12util")
HOUR = datetime.timedelta(hours=1)
OPERATOR = certs.Authority("an operator")


@pytest.fixture
def aggregator(tmp_path: Path) -> Iterator[Guarded]:
    """Readers are those with `client.crt`, and those of an operator's CA."""
    document = plan("sysd", ["node1", "node2"])
    with Guarded(
        tmp_path / "run", document, "--hold-seconds", "0", also=OPERATOR.certificate
    ) as running:
        yield running


@pytest.fixture
def reader(
    tmp_path_factory: pytest.TempPathFactory, aggregator: Guarded
) -> Iterator[Callable[[Pair | None], Browser]]:
    """Opens the browser of somebody who trusts the aggregator, and has a certificate or none."""
    need_browser(CERTUTIL and PK12UTIL, "certutil and pk12util")
    home = tmp_path_factory.mktemp("home")  # short: Chromium has a socket below it
    database = home / ".pki" / "nssdb"
    database.mkdir(parents=True)
    in_it = ("-d", f"sql:{database}")

    def run(program: str | None, *arguments: str) -> None:
        assert program is not None
        subprocess.run([program, *arguments], check=True, capture_output=True, timeout=60)

    run(CERTUTIL, *in_it, "-N", "--empty-password")
    run(CERTUTIL, *in_it, "-A", "-t", "C,,", "-n", "ca", "-i", str(aggregator.tls / "ca.pem"))
    with driving(home) as open_browser:

        def opened_with(pair: Pair | None) -> Browser:
            if pair is not None:
                file = home / "reader.p12"
                file.write_bytes(bundle(pair))
                run(PK12UTIL, *in_it, "-i", str(file), "-W", "secret", "-K", "")
            # What a person clicks in the dialog that asks for a certificate.
            chosen = {"setting": {"filters": [{}]}}
            kind = "profile.content_settings.exceptions.auto_select_certificate"
            elsewhere = f"https://{ELSEWHERE}:{aggregator.status_port}"
            sites = (aggregator.status_url, elsewhere)
            return open_browser({kind: {f"{site},*": chosen for site in sites}})

        yield opened_with


def bundle(pair: Pair) -> bytes:
    """Put a certificate and its key into PKCS#12."""
    key = load_pem_private_key(pair.key, None)
    certificate = x509.load_pem_x509_certificate(pair.certificate)
    return pkcs12.serialize_key_and_certificates(
        b"reader", key, certificate, None, BestAvailableEncryption(b"secret")
    )


def client(aggregator: Guarded) -> Pair:
    """The certificate that `status-aggregator certs` has made."""
    return Pair(
        (aggregator.tls / "client.crt").read_bytes(), (aggregator.tls / "client.key").read_bytes()
    )


@pytest.mark.parametrize("who", ["of `status-aggregator certs`", "of one's own CA"])
def test_the_right_certificate(reader, aggregator: Guarded, who: str) -> None:
    """The page is live, and follows the run to its end over the same certificate."""
    own = "own" in who
    browser = reader(OPERATOR.pair("reader", "reader") if own else client(aggregator))
    opened(browser, f"{aggregator.status_url}/", 2)
    worker = aggregator.worker("sysd")
    worker.post("by-node/node1/sysd", total=4, completed=1, msg="reading the journal")
    browser.until(f"{ROWS}.some(row => row.innerText.includes('reading the journal'))")
    for node in ("node1", "node2"):
        worker.put(f"by-node/{node}/sysd", b"data")
    browser.until(f"{LINK} === 'Run is over'")

    assert "Complete" == browser.text("#hero-status")
    assert [] == browser.complaints()


@pytest.mark.parametrize("expired", [False, True])
def test_no_certificate(reader, aggregator: Guarded, expired: bool) -> None:
    """The reader is told what is missing; a browser does not even show what is no longer valid."""
    late = OPERATOR.pair("reader", "reader", start=-2 * HOUR, end=-HOUR / 60)
    browser = reader(late if expired else None)
    browser.open(f"https://{ELSEWHERE}:{aggregator.status_port}/")

    assert "run data is served only to local clients" in browser.text("body")


def test_a_certificate_of_a_stranger(reader, aggregator: Guarded) -> None:
    """There is no page, only the browser's own for a connection that has failed."""
    browser = reader(certs.stranger().pair("reader", "reader"))
    # The driver calls some of these pages an error.
    with suppress(AssertionError):
        browser.open(f"{aggregator.status_url}/")

    shown = browser.text("body")
    assert "ERR_" in shown
    assert not browser.run(f"return {ROWS}.length")
    refused = 'status_aggregator_tls_failures_total{reason="certificate"}'
    assert aggregator.metrics()[refused] > 0
