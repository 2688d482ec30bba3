"""The disk under a whole aggregator fails at each step: clean answers, no restart."""

from __future__ import annotations

import pytest

from tests.blackbox.aggregator.starting import Start, unfinished
from tests.blackbox.aggregator.test_full_disk import ARCHIVE, GZIP, KEY, earlier, until_taken


@pytest.mark.parametrize("step", ["write", "sync", "rename", "COMMIT"])
def test_full_at_each_step(start: Start, step: str) -> None:
    """Also where a real one would not hit it."""
    aggregator = start()
    worker = aggregator.worker("sysd")
    assert 200 == worker.put("by-node/node2/sysd", b"earlier").status
    aggregator.arm(f"ENOSPC {step}")

    assert 507 == worker.put(KEY, ARCHIVE, **GZIP).status
    assert [] == unfinished(aggregator)
    aggregator.arm("")
    assert 200 == until_taken(worker, KEY, ARCHIVE, **GZIP).status
    earlier(aggregator, worker)


@pytest.mark.parametrize("trouble", ["EIO", "EROFS"])
@pytest.mark.parametrize("step", ["write", "sync", "rename", "sync directory"])
def test_before_the_row(start: Start, step: str, trouble: str) -> None:
    """500 with the reason, no trace, and a good try afterwards."""
    aggregator = start()
    worker = aggregator.worker("sysd")
    aggregator.arm(f"{trouble} {step}")

    refused = worker.put(KEY, ARCHIVE, **GZIP)
    assert 500 == refused.status
    assert refused.body.startswith(b"error handling result sysd/node1: ")
    assert [] == unfinished(aggregator)
    assert [] == list((aggregator.state / "blobs").iterdir())
    assert 1 == aggregator.entry("sysd/node1")["attempts"]
    aggregator.arm("")
    assert 200 == worker.put(KEY, ARCHIVE, **GZIP).status


@pytest.mark.parametrize("trouble", ["EIO", "EROFS"])
def test_at_the_commit(start: Start, trouble: str) -> None:
    """Not acknowledged, shown as not writable, and well again by itself."""
    aggregator = start()
    worker = aggregator.worker("sysd")
    aggregator.arm(f"{trouble} COMMIT")

    # 503 if what is written every second has met it first.
    assert worker.put(KEY, ARCHIVE, **GZIP).status in (500, 503)
    assert 503 == worker.put(KEY, ARCHIVE, **GZIP).status
    assert 503 == worker.post(KEY, appendfailing=["f"]).status
    assert 0 == aggregator.metrics()["status_aggregator_store_writable"]
    assert "running" == aggregator.entry("sysd/node1")["status"]
    aggregator.arm("")
    assert 200 == until_taken(worker, KEY, ARCHIVE, **GZIP).status
    assert 200 == worker.post(KEY, appendfailing=["f"]).status
