"""A small run to ask about: one cluster-wide plugin and one on two nodes."""

from dataclasses import replace

from reporter.run.entry import Entry
from reporter.run.plan import GLOBAL, Key, Plan, Plugin
from reporter.run.progress import Progress, StoredProgress
from reporter.run.record import Cause, Rank, Record
from reporter.run.state import Phase, Snapshot
from reporter.run.status import entry_document, run_document

START = 1_767_225_600.0  # 2026-01-01T00:00:00Z
E2E = Key("e2e", GLOBAL)
NODE1 = Key("sysd", "node1")
NODE2 = Key("sysd", "node2")
PLAN = Plan("run-1", (Plugin("e2e"), Plugin("sysd", ("node1", "node2"))))

RESULT = Record(
    Rank.RESULT, START + 5, digest="ab" * 32, size=3, filename="a.json", notes=("a link",)
)
PASSED = replace(RESULT, verdict="passed", reason="AllGood", message="fine")
FAILED = replace(RESULT, verdict="failed", reason="DiskSlow", message="fsync takes 80 ms")
UNREADABLE = replace(RESULT, verdict="unknown", reason="InvalidResultFormat", message="no object")
WORKER_ERROR = Record(
    Rank.WORKER, START + 6, digest="cd" * 32, size=9, cause=Cause.WORKER_ERROR, text="boom"
)
EVICTED = replace(WORKER_ERROR, verdict="unknown", reason="AdapterEvicted", text="node drained")
KILLED = replace(WORKER_ERROR, verdict="failed", reason="AdapterOOMKilled", text="out of memory")


def ours(cause=Cause.POD_FAILED, at=START + 4, text="the pod is gone"):
    """An error that the aggregator made itself."""
    return Record(Rank.AGGREGATOR, at, cause=cause, text=text, document='{"error":"x"}')


UNSENT = replace(ours(text="Greeted; its result never arrived"), verdict="passed", reason="Greeted")
"""What the Job's condition says of a result that did not come."""
LOST = Record(Rank.LOST, START + 4, cause=Cause.LOST, text="the blob is gone")


def sent(at=START + 1, **fields):
    """A stored progress."""
    return StoredProgress(Progress(**fields), at)


def snapshot(
    records=None, *, plan=PLAN, phase=Phase.RUNNING, progress=None, beats=None, entries=None, **more
):
    """A run whose entries hold these records; `entries` replaces whole ones."""
    records = records or {}
    whole = {key: Entry(key, records.get(key)) for key in plan.keys} | (entries or {})
    return Snapshot(plan, 42, phase, START, whole, progress or {}, beats or {}, **more)


def all_in(**more):
    """The run with every result there."""
    return snapshot(dict.fromkeys(PLAN.keys, RESULT), **more)


def status_document(run, *, now, mono, **more):
    """The whole run, as `/status` puts it together."""
    entries = [
        entry_document(run, key, now=now, mono=mono, full=False, **more) for key in run.entries
    ]
    return run_document(run, now=now) | {"plugins": entries}
