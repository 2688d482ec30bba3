"""The whole aggregator as a process: its life, its log, what survives it, how it ends."""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import shutil
import signal
import socket
import ssl
import stat
import subprocess
import tarfile
import time
from base64 import b64encode
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from datetime import datetime
from pathlib import Path

import pytest

from tests.fakekube import FakeKube, make_job, make_pod
from tests.integration.aggregator_http import certs
from tests.integration.aggregator_process import (
    BOUND,
    KEYS,
    PLAN,
    Aggregator,
    Reply,
    Site,
    ask,
    site,
)


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Site]:
    """A folder with the usual plan: e2e once, sysd on two nodes."""
    with site(tmp_path) as found:
        yield found


def digest(body: bytes) -> str:
    """The value of Result-Digest."""
    return f"sha-256=:{b64encode(hashlib.sha256(body).digest()).decode()}:"


def closed(port: int) -> bool:
    """Whether nobody listens there."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=BOUND).close()
    except OSError:
        return True
    return False


def moment(event: dict) -> datetime:
    """When something was logged."""
    return datetime.fromisoformat(event["time"])


def wait(wanted) -> None:
    """Wait until something is true."""
    end = time.monotonic() + BOUND
    while not wanted():
        assert time.monotonic() < end
        time.sleep(0.02)


def block_tarball(running) -> list[Path]:
    """Put a directory where the tarball will be, which has the minute of the run's start."""
    blocked = []
    for event in ("Aggregator started", "Run begins"):
        minute = datetime.fromisoformat(running.wait_log(event)["time"]).strftime("%Y%m%d%H%M")
        blocked.append(running.folder / "out" / f"{minute}_sonobuoy_run-1.tar.gz")
        blocked[-1].mkdir(exist_ok=True)
    return sorted(set(blocked))


