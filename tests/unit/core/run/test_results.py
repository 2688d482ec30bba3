"""Which entries are shown one by one after they have ended."""

from dataclasses import replace

from reporter.core.run.results import ended_since
from tests.unit.core.run.world import (
    E2E,
    FAILED,
    NODE1,
    NODE2,
    PASSED,
    START,
    WORKER_ERROR,
    snapshot,
)


def shown(records, since=START, limit=10):
    """Their keys in order."""
    return [entry.key for entry in ended_since(snapshot(records), since, limit)]


def test_what_did_not_pass_comes_first_then_the_newest():
    """An error report counts as not passed, and what still runs is not shown."""
    later = replace(PASSED, at=FAILED.at + 60)

    assert [NODE1, E2E] == shown({E2E: later, NODE1: FAILED})
    assert [NODE1, E2E] == shown({E2E: PASSED, NODE1: later})
    assert [NODE2, E2E] == shown({E2E: later, NODE2: WORKER_ERROR})


def test_an_old_verdict_is_no_longer_shown():
    """The moment itself is too old."""
    assert [] == shown({E2E: FAILED}, since=FAILED.at)
    assert [E2E] == shown({E2E: FAILED}, since=FAILED.at - 0.1)


def test_no_more_than_the_limit():
    """Of many the failed ones stay."""
    assert [NODE2] == shown({E2E: PASSED, NODE1: PASSED, NODE2: FAILED}, limit=1)
