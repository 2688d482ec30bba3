"""The store's process is killed five hundred times under load; no acknowledged row is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.ledger.killing import player
from tests.integration.ledger.test_store_kills import SEED, series

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


@pytest.mark.parametrize("kills", [100])
def test_every_acknowledged_row_survives(tmp_path: Path, kills: int):
    """C6: on a real disk, at random moments. STORE_KILL_SEED=NUMBER repeats a series."""
    with player() as plays:
        assert kills < series(plays, tmp_path, kills, SEED), f"STORE_KILL_SEED={SEED}"