class TestRun:
    """A run from its start to its tarball."""

    def test_whole_run(self, here):
        """Uploads, progress, status, tarball: everything a user sees, and the log of it."""
        running = here.start().ready()
        assert Reply(200, b"ok\n", {})[:2] == running.get("/readyz")[:2]
        assert "running" == running.status()["status"]
        assert 200 == running.progress("global/e2e", msg="half", total=4, completed=2).status
        assert 200 == running.worker("GET", "health/global/e2e").status
        shown = running.entries()["e2e/global"]
        assert ("half", 2) == (shown["progress"]["msg"], shown["progress"]["completed"])
        for key in KEYS:
            assert 200 == running.upload(key, key.encode()).status
        done = running.wait_status(lambda found: found["final"])

        assert ("complete", 1.0) == (done["status"], done["percent_complete"])
        tarball = here.folder / "out" / done["tar-info"]["name"]
        assert hashlib.sha256(tarball.read_bytes()).hexdigest() == done["tar-info"]["sha256"]
        assert tarball.stat().st_size == done["tar-info"]["size"]
        with tarfile.open(tarball) as packed:
            files = {m.name: packed.extractfile(m).read() for m in packed if m.isfile()}
        assert {
            "plugins/e2e/results/global/result": b"global/e2e",
            "plugins/sysd/results/node1/result": b"by-node/node1/sysd",
            "plugins/sysd/results/node2/result": b"by-node/node2/sysd",
        } == files
        assert 409 == running.upload("global/e2e").status
        assert 410 == running.progress("global/e2e", msg="late").status

        assert (0, "") == running.end(signal.SIGTERM)
        assert [
            "Aggregator started",
            "Status is served",
            "Run begins",
            "Certificates made",
            "Workers are served",
            "Result stored",
            "Result stored",
            "Result stored",
            "Run closed: the set of results is final",
            "Run finished",
            "Aggregator stops",
            "Aggregator ended",
        ] == [event["message"] for event in running.events]
        assert len(running.lines) == len(running.events)
        assert {"info"} == {event["level"] for event in running.events}

    def test_exported_files(self, here):
        """ca.pem, and a pair and its worker's file per plugin, for us only; no CA key anywhere."""
        here.start().ready()
        certs = here.folder / "certs"

        names = [f"{name}.{end}" for name in ("e2e", "sysd") for end in ("crt", "json", "key")]
        assert ["ca.pem", *names] == sorted(os.listdir(certs))
        modes = {stat.S_IMODE(path.stat().st_mode) for path in certs.iterdir()}
        assert {0o600} == modes
        assert (certs / "e2e.key").read_text().startswith("-----BEGIN EC PRIVATE KEY-----")
        assert ["server.pem"] == os.listdir(here.folder / "state" / "tls")

    def test_exported_secrets(self, here):
        """Manifests instead of files."""
        here.start(EXPORT_CERTS="", EXPORT_SECRETS="secrets.yaml").ready()

        text = (here.folder / "secrets.yaml").read_text()
        assert 2 == text.count("kubernetes.io/tls")
        assert not (here.folder / "certs").exists()

    def test_flags_win_over_variables(self, here):
        """Every setting is a flag too."""
        (here.folder / "other.json").write_text(json.dumps(PLAN | {"run": "other"}))
        flags = ("--plan", "other.json", "--heartbeat-interval-seconds", "7")
        running = here.start(*flags, HEARTBEAT_INTERVAL_SECONDS="9").ready()

        assert "other" == running.status()["run"]
        assert 7 == running.worker("GET", "health/global/e2e").json["interval_seconds"]

    def test_empty_plan(self, here):
        """A54: complete at once."""
        here.write_plan({"run": "empty", "plugins": []})
        done = here.start().ready().wait_status(lambda found: found["final"])

        assert ("complete", 1.0, []) == (done["status"], done["percent_complete"], done["plugins"])

    def test_wait_ends_with_the_window(self, here):
        """A29: one bad upload and nobody tries again: failed, and the run ends without it."""
        running = here.start(RETRY_WINDOW_SECONDS="1").ready()
        for key in KEYS[1:]:
            running.upload(key)
        bad = running.worker(
            "PUT", "results/global/e2e", b"no gzip", Content_Type="application/gzip"
        )
        assert 500 == bad.status
        done = running.wait_status(lambda found: found["final"])

        assert "failed" == done["status"]
        assert "upload_failed" == running.entries()["e2e/global"]["error"]["cause"]

    def test_bad_archive_again_and_again(self, here):
        """A30: each try is answered, and so is everything else."""
        here.write_plan(PLAN | {"plugins": [{"name": "e2e"}]})
        running = here.start().ready()
        for number in range(10):
            bad = running.worker(
                "PUT", "results/global/e2e", b"no gzip", Content_Type="application/gzip"
            )
            assert 500 == bad.status
            assert 200 == running.progress("global/e2e", msg=str(number)).status
            assert number + 1 == running.entries()["e2e/global"]["attempts"]

        assert "running" == running.status()["status"]
        assert 200 == running.upload("global/e2e").status

    def test_result_after_the_deadline(self, here):
        """A31: the error is in the tree until the result replaces it, and is kept beside."""
        plugins = [{"name": "e2e", "timeout_seconds": 1}, {"name": "sysd", "nodes": ["node1"]}]
        here.write_plan(PLAN | {"plugins": plugins})
        running = here.start().ready()
        running.wait_log("Result given up")
        out = here.folder / "out"
        error = out / "plugins" / "e2e" / "errors" / "global" / "error.json"
        wait(error.exists)
        found = json.loads(error.read_text())
        assert found["error"].startswith("Plugin timeout while waiting for results")
        assert ("failed", False) == (running.status()["status"], running.status()["final"])

        assert 200 == running.upload("global/e2e", b"late").status
        entry = running.entries()["e2e/global"]
        assert ("complete", True) == (entry["status"], entry["late"])
        assert not error.exists()
        assert found == json.loads((out / "superseded/e2e/global/error.json").read_text())
        assert b"late" == (out / "plugins/e2e/results/global/result").read_bytes()
        assert 409 == running.upload("global/e2e").status

    def test_upload_over_its_deadline(self, here):
        """A57: the run is held open by the body that comes, which then counts."""
        plugins = [{"name": "e2e", "timeout_seconds": 1}, {"name": "sysd", "nodes": ["node1"]}]
        here.write_plan(PLAN | {"plugins": plugins})
        running = here.start(HOLD_SECONDS="0").ready()
        assert 200 == running.upload(KEYS[1]).status
        connection = running.connection("e2e")
        connection.putrequest("PUT", "/api/v1/results/global/e2e")
        connection.putheader("Content-Length", "4")
        connection.endheaders(b"la")
        running.wait_log("Result given up")
        assert "timed_out" == running.entries()["e2e/global"]["status"]
        connection.send(b"te")
        with closing(connection):
            assert 200 == connection.getresponse().status

        done = running.wait_status(lambda found: found["final"])
        assert ("complete", True) == (done["status"], done["plugins"][0]["late"])
        messages = [event["message"] for event in running.events]
        stored = len(messages) - 1 - messages[::-1].index("Result stored")
        assert stored < messages.index("Run closed: the set of results is final")

    def test_workers_are_served_for_a_while_after_the_end(self, here):
        """LINGER_SECONDS; the status stays, and so does the process."""
        here.write_plan({"run": "empty", "plugins": []})
        running = here.start(LINGER_SECONDS="0").ready()
        running.wait_log("Workers are no longer served: the run is closed")
        wait(lambda: closed(running.port))

        assert 200 == running.get("/readyz").status
        assert "complete" == running.status()["status"]
        assert (0, "") == running.end(signal.SIGTERM)

    def test_metrics(self, here):
        """What happened is counted; promtool likes it."""
        running = here.start().ready()
        running.upload(KEYS[0])
        running.progress(KEYS[0], msg="m")
        page = running.get("/metrics").body

        assert b'status_aggregator_requests_total{code="200",route="results"} 1.0' in page
        assert b'status_aggregator_entries{plugin="sysd",state="running"} 2.0' in page
        assert b"status_aggregator_store_commit_duration_seconds_count" in page
        promtool = shutil.which("promtool")
        if promtool is not None:
            done = subprocess.run(
                [promtool, "check", "metrics"], input=page, capture_output=True, check=False
            )
            assert (0, b"", b"") == (done.returncode, done.stdout, done.stderr)

    def test_handshakes_that_fail_are_told_once_a_minute(self, here):
        """A19: counted each, logged once per peer."""
        running = here.start().ready()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(here.folder / "certs" / "ca.pem")
        for _ in range(3):
            # With TLS 1.3 the refusal comes after our side of the handshake.
            with (
                suppress(OSError),
                socket.create_connection(("127.0.0.1", running.port), BOUND) as plain,
                context.wrap_socket(plain, server_hostname="127.0.0.1") as nobody,
            ):
                nobody.sendall(b"GET / HTTP/1.1\r\n\r\n")
                assert b"" == nobody.recv(1)

        def failures() -> bytes:
            page = running.get("/metrics").body
            lines = [
                x for x in page.splitlines() if x.startswith(b"status_aggregator_tls_failures")
            ]
            return b"".join(lines)

        wait(lambda: b"} 3.0" in failures())
        assert 1 == len(running.said("TLS handshake failed"))
        assert "127.0.0.1" == running.said("TLS handshake failed")[0]["peer"]

    def test_certificates_near_their_end(self, here):
        """A warning when an hour is left, and the moment is a metric."""
        here.write_plan(PLAN | {"timeout_seconds": 1})
        running = here.start().ready()
        told = running.wait_log("Certificates expire soon or have expired")
        page = running.get("/metrics").body

        assert "warning" == told["level"]
        assert b'status_aggregator_certificate_expiry_timestamp_seconds{certificate="run"}' in page
        assert (0, "") == running.end(signal.SIGTERM)
        assert 1 == len(running.said("Certificates expire soon or have expired"))


