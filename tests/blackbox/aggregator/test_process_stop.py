"""The whole aggregator as a process: kills, SIGTERM, and what survives them."""

from __future__ import annotations

import hashlib
import http.client
import os
import signal
import time
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from datetime import datetime
from pathlib import Path

import pytest

from tests.blackbox.aggregator.process import (
    BOUND,
    KEYS,
    PLAN,
    Aggregator,
    wait,
)


def digest(body: bytes) -> str:
    """The value of Result-Digest."""
    return f"sha-256=:{b64encode(hashlib.sha256(body).digest()).decode()}:"


def moment(event: dict) -> datetime:
    """When something was logged."""
    return datetime.fromisoformat(event["time"])


def block_tarball(running) -> Path:
    """Put a directory where the tarball is noted before it gets its name."""
    blocked: Path = running.folder / "state" / "tarball.json"
    blocked.mkdir()
    return blocked


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
        assert 1 == len(
            again.said("Existing certificates of this run are used, nothing is exported")
        )
        (resumed,) = again.said("Run resumed")
        assert (0, "running") == (resumed["lost"], resumed["phase"])

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
        assert b"one" == again.get("/results/e2e/global").body
        assert 4 == again.entries()["sysd/node1"]["progress"]["completed"]

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

        blocked.rmdir()
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
        blocked.rmdir()
        running.end(signal.SIGKILL)

        again = here.start().ready()
        again.wait_log("Run resumed")
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
            running.wait_log("Aggregator stopping")
            connection.send(b"te")
            assert 200 == connection.getresponse().status
        assert (0, "") == running.end()

        assert ["e2e/global"] == [event["key"] for event in running.said("Result stored")]
        assert "complete" == here.start().ready().entries()["e2e/global"]["status"]

    # A peer that resets the connection before the handshake: the standard library's own client
    # forgets its socket then, still open (SSLSocket._create).
    @pytest.mark.filterwarnings("ignore:unclosed <ssl.SSLSocket:ResourceWarning")
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
        entries = again.entries()
        for node in nodes:
            if node in stored:
                assert "complete" == entries[f"sysd/{node}"]["status"]
                assert node.encode() == again.get(f"/results/sysd/{node}").body
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
