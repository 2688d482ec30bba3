"""A real aggregator whose disk fails, or that is killed, at a step of its work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.aggregators.served import ROOT, Aggregator

LAUNCHER = ROOT / "tests" / "aggregators" / "launch_trapped.py"


class Trapped(Aggregator):
    """The file `trap` names the step."""

    def __init__(
        self, folder: Path, document: dict[str, Any], *flags: str, trap: Path, fresh: bool = False
    ) -> None:
        super().__init__(folder, document, *flags, fresh=fresh)
        self.trap = trap
        self.launcher = (str(LAUNCHER), str(trap))
        trap.touch()

    def arm(self, what: str) -> None:
        """Set the trap: what is to happen, and at which step; "" takes it away."""
        new = self.trap.with_suffix(".new")
        new.write_text(what)
        new.replace(self.trap)
