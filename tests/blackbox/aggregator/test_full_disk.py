"""The disk under a whole aggregator is full or read-only: clean answers, no restart."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.aggregators.served import Aggregator
from tests.aggregators.worker import BOUND, Reply, Worker, digest_of
from tests.archives.tars import file, tgz
from tests.blackbox.aggregator.starting import Start, unfinished
from tests.small_volume import small_volume

MIB = 2**20
KEY = "by-node/node1/sysd"
GZIP = {"Content_Type": "application/gzip"}
ARCHIVE = tgz(file(b"a.txt", b"one"))


@pytest.fixture
def volume(tmp_path: Path) -> Iterator[Path]:
    """A file system of 8 MiB."""
    with small_volume(tmp_path / "volume", "8m", busy=True) as folder:
        yield folder


def fill(path: Path, left: int) -> None:
    """Take all space but some bytes."""
    with path.open("ab", buffering=0) as filler, suppress(OSError):
        while filler.write(bytes(64 * 1024)):
            pass
    os.truncate(path, max(0, path.stat().st_size - left))


def until_taken(worker: Worker, key: str, body: bytes, **headers: str) -> Reply:
    """Try again as a worker does, until the store knows that it can write."""
    end = time.monotonic() + BOUND
    while (reply := worker.put(key, body, **headers)).status in (500, 503, 507):
        assert time.monotonic() < end, reply
        time.sleep(0.05)
    return reply


def earlier(aggregator: Aggregator, worker: Worker) -> None:
    """What was stored before is as it was."""
    entry = aggregator.entry("sysd/node2")
    digest = hashlib.sha256(b"earlier").hexdigest()
    assert ("complete", digest) == (entry["status"], entry["digest"])
    (blob,) = (aggregator.state / "blobs").glob(f"{digest}-*")
    assert b"earlier" == blob.read_bytes()
    assert b"earlier" == aggregator.result("sysd/node2")
    assert digest_of(b"earlier") == worker.put("by-node/node2/sysd", b"other").digest


class TestFullDisk:
    """A46: 507, what was there is intact, and with space again the same process goes on."""

    @pytest.mark.parametrize("case", ["body", "everything"])
    def test_real(self, start: Start, volume: Path, case: str) -> None:
        """A volume that really is full, with no reserve that would see it coming."""
        aggregator = start("--disk-reserve-bytes", "0", folder=volume / "run")
        worker, filler = aggregator.worker("sysd"), volume / "filler"
        assert 200 == worker.put("by-node/node2/sysd", b"earlier").status
        fill(filler, 2 * MIB if case != "everything" else 0)
        body, headers = {
            # In chunks: its length is not known before.
            "body": (os.urandom(3 * MIB), {}),
            "everything": (b"small", {}),
        }[case]
        refused = worker.put(KEY, iter([body]) if case == "body" else body, **headers)

        assert 507 == refused.status, refused
        assert b"sysd/node1" in refused.body
        assert [] == unfinished(aggregator)
        assert "running" == aggregator.entry("sysd/node1")["status"]
        filler.unlink()
        taken = until_taken(worker, KEY, body, **headers)
        assert (200, digest_of(body)) == (taken.status, taken.digest)
        earlier(aggregator, worker)

    def test_below_the_reserve(self, start: Start, volume: Path) -> None:
        """Refused before a byte of the body; the probe says why."""
        aggregator = start("--disk-reserve-bytes", str(4 * MIB), folder=volume / "run")
        worker, filler = aggregator.worker("sysd"), volume / "filler"
        assert 200 == worker.put("by-node/node2/sysd", b"earlier").status
        fill(filler, 3 * MIB)

        refused = worker.put(KEY, b"small")
        assert (507, b"result sysd/node1: not enough disk space\n") == refused[:2]
        with pytest.raises(OSError, match="503"):
            aggregator.ask("/readyz")
        # Progress is small, but there may be much of it.
        refused = worker.post(KEY, msg="half")
        assert (507, b"progress update for sysd/node1: not enough disk space\n") == refused[:2]
        filler.unlink()
        # Progress comes often: the file system is asked at most once a second.
        while (status := worker.post(KEY, msg="half").status) == 507:
            pass
        assert 200 == status
        assert 200 == worker.put(KEY, b"small").status
        aggregator.ask("/readyz")
        earlier(aggregator, worker)


def test_read_only_from_the_start(start: Start, volume: Path) -> None:
    """It does not begin what it cannot keep, says so, and begins when it can."""
    aggregator = start("--disk-reserve-bytes", "0", folder=volume / "run")
    assert 0 == aggregator.stop()
    subprocess.run(["mount", "-o", "remount,ro", volume], check=True)
    aggregator.folder = volume.parent  # for the pipe of its output
    shutil.copy(volume / "run" / "plan.json", volume.parent)
    aggregator.launch()
    assert 1 == aggregator.wait_end()
    (said,) = aggregator.said("Aggregator cannot run")
    assert "ead-only file system" in said["error"]
    subprocess.run(["mount", "-o", "remount,rw", volume], check=True)
    aggregator.start()
    assert 200 == aggregator.worker("sysd").put(KEY).status
