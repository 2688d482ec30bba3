"""``python -m tests.blackbox.soak --minutes 10 --seed 7``: Jobs and faults until the time is over.

The first contradiction ends it, with the rule, the whole history of that Job and the seed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tests.bed.__main__ import create_volumes
from tests.bed.controlplane import ControlPlane
from tests.bed.node import Node, why_not
from tests.bed.product_image import PRODUCT_IMAGE, build_product_image
from tests.blackbox.soak.disks import disks
from tests.blackbox.soak.faults import Faults, Schedule
from tests.blackbox.soak.found import Contradiction
from tests.blackbox.soak.jobs import Jobs
from tests.blackbox.soak.play import Player, play, summary
from tests.blackbox.soak.runs import Runs

NEEDED = ("gcc", "mkfs.ext4", "fsfreeze", "mount")


def main() -> int:
    """Return 0 where nothing was found, 1 for a contradiction, 2 where it cannot run here."""
    parser = argparse.ArgumentParser(prog="python -m tests.blackbox.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=3)
    parser.add_argument("--seed", default=os.urandom(4).hex())
    parser.add_argument("--at-once", type=int, default=6, help="Jobs at a time")
    parser.add_argument("--runs-at-once", type=int, default=2)
    options = parser.parse_args()
    missing = [name for name in NEEDED if not shutil.which(name)]
    if reason := why_not() or (missing and f"the soak needs {', '.join(missing)}"):
        print(f"soak: {reason}", file=sys.stderr)
        return 2
    print(f"soak: seed {options.seed}, {options.minutes:g} minutes", flush=True)
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        image = Path(folder) / "image.tar"
        build_product_image(image)
        with (
            ControlPlane(Path(folder) / "bed", pods=True, scheduler=True) as controlplane,
            Node(controlplane, services=True) as node,
        ):
            node.import_image(image, PRODUCT_IMAGE)
            # One for each run: what was claimed once is not free again.
            create_volumes(controlplane, 20 + int(3 * options.minutes))
            volumes = sorted((controlplane.folder / "volumes").iterdir())
            seed, place = options.seed, Path(folder) / "runs"
            with (
                disks(volumes, Path(folder) / "disks"),
                Faults(node, seed) as faults,
                Jobs(node, faults, seed, options.at_once) as jobs,
                Runs(node, faults, seed, options.runs_at_once, place) as runs,
            ):
                players: list[Player] = [jobs, runs, Schedule(faults, seed)]
                began = time.monotonic()
                try:
                    play(players, began + 60 * options.minutes)
                except Contradiction as found:
                    print(found, flush=True)
                    seconds = time.monotonic() - began
                    print(f"soak: contradiction after {seconds:.0f} s; --seed {options.seed}")
                    return 1
                finally:
                    print(summary(players), flush=True)
    print("soak: no contradiction")
    return 0


if __name__ == "__main__":
    sys.exit(main())
