"""What the tests of the stores' contract share."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from reporter.ledger import Store
from reporter.run.plan import Key
from reporter.run.state import Snapshot, Tar
from tests.integration.ledger.world import E2E, NODE1, NODE2, PLAN, gave_up, result

TAR = Tar("202601010000_sonobuoy_run-1.tar.gz", "2026-01-01T00:00:00Z", "ab" * 32, 12)


NOBODY = Key("nope", "global")


GAVE_UP = dict.fromkeys((NODE1, NODE2), gave_up())


async def complete(store: Store) -> None:
    """Bring every entry to an end."""
    for key in PLAN.keys:
        await store.record_result(key, result())


def facts(snapshot: Snapshot) -> Snapshot:
    """What a restart must keep: all but the revision and the ages."""
    armed = {key: replace(beat, heard_at=0.0) for key, beat in snapshot.beats.items()}
    return replace(snapshot, revision=0, ahead=False, beats=MappingProxyType(armed))


def totals(store: Store, key: Key = E2E) -> tuple[int, int]:
    """Total and completed, as shown."""
    progress = store.snapshot().progress[key].progress
    return progress.total, progress.completed


async def beat(store: Store, mono: float, key: Key = E2E) -> None:
    """A heartbeat."""
    store.record_heartbeat(key, mono, beat=True)
