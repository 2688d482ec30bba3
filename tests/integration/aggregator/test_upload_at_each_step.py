"""A whole aggregator that uploads its tarball, killed or failing at a step on the way."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.aggregators.bucket import SIGNATURE, Bucket
from tests.aggregators.served import plan
from tests.blackbox.aggregator.starting import Start
from tests.blackbox.aggregator.test_process_upload import pick, words
from tests.scripted_server import Hold, Silence


@pytest.fixture
def bucket(tmp_path: Path) -> Iterator[Bucket]:
    """A store that takes everything."""
    with Bucket(tmp_path) as bucket:
        yield bucket


def test_killed_in_each_step_of_the_upload(start: Start, bucket: Bucket):
    """The next process goes on: the tarball can be downloaded, arrives, and the run is over."""
    bucket.script(Silence(after=100), Hold(held := threading.Event()))
    run = start(*bucket.flags, document=plan("e2e", []))
    assert (bucket.host, "waiting") == pick(run)
    run.worker("e2e").put("global/e2e", b"the result")
    bucket.heard(1)
    assert (False, (bucket.host, "uploading")) == (run.status()["final"], pick(run))
    packed = run.ask("/results")

    run.kill()
    run.start()
    run.wait_log("Run resumed")
    run.arm("kill advance to closed")
    held.set()
    run.wait_end()
    assert 1 == len(run.said("Tarball uploaded"))

    run.arm("")
    run.start()
    run.wait_status(lambda status: status["final"])
    assert (2, packed) == (len(bucket.requests), bucket.requests[-1].body)
    assert (bucket.host, "uploaded") == pick(run)
    assert SIGNATURE not in words(run)
    assert 0 == run.stop()


def test_packed_once_more_without_the_upload(start: Start, bucket: Bucket):
    """What ended for want of a tarball is not announced again when nobody wants it."""
    run = start(*bucket.flags, "--package-give-up-seconds", "0", document=plan("e2e", []))
    run.arm("EIO package member")
    run.worker("e2e").put("global/e2e", b"the result")
    given_up = run.wait_status(lambda status: status["final"])
    assert (None, "there is no tarball") == (given_up["tar-info"], given_up["upload"]["error"])
    run.kill()
    run.arm("")
    run.flags = ("--package-again",)
    run.start()

    ended = run.wait_status(lambda status: status["final"] and status["tar-info"])
    error = "UPLOAD_URL_FILE is no longer set"
    assert ("complete", "failed", error) == (
        ended["status"],
        ended["upload"]["state"],
        ended["upload"]["error"],
    )
    assert not bucket.requests
