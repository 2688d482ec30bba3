"""The whole aggregator as a process: a long start, and clients with an operator's CA."""

from __future__ import annotations

import http.client
import os
import signal
from pathlib import Path

import pytest

from tests.aggregators import run_certificates as certs
from tests.blackbox.aggregator.process import (
    Aggregator,
    Reply,
    ask,
)


class TestStart:
    """What is served while the disk is got in order, which may take minutes."""

    @pytest.fixture
    def stuck(self, here) -> tuple[Aggregator, Path, Path]:
        """A second start, whose certificates wait for what is written into a FIFO."""
        assert (0, "") == here.start().ready().end(signal.SIGTERM)
        (fifo,) = (here.folder / "state" / "tls").iterdir()
        kept = fifo.rename(here.folder / "kept")
        os.mkfifo(fifo)
        running = here.start()
        running.status_port = running.wait_log("Status listener ready")["port"]
        return running, fifo, kept

    def test_probes_during_a_long_start(self, stuck):
        """It lives but is not ready, and says nothing of a run that it does not know yet."""
        running, fifo, kept = stuck
        with fifo.open("wb") as writer:  # which waits for the reader
            for path, status in [
                ("/livez", 200),
                ("/healthz", 200),
                ("/readyz?verbose", 503),
                ("/status", 503),
                ("/metrics", 503),
            ]:
                assert (path, status) == (path, running.get(path).status)
            assert "1" == running.get("/status").headers["Retry-After"]
            assert [] == running.said("Worker listener ready")
            writer.write(kept.read_bytes())
        running.ready()

        assert 200 == running.get("/readyz").status
        assert "running" == running.status()["status"]
        assert (0, "") == running.end(signal.SIGTERM)

    def test_sigterm_during_a_long_start(self, stuck):
        """It does not wait for the end of what it may do again."""
        running, fifo, _ = stuck
        with fifo.open("wb"):
            running.process.send_signal(signal.SIGTERM)
            running.wait_log("Aggregator stopping")
        code, errors = running.end()

        assert (0, "") == (code, errors)
        assert ["Aggregator stopping", "Aggregator ended"] == [
            event["message"] for event in running.events[-2:]
        ]
        assert [] == running.said("Worker listener ready")

    def test_killed_during_a_long_start(self, stuck, here):
        """The next one has everything to do, and does it."""
        running, fifo, kept = stuck
        with fifo.open("wb"):
            running.end(signal.SIGKILL)
        kept.replace(fifo)

        assert "running" == here.start().ready().said("Run resumed")[0]["phase"]


class TestOperatorsCa:
    """WORKER_CA: certificates that somebody else has made, with the plugin as their DNS name."""

    @pytest.fixture
    def running(self, here) -> Aggregator:
        """An aggregator that knows the operator's CA, and clients of it."""
        operator, stranger = certs.Authority("operator"), certs.Authority("stranger")
        (here.folder / "operator.pem").write_bytes(
            "# Szolgáltató\n".encode() + operator.certificate
        )
        running = here.start(WORKER_CA="operator.pem").ready()
        assert ["ca.pem"] == os.listdir(here.folder / "certs")
        for name, pair in {
            "e2e": operator.pair("whoever", "e2e"),
            "sysd": operator.pair("e2e", "sysd"),
            "both": operator.pair("e2e", "e2e", "sysd"),
            "address": operator.pair("e2e", "127.0.0.1"),
            "other-run": operator.pair("e2e", "urn:status-aggregator:run-0:e2e:global", "e2e"),
            "stranger": stranger.pair("e2e", "e2e"),
        }.items():
            (here.folder / "certs" / f"{name}.crt").write_bytes(pair.certificate)
            (here.folder / "certs" / f"{name}.key").write_bytes(pair.key)
        return running

    def put(self, running: Aggregator, client: str, key: str) -> Reply:
        """Deliver a result with one of the certificates."""
        return ask(running.connection(client), "PUT", f"/api/v1/results/{key}", b"result")

    def test_the_name_is_the_plugin(self, running):
        """Any node of it; the common name does not count."""
        assert 200 == self.put(running, "e2e", "global/e2e").status
        assert 200 == self.put(running, "sysd", "by-node/node1/sysd").status
        assert 200 == self.put(running, "sysd", "by-node/node2/sysd").status

        done = running.wait_status(lambda found: found["final"])
        assert "complete" == done["status"]

    @pytest.mark.parametrize("client", ["sysd", "both", "address", "other-run"])
    def test_other_names(self, running, client):
        """Another plugin's, two, no DNS name at all, and the URI of another run."""
        refused = self.put(running, client, "global/e2e")

        text = b"result e2e/global not permitted for this client certificate\n"
        assert (403, text) == refused[:2]

    def test_another_ca(self, running):
        """Not even the run's own CA has clients then; a stranger's fail in the handshake."""
        with pytest.raises((OSError, http.client.HTTPException)):
            self.put(running, "stranger", "global/e2e")

        assert "certificate" == running.wait_log("TLS handshake failed")["reason"]
        assert 200 == self.put(running, "e2e", "global/e2e").status

    @pytest.mark.parametrize("content", [None, b"", b"no certificate", b"\xff\n"])
    def test_file_that_is_none(self, here, content):
        """One line that names the file, and no start."""
        if content is not None:
            (here.folder / "operator.pem").write_bytes(content)
        running = here.start(WORKER_CA="operator.pem")

        assert (1, "") == running.end()
        assert "Aggregator cannot run" == running.events[-1]["message"]
        assert "operator.pem" in running.events[-1]["error"]