class TestStart:
    """What is served while the disk is got in order, which may take minutes."""

    @pytest.fixture
    def stuck(self, here) -> tuple[Aggregator, Path]:
        """A second start, whose recovery waits for what is written into a FIFO."""
        assert (0, "") == here.start().ready().end(signal.SIGTERM)
        fifo = here.folder / "state" / "clean-stop"
        fifo.unlink()
        os.mkfifo(fifo)
        running = here.start()
        running.status_port = running.wait_log("Status is served")["port"]
        return running, fifo

    def test_probes_during_a_long_start(self, stuck):
        """It lives but is not ready, and says nothing of a run that it does not know yet."""
        running, fifo = stuck
        with fifo.open("wb"):  # which waits for the reader
            for path, status in [
                ("/livez", 200),
                ("/healthz", 200),
                ("/readyz?verbose", 503),
                ("/status", 503),
                ("/metrics", 503),
            ]:
                assert (path, status) == (path, running.get(path).status)
            assert "1" == running.get("/status").headers["Retry-After"]
            assert [] == running.said("Workers are served")
        running.ready()

        assert running.said("Run goes on")[0]["rebuilt"]
        assert 200 == running.get("/readyz").status
        assert "running" == running.status()["status"]
        assert (0, "") == running.end(signal.SIGTERM)

    def test_sigterm_during_a_long_start(self, stuck):
        """It does not wait for the end of what it may do again."""
        running, fifo = stuck
        with fifo.open("wb"):
            running.process.send_signal(signal.SIGTERM)
            running.get("/livez")
        code, errors = running.end()

        assert (0, "") == (code, errors)
        assert ["Aggregator stops", "Aggregator ended"] == [
            event["message"] for event in running.events[-2:]
        ]
        assert [] == running.said("Workers are served")

    def test_killed_during_a_long_start(self, stuck, here):
        """The next one has everything to do, and does it."""
        running, fifo = stuck
        with fifo.open("wb"):
            running.end(signal.SIGKILL)
        fifo.unlink(missing_ok=True)

        assert here.start().ready().said("Run goes on")[0]["rebuilt"]


