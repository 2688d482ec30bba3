"""A whole aggregator that uploads its tarball: before the run, at its end, and killed meanwhile."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.aggregators.bucket import SIGNATURE, Bucket
from tests.aggregators.served import Aggregator, plan
from tests.blackbox.aggregator.starting import Start
from tests.scripted_server import Say, Silence


@pytest.fixture
def bucket(tmp_path: Path) -> Iterator[Bucket]:
    """A store that takes everything."""
    with Bucket(tmp_path) as bucket:
        yield bucket


def words(aggregator: Aggregator) -> str:
    """Everything that the process shows of itself, its arguments and environment too, and keeps."""
    process = Path(f"/proc/{aggregator.pid}")
    shown = [(process / name).read_text() for name in ("cmdline", "environ")]
    page = [aggregator.ask(path).decode() for path in ("/status", "/metrics")]
    kept = (aggregator.state / "run.log").read_text()
    return "".join([*shown, *page, kept, json.dumps(aggregator.events)])


def test_a_restart_without_the_upload_that_was_under_way(start: Start, bucket: Bucket):
    """The tarball is there, nobody wants it uploaded any more, and the run is over."""
    bucket.script(Silence(after=100))
    run = start(*bucket.flags, document=plan("e2e", []))
    run.worker("e2e").put("global/e2e", b"the result")
    bucket.heard(1)
    packed = run.ask("/results")
    run.kill()
    run.flags = ()
    run.start()

    ended = run.wait_status(lambda status: status["final"])
    assert ("complete", "failed") == (ended["status"], ended["upload"]["state"])
    assert packed == run.ask("/results")


def test_an_upload_that_fails_keeps_the_results(start: Start, bucket: Bucket):
    """The run is over, its verdict is its own, and the tarball is still there."""
    bucket.script(Say(403, b"<Code>ExpiredToken</Code>"))
    run = start(*bucket.flags, document=plan("e2e", []))
    run.worker("e2e").put("global/e2e", b"the result")
    ended = run.wait_status(lambda status: status["final"])

    assert ("complete", "failed") == (ended["status"], ended["upload"]["state"])
    assert "403 Forbidden (ExpiredToken)" == ended["upload"]["error"]
    assert ended["tar-info"]["size"] == len(run.ask("/results"))
    assert SIGNATURE not in words(run)
    run.kill()
    run.start()
    assert 1 == len(bucket.requests)


ADAPTER = "status-reporter.io/adapter-result.v1"
ENDS = {
    "it has passed": (b'{"status":"success"}', Say(), 0),
    "it has failed": (b'{"status":"failure"}', Say(), 1),
    "it says neither": (b'{"status":"unknown"}', Say(), 1),
    "it cannot be uploaded": (b'{"status":"success"}', Say(403), 1),
}


@pytest.mark.parametrize("case", ENDS)
def test_it_ends_with_the_verdict_once_the_results_are_uploaded(
    case: str, tmp_path: Path, bucket: Bucket
):
    """The exit code is all that a pipeline looks at; without an upload it is a failure."""
    result, act, code = ENDS[case]
    bucket.script(act)
    ends = ("--exit-when-finished", "true")
    with Aggregator(tmp_path / "run", plan("e2e", []), *bucket.flags, *ends) as run:
        worker = run.worker("e2e")
        assert 200 == worker.put("global/e2e", result, **{"Result-Format": ADAPTER}).status
        assert code == run.wait_end()
        assert 1 == len(run.said("Run finished"))
    assert bucket.requests


def test_a_url_that_is_not_there_yet(tmp_path: Path, bucket: Bucket):
    """A Job tries again, as the Secret may come; otherwise it is a mistake like any other."""
    bucket.url_file.unlink()
    for ends, code in {"true": 4, "false": 2}.items():
        flags = (*bucket.flags, "--exit-when-finished", ends)
        run = Aggregator(tmp_path / ends, plan("e2e", []), *flags)
        run.launch()
        assert code == run.wait_end()
        (said,) = run.said("Invalid setting")
        assert f"UPLOAD_URL_FILE: {bucket.url_file}: No such file or directory" == said["problem"]


def test_what_ends_before_the_verdict_is_no_verdict(tmp_path: Path, bucket: Bucket):
    """Evicted, an aggregator must not look like a run that has passed, or has failed."""
    ends = ("--exit-when-finished", "true")
    with Aggregator(tmp_path / "run", plan("e2e", []), *bucket.flags, *ends) as run:
        assert 4 == run.stop()
        run.start()
        run.kill()
        (run.state / "run.db").write_bytes(b"no database" * 1000)
        run.launch()
        assert 4 == run.wait_end()


@pytest.mark.parametrize(
    ("query", "code", "message"),
    [("Signature=x&Expires=1", 2, "Invalid setting"), (SIGNATURE, 1, "Aggregator cannot run")],
)
def test_nothing_begins_with_a_url_that_cannot_work(
    query: str, code: int, message: str, tmp_path: Path
):
    """It has expired, or the certificate is of a stranger; another start is as the first."""
    with Bucket(tmp_path) as bucket, Bucket(tmp_path / "other") as other:
        bucket.point(query)
        run = Aggregator(
            tmp_path / "run",
            plan("e2e", []),
            *("--upload-url-file", str(bucket.url_file), "--upload-ca", str(other.ca)),
        )
        for _ in range(2):
            run.launch()
            assert code == run.wait_end()
        assert 2 == len(run.said(message))
        assert not (run.state / "run.db").exists()
        assert SIGNATURE not in json.dumps(run.events)


def pick(run: Aggregator) -> tuple[str, str]:
    """What is said of the upload."""
    upload = run.status()["upload"]
    return upload["host"], upload["state"]


def test_what_workers_say_of_themselves(start: Start) -> None:
    """It is in the status, after a kill too, and in the tarball; who says nothing is not in it."""
    run = start("--hold-seconds", "0", document=plan("sysd", ["node1", "node2"]))
    kept = {"version": "1.4", "note": "\ufffd"}
    told = {"Result-Metadata": json.dumps({"version": "1.4", "note": "\x00\ud800"})}
    run.worker("sysd").put("by-node/node1/sysd", b"data", **told)
    run.kill()
    run.start()
    assert kept == run.entry("sysd/node1")["metadata"]
    assert run.entry("sysd/node2")["metadata"] is None
    run.worker("sysd").put("by-node/node2/sysd", b"data")
    run.wait_status(lambda found: found["final"])
    with tarfile.open(fileobj=io.BytesIO(run.ask("/results"))) as packed:
        workers = packed.extractfile("meta/workers.json")
        assert workers is not None
        assert {"sysd/node1": kept} == json.load(workers)
