"""The whole aggregator as a process: a run from its start to its tarball."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import socket
import ssl
import stat
import subprocess
import tarfile
from contextlib import closing, suppress

from tests.archives.tars import OURS
from tests.blackbox.aggregator.process import (
    BOUND,
    KEYS,
    PLAN,
    Reply,
    closed,
    wait,
)
from tests.fakekube import FakeKube, make_job, make_pod


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
            members = {m.name: packed.extractfile(m).read() for m in packed if m.isfile()}
        files = {name: data for name, data in members.items() if not name.endswith(OURS)}
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
            "Status listener ready",
            "Run started",
            "Certificates created",
            "Worker listener ready",
            "Result stored",
            "Result stored",
            "Result stored",
            "Run closed: the set of results is final",
            "Run finished",
            "Aggregator stopping",
            "Aggregator ended",
        ] == [event["message"] for event in running.events]
        assert running.events[:9] == list(map(json.loads, members["meta/run.log"].splitlines()))
        kept = json.loads(members["meta/plan.json"])
        assert PLAN["run"] == kept["run"]
        assert PLAN["plugins"] == [
            {name: plugin[name] for name in ("name", "nodes") if plugin.get(name)}
            for plugin in kept["plugins"]
        ]
        assert len(running.lines) == len(running.events)
        assert {"info"} == {event["level"] for event in running.events}

    def test_a_bit_of_a_stored_result_flips(self, here):
        """That entry is lost and says so before the run is over; the others are in the tarball."""
        running = here.start().ready()
        for key in KEYS[1:]:
            assert 200 == running.upload(key, key.encode()).status
        digest = running.entries()["sysd/node1"]["digest"]
        (blob,) = (here.folder / "state" / "blobs").glob(f"{digest}-*")
        blob.write_bytes(bytes([blob.read_bytes()[0] ^ 1]) + blob.read_bytes()[1:])
        assert 200 == running.upload(KEYS[0], b"sound").status
        done = running.wait_status(lambda found: found["final"])

        lost = {entry["key"]: entry for entry in done["plugins"]}["sysd/node1"]
        why = "the stored result is missing or does not match its SHA-256"
        assert ("failed", "failed") == (done["status"], done["result_status"])
        assert ("failed", "failed", "lost", why) == (
            lost["status"],
            lost["result_status"],
            lost["error"]["cause"],
            lost["error"]["text"],
        )
        with tarfile.open(here.folder / "out" / done["tar-info"]["name"]) as packed:
            members = {m.name: packed.extractfile(m).read() for m in packed if m.isfile()}
        error = {"error": why, "cause": "lost"}
        assert (b"sound", b"by-node/node2/sysd", error) == (
            members["plugins/e2e/results/global/result"],
            members["plugins/sysd/results/node2/result"],
            json.loads(members["plugins/sysd/errors/node1/error.json"]),
        )
        assert "plugins/sysd/results/node1/result" not in members
        assert error == running.get("/results/sysd/node1").json
        assert 410 == running.upload("by-node/node1/sysd").status

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
        """A31: the error is told until the result replaces it; the tarball keeps it beside."""
        plugins = [{"name": "e2e", "timeout_seconds": 1}, {"name": "sysd", "nodes": ["node1"]}]
        here.write_plan(PLAN | {"plugins": plugins})
        running = here.start().ready()
        running.wait_log("Result given up")
        told = running.get("/results/e2e/global")
        assert "error" == told.headers["Result-Outcome"]
        found = told.json
        assert found["error"].startswith("Plugin timeout while waiting for results")
        assert ("failed", False) == (running.status()["status"], running.status()["final"])

        assert 200 == running.upload("global/e2e", b"late").status
        entry = running.entries()["e2e/global"]
        assert ("complete", True) == (entry["status"], entry["late"])
        assert b"late" == running.get("/results/e2e/global").body
        assert 409 == running.upload("global/e2e").status
        assert 200 == running.upload("by-node/node1/sysd").status
        name = running.wait_status(lambda status: status["final"])["tar-info"]["name"]
        with tarfile.open(here.folder / "out" / name) as packed:
            kept = packed.extractfile("superseded/e2e/global/error.json")
            assert kept is not None
            assert found == json.load(kept)

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
        running.wait_log("Worker listener closed: the run is closed")
        wait(lambda: closed(running.port))

        assert 200 == running.get("/readyz").status
        assert "complete" == running.status()["status"]
        assert (0, "") == running.end(signal.SIGTERM)

    def test_a_run_without_plugins_has_checked_nothing(self, here):
        """Who looks at the exit code alone must not take it for a pass."""
        here.write_plan({"run": "empty", "plugins": []})

        assert (1, "") == here.start(EXIT_WHEN_FINISHED="true").end()

    def test_metrics(self, here):
        """What happened is counted; promtool likes it."""
        running = here.start().ready()
        running.upload(KEYS[0])
        running.progress(KEYS[0], msg="m")
        taken = b'status_aggregator_requests_total{code="200",route="results"} 1.0'
        wait(lambda: taken in running.get("/metrics").body)
        page = running.get("/metrics").body

        assert b'status_aggregator_entries{plugin="sysd",state="running"} 2.0' in page
        assert b"status_aggregator_store_commit_duration_seconds_count" in page
        promtool = shutil.which("promtool")
        if promtool is not None:
            done = subprocess.run(
                [promtool, "check", "metrics"], input=page, capture_output=True, check=False
            )
            assert (0, b"", b"") == (done.returncode, done.stdout, done.stderr)

    def test_metrics_name_no_node(self, here):
        """They are for everybody, whatever the Host: no failed result and no heartbeat is named."""
        running = here.start().ready()
        failed = b'{"status":"failure","reason":"OnNode1","message":"node1"}'
        ours = {"Result-Format": "status-reporter.io/adapter-result.v1"}
        assert 200 == running.worker("PUT", f"results/{KEYS[1]}", failed, **ours).status
        assert 200 == running.worker("GET", "health/by-node/node2/sysd").status
        running.wait_status(lambda found: found["counts"]["failed"])
        page = running.get("/metrics", Host="evil.example")

        assert (200, 403) == (page.status, running.get("/status", Host="evil.example").status)
        assert b'status_aggregator_results{plugin="sysd",result="failed"} 1.0' in page.body
        assert b'status_aggregator_last_heartbeat_age_seconds{plugin="sysd"}' in page.body
        assert b"node1" not in page.body.lower()
        assert b"node2" not in page.body

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
        assert "127.0.0.1" == running.wait_log("TLS handshake failed")["peer"]
        running.end(signal.SIGTERM)
        assert 1 == len(running.said("TLS handshake failed"))

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


class TestInACluster:
    """With a Pod to write on."""

    def test_annotation(self, here):
        """The run's status comes to the Pod, its end included."""
        with FakeKube(role="aggregator") as fake:
            fake.create_pod(make_pod(make_job(), name="aggregator-0"))
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