class TestOperatorsCa:
    """WORKER_CA: certificates that somebody else has made, with the plugin as their DNS name."""

    @pytest.fixture
    def running(self, here) -> Aggregator:
        """An aggregator that knows the operator's CA, and clients of it."""
        operator, stranger = certs.Authority.make("operator"), certs.Authority.make("stranger")
        (here.folder / "operator.pem").write_bytes("# Szolgáltató\n".encode() + operator.pem)
        running = here.start(WORKER_CA="operator.pem").ready()
        assert ["ca.pem"] == os.listdir(here.folder / "certs")
        for name, pair in {
            "e2e": operator.issue("whoever", "e2e"),
            "sysd": operator.issue("e2e", "sysd"),
            "both": operator.issue("e2e", "e2e", "sysd"),
            "address": operator.issue("e2e", "ip:127.0.0.1"),
            "other-run": operator.issue("e2e", "uri:urn:status-aggregator:run-0:e2e:global", "e2e"),
            "stranger": stranger.issue("e2e", "e2e"),
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


class TestStop:
    """How it ends."""

    def test_second_start(self, here):
        """Everything is there again, workers trust it still, nothing is exported."""
        running = here.start().ready()
        running.upload(KEYS[1], b"one")
        running.progress("global/e2e", msg="m", total=3, completed=1)
        before = running.entries()
        assert (0, "") == running.end(signal.SIGTERM)
        exported = {path: path.stat().st_mtime_ns for path in (here.folder / "certs").iterdir()}

        again = here.start(LISTEN=f"127.0.0.1:{running.port}").ready()
        assert before == again.entries()
        held = again.upload(KEYS[1], b"two")
        assert (409, digest(b"one")) == (held.status, held.headers["Result-Digest"])
        assert 200 == again.upload(KEYS[2]).status
        assert exported == {
            path: path.stat().st_mtime_ns for path in (here.folder / "certs").iterdir()
        }
        assert 1 == len(again.said("Certificates of this run are kept, nothing is exported"))
        (resumed,) = again.said("Run goes on")
        assert (False, "running") == (resumed["rebuilt"], resumed["phase"])

    def test_kill(self, here):
        """After kill -9 a start needs nobody's help and has what was acknowledged."""
        running = here.start().ready()
        first = running.upload(KEYS[0], b"one")
        running.progress("by-node/node1/sysd", appendtotals=True, appendcompleted=4)
        running.end(signal.SIGKILL)

        again = here.start().ready()
        held = again.upload(KEYS[0], b"two")
        assert (200, 409) == (first.status, held.status)
        assert digest(b"one") == first.headers["Result-Digest"] == held.headers["Result-Digest"]
        path = here.folder / "out" / "plugins" / "e2e" / "results" / "global" / "result"
        assert b"one" == path.read_bytes()
        assert 4 == again.entries()["sysd/node1"]["progress"]["completed"]
        assert again.said("Run goes on")[0]["rebuilt"]

    def test_kill_after_the_end(self, here):
        """The tarball, its digest and the final status are the same."""
        running = here.start().ready()
        for key in KEYS:
            running.upload(key)
        done = running.wait_status(lambda found: found["final"])
        running.end(signal.SIGKILL)
        again = here.start().ready().status()

        assert done["tar-info"] == again["tar-info"]
        assert ("complete", True) == (again["status"], again["final"])

    def test_tarball_that_cannot_be_made(self, here):
        """F29: the run says why and all bytes stay; it is made as soon as the cause is gone."""
        running = here.start().ready()
        blocked = block_tarball(running)
        for key in KEYS:
            running.upload(key, key.encode())
        failed = running.wait_status(lambda found: found["error"] is not None)
        assert ("failed", False, None) == (failed["status"], failed["final"], failed["tar-info"])
        assert {"complete"} == {entry["status"] for entry in failed["plugins"]}
        blobs = {path.read_bytes() for path in (here.folder / "state" / "blobs").iterdir()}
        assert {key.encode() for key in KEYS} == blobs

        for path in blocked:
            path.rmdir()
        done = running.wait_status(lambda found: found["final"])
        assert ("complete", None) == (done["status"], done["error"])
        assert (here.folder / "out" / done["tar-info"]["name"]).is_file()

    def test_packing_that_was_given_up(self, here):
        """Final is final, over restarts too; --package-again packs it once more."""
        running = here.start(PACKAGE_GIVE_UP_SECONDS="0").ready()
        blocked = block_tarball(running)
        for key in KEYS:
            running.upload(key, key.encode())
        given_up = running.wait_status(lambda found: found["final"])
        assert ("failed", None) == (given_up["status"], given_up["tar-info"])
        for path in blocked:
            path.rmdir()
        running.end(signal.SIGKILL)

        again = here.start().ready()
        again.wait_log("Run goes on")
        same = ("status", "final", "error", "tar-info")
        assert [given_up[name] for name in same] == [again.status()[name] for name in same]
        blobs = {path.read_bytes() for path in (here.folder / "state" / "blobs").iterdir()}
        assert {key.encode() for key in KEYS} == blobs
        assert (0, "") == again.end(signal.SIGTERM)

        third = here.start("--package-again").ready()
        done = third.wait_status(lambda found: found["final"])
        assert ("complete", None) == (done["status"], done["error"])
        assert (here.folder / "out" / done["tar-info"]["name"]).is_file()

    def test_upload_on_its_way(self, here):
        """SIGTERM waits a little for uploads, not for ever; nothing of a torn one stays."""
        running = here.start().ready()
        connection = running.connection("e2e")
        connection.putrequest("PUT", "/api/v1/results/global/e2e")
        connection.putheader("Content-Length", "1000000")
        connection.endheaders(b"begin")
        wait(lambda: b"status_aggregator_uploads 1.0" in running.get("/metrics").body)
        began = time.monotonic()
        try:
            assert (0, "") == running.end(signal.SIGTERM)
        finally:
            connection.close()
        assert 25.0 > time.monotonic() - began
        assert [] == os.listdir(here.folder / "state" / "staging")

        again = here.start().ready()
        assert "running" == again.entries()["e2e/global"]["status"]
        assert 200 == again.upload(KEYS[0]).status

    def test_upload_that_ends_in_time(self, here):
        """One that is whole within the grace is stored, answered and told."""
        running = here.start().ready()
        with closing(running.connection("e2e")) as connection:
            connection.putrequest("PUT", "/api/v1/results/global/e2e")
            connection.putheader("Content-Length", "4")
            connection.endheaders(b"la")
            wait(lambda: b"status_aggregator_uploads 1.0" in running.get("/metrics").body)
            running.process.send_signal(signal.SIGTERM)
            running.wait_log("Aggregator stops")
            connection.send(b"te")
            assert 200 == connection.getresponse().status
        assert (0, "") == running.end()

        assert ["e2e/global"] == [event["key"] for event in running.said("Result stored")]
        assert "complete" == here.start().ready().entries()["e2e/global"]["status"]

    def test_uploads_race_with_it(self, here):
        """What was answered with 200 is there afterwards, bytes and tree; others may try again."""
        nodes = [f"node{number}" for number in range(24)]
        here.write_plan(PLAN | {"plugins": [{"name": "sysd", "nodes": nodes}, {"name": "e2e"}]})
        running, answers = here.start().ready(), {}

        def upload(node: str) -> None:
            with suppress(OSError, http.client.HTTPException):
                answers[node] = running.upload(f"by-node/{node}/sysd", node.encode()).status

        def early() -> None:
            for node in nodes[:3]:
                upload(node)
            running.process.send_signal(signal.SIGTERM)

        with ThreadPoolExecutor(8) as pool:
            for work in [pool.submit(early), *(pool.submit(upload, node) for node in nodes[3:])]:
                work.result(BOUND)
        assert (0, "") == running.end()
        stored = {node for node, status in answers.items() if status == 200}
        assert set(nodes[:3]) <= stored

        again = here.start().ready()
        assert not again.said("Run goes on")[0]["rebuilt"]
        entries = again.entries()
        results = here.folder / "out" / "plugins" / "sysd" / "results"
        for node in nodes:
            if node in stored:
                assert "complete" == entries[f"sysd/{node}"]["status"]
                assert node.encode() == (results / node / "result").read_bytes()
            else:
                assert again.upload(f"by-node/{node}/sysd").status in (200, 409)

    def test_sigterm_while_it_starts(self, here):
        """A signal during the imports is not lost."""
        running = here.start()
        running.wait_log("Aggregator started")

        assert (0, "") == running.end(signal.SIGTERM)

    @pytest.mark.parametrize("busy", [False, True])
    def test_listener_dies(self, here, busy):
        """F14: probes see it, and the process ends by itself within 5 s, stalled uploads or not."""
        (here.folder / "port").touch()
        running = here.start(CLOSE_PORT="port").ready()
        (here.folder / "port").write_text(str(running.port))
        with closing(running.connection("e2e")) as connection:
            if busy:
                connection.putrequest("PUT", "/api/v1/results/global/e2e")
                connection.putheader("Content-Length", "1000000")
                connection.endheaders(b"begin")
                wait(lambda: b"status_aggregator_uploads 1.0" in running.get("/metrics").body)
            self.let_it_die(running)

    def let_it_die(self, running: Aggregator) -> None:
        """Close its listener and see what comes of it."""
        running.process.send_signal(signal.SIGUSR1)
        wait(lambda: running.get("/readyz").status == 503)
        assert b"[-]worker-listener" in running.get("/readyz").body
        code, errors = running.end()

        assert (1, "") == (code, errors)
        (noticed,) = running.said("Workers can no longer connect: restart required")
        assert "critical" == noticed["level"]
        # Half of it; an upload that stops is given more time where nothing is wrong.
        spent = moment(running.events[-1]) - moment(noticed)
        assert 7 > spent.total_seconds()


class TestInACluster:
    """With a Pod to write on."""

    def test_annotation(self, here):
        """The run's status comes to the Pod, its end included."""
        with FakeKube() as fake:
            fake.create_pod(make_pod(make_job(), name="aggregator-0"))
            fake.write_token(fake.token("aggregator"))
            running = here.start(
                POD_NAMESPACE="default",
                POD_NAME="aggregator-0",
                SERVER=fake.server,
                CA_FILE=fake.ca_file,
                TOKEN_FILE=fake.token_file,
            ).ready()

            def noted() -> dict:
                annotations = fake.pod("aggregator-0")["metadata"].get("annotations", {})
                return json.loads(annotations.get("sonobuoy.hept.io/status", "{}"))

            wait(lambda: noted().get("status") == "running")
            for key in KEYS:
                running.upload(key)
            wait(lambda: noted().get("status") == "complete")
            assert running.status()["tar-info"] == noted()["tar-info"]
            assert (0, "") == running.end(signal.SIGTERM)
