"""Who may read a run from elsewhere: curl, with all kinds of certificates, and a real process."""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.aggregators import run_certificates as certs
from tests.aggregators.guarded import Guarded, make_certificates
from tests.aggregators.run_certificates import Pair
from tests.aggregators.served import BOUND, plan

RUN_DATA = ("/status", "/status/e2e/global", "/status?since=0", "/results", "/", "/page/main.js")
PROBES = ("/livez", "/readyz", "/metrics")
HOUR = datetime.timedelta(hours=1)
UNTRUSTED = 60
REFUSED = {35, 52, 55, 56, UNTRUSTED}
"""Exit codes of curl: no handshake, no answer, or cut off while it sent or read."""


class Got(NamedTuple):
    """What curl has seen; `status` is 0 without an answer."""

    exit: int
    status: int
    body: bytes
    said: str


REFUSED_HANDSHAKES = 'status_aggregator_tls_failures_total{reason="certificate"}'


class Site(NamedTuple):
    """An aggregator whose run is over, and a certificate of every kind."""

    aggregator: Guarded
    pairs: dict[str, Pair | None]
    folder: Path

    def ask(self, path: str, who: str, *more: str, ca: Path | None = None) -> Got:
        """Ask with the certificate of somebody."""
        command = ["curl", "--silent", "--show-error", "--noproxy", "*", *more]
        command += ["--max-time", str(BOUND), "--cacert", str(ca or self.aggregator.tls / "ca.pem")]
        if pair := self.pairs[who]:
            for name, content in (("cert", pair.certificate), ("key", pair.key)):
                (self.folder / f"{who}.{name}").write_bytes(content)
                command += [f"--{name}", str(self.folder / f"{who}.{name}")]
        command += ["--write-out", "%{stderr}%{http_code}", self.aggregator.status_url + path]
        done = subprocess.run(command, capture_output=True, timeout=2 * BOUND, check=False)
        said = done.stderr.decode().strip()
        return Got(done.returncode, int(said[-3:]), done.stdout, said[:-3])

    def refused(self) -> float:
        """How many were refused for their certificate."""
        return self.aggregator.metrics()[REFUSED_HANDSHAKES]


def pair_of(folder: Path, name: str) -> Pair:
    """Read a certificate and its key."""
    return Pair((folder / f"{name}.crt").read_bytes(), (folder / f"{name}.key").read_bytes())


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Readers are those with `client.crt`, and those of an operator's CA."""
    if shutil.which("curl") is None:
        reason = "there is no curl: tests/bed/setup.sh installs it"
        if os.environ.get("REQUIRE_CLUSTER") == "1":
            pytest.fail(f"REQUIRE_CLUSTER=1, but {reason}", pytrace=False)
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("site")
    own = certs.Authority("an operator")
    make_certificates(folder / "another", 8081)
    with Guarded(
        folder / "run", plan("e2e", []), "--hold-seconds", "0", also=own.certificate
    ) as running:
        pairs = {
            "client": pair_of(running.tls, "client"),
            "of the operator": own.pair("reader", "reader"),
            "nobody": None,
            "of a stranger": certs.stranger().pair("reader", "reader"),
            "made anew": pair_of(folder / "another", "client"),
            "worker": pair_of(running.certificates, "e2e"),
            "server": pair_of(running.tls, "server"),
            "expired": own.pair("reader", "reader", start=-2 * HOUR, end=-HOUR / 60),
            "not yet valid": own.pair("reader", "reader", start=HOUR, end=2 * HOUR),
        }
        assert 200 == running.worker("e2e").put("global/e2e", b"data").status
        running.wait_status(lambda found: found["final"])
        yield Site(running, pairs, folder)


def test_a_run_goes_on_without_the_certificate(tmp_path: Path) -> None:
    """A Pod that replaces another finds it gone: workers do not need it, and results are kept."""
    with Guarded(tmp_path / "run", plan("e2e", []), "--hold-seconds", "0") as running:
        running.kill()
        running.tls.rename(tmp_path / "gone")
        running.trust_anybody()
        running.start()
        assert 200 == running.worker("e2e").put("global/e2e", b"data").status
        assert "complete" == running.wait_status(lambda found: found["final"])["status"]
        (said,) = running.said(
            "The status listener's certificate is missing: status and results can only be read "
            "through a port-forward"
        )
        assert "No such file or directory" in said["error"]
        running.kill()
        shutil.rmtree(running.state)
        running.launch()
        assert 1 == running.wait_end()  # nothing has begun: it is a mistake


@pytest.mark.parametrize("version", ["1.2", "1.3"])
@pytest.mark.parametrize("who", ["client", "of the operator"])
@pytest.mark.parametrize("path", [*RUN_DATA, *PROBES])
def test_the_right_certificate(site: Site, path: str, who: str, version: str) -> None:
    """Everything is answered: that of `status-aggregator certs`, and that of one's own CA."""
    got = site.ask(path, who, "--tls-max", version)

    assert (0, 200, "") == (got.exit, got.status, got.said)
    assert got.body


def test_what_is_read_with_it(site: Site) -> None:
    """The status, the results as announced, the page."""
    status = json.loads(site.ask("/status", "client").body)
    results = site.ask("/results", "client").body
    page = site.ask("/", "client").body

    assert ("complete", True) == (status["status"], status["final"])
    assert status["tar-info"]["sha256"] == hashlib.sha256(results).hexdigest()
    assert b"<!doctype html>" in page.lower()


@pytest.mark.parametrize("path", RUN_DATA)
def test_no_certificate(site: Site, path: str) -> None:
    """Refused with the reason, whatever is asked for; no byte of the run is shown."""
    got = site.ask(path, "nobody", "--header", "Host: status.example")

    assert (0, 403, "") == (got.exit, got.status, got.said)
    assert b"if client certificates are enabled" in got.body


@pytest.mark.parametrize("path", RUN_DATA)
def test_no_certificate_through_a_port_forward(site: Site, path: str) -> None:
    """Whoever may make one is let in: it comes from this host, and asks for it."""
    assert 200 == site.ask(path, "nobody").status


@pytest.mark.parametrize("path", PROBES)
def test_probes_need_none(site: Site, path: str) -> None:
    """The kubelet and Prometheus have no certificate to show."""
    assert 200 == site.ask(path, "nobody").status


@pytest.mark.parametrize("version", ["1.2", "1.3"])
@pytest.mark.parametrize(
    ("who", "reason"),
    [
        ("of a stranger", "unknown ca"),
        ("made anew", "unknown ca"),
        ("worker", "unknown ca"),
        ("server", "unsupported certificate"),
        ("expired", "certificate expired"),
        ("not yet valid", "bad certificate"),
    ],
)
def test_the_wrong_certificate(site: Site, who: str, reason: str, version: str) -> None:
    """It is worse than none: no handshake, no answer but the reason, and each one is counted."""
    before = site.refused()
    answers = [site.ask(path, who, "--tls-max", version) for path in (*RUN_DATA, *PROBES)]

    for got in answers:
        assert (0, b"") == (got.status, got.body)
        assert got.exit in REFUSED, got.said
        # curl has an exit code of its own for an alert of that name in a handshake.
        assert f"alert {reason}" in got.said or (got.exit, who) == (UNTRUSTED, "expired")
    site.aggregator.wait_metrics({REFUSED_HANDSHAKES: before + len(answers)})


def test_another_server(site: Site) -> None:
    """Who does not know our CA sends nothing."""
    got = site.ask("/status", "client", ca=site.folder / "another" / "ca.pem")

    assert (UNTRUSTED, 0, b"") == got[:3]
