"""A real aggregator whose disk fails, or that is killed, at a step of its work."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.aggregators.served import ROOT, Aggregator

LAUNCHER = ROOT / "tests" / "aggregators" / "launch_trapped.py"


class Trapped(Aggregator):
    """The file `trap` names the step; `limits` are constants of `reporter.aggregator.limits`."""

    def __init__(
        self,
        folder: Path,
        document: dict[str, Any],
        *flags: str,
        trap: Path,
        limits: Mapping[str, float] | None = None,
        fresh: bool = False,
    ) -> None:
        super().__init__(folder, document, *flags, fresh=fresh)
        self.trap = trap
        self.launcher = (str(LAUNCHER), str(trap), json.dumps(limits or {}))
        trap.touch()

    def arm(self, what: str) -> None:
        """Set the trap: what is to happen, and at which step; "" takes it away."""
        new = self.trap.with_suffix(".new")
        new.write_text(what)
        new.replace(self.trap)
