"""Measure everything on a real node of this machine and print it beside the reference values.

The reference is a Go reporter, measured the same way on a machine of this size.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.bed import node as bed_node
from tests.bed.controlplane import ControlPlane
from tests.bed.node import Node
from tests.bed.product_image import PRODUCT_IMAGE, build_product_image
from tests.bench.figures import LongJob, decode_seconds, short_jobs
from tests.bench.jobs import Jobs

MB = 1_000_000


def main() -> int:
    """Measure and print a table; 1 where there can be no node."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--runs", type=int, default=30, help="short Jobs of each kind")
    parser.add_argument("--long", type=int, default=600, help="seconds of the long Job")
    chosen = parser.parse_args()
    if reason := bed_node.why_not():
        print(f"make bench: {reason}", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        rows = _measure(Path(folder), chosen.runs, chosen.long)
    print("| Figure | Must be | Here | Go reporter |\n|---|---|---|---|")
    for row in rows:
        print(f"| {' | '.join(row)} |")
    return 0


def _measure(folder: Path, runs: int, seconds: int) -> list[tuple[str, str, str, str]]:
    built = build_product_image(folder / "product.tar")
    with ControlPlane(folder / "bed", pods=True) as controlplane, Node(controlplane) as node:
        node.import_image(built.archive, PRODUCT_IMAGE)
        idle, busy = Jobs(controlplane, "idle", "native"), Jobs(controlplane, "busy", "native")
        for jobs in (idle, busy):
            jobs.create_namespace()
        long_job = LongJob(controlplane, node, idle, seconds)
        short = short_jobs(controlplane, node, busy, runs)
        long = long_job.finish()
    total = sum(long.requests.values())
    detail = ", ".join(f"{count} {kind}" for kind, count in long.requests.items())
    peak = max(short.peak_bytes, long.peak_bytes)
    idle_share = f"{100 * long.idle_share:.3f} % of a core"
    image = f"{built.own_bytes / MB:.1f} MB"
    return [
        ("file complete to condition readable, p50 / p95", "50 / 150 ms",
         str(short.file_to_condition), "1500 / 2100 ms"),
        ("adapter's end visible to condition readable, p50 / p95", "p95 150 ms",
         str(short.end_to_condition), "p95 5800 ms"),
        (f"API requests of a Job of {long.seconds:.0f} s", "8 in 10 min",
         f"{total} ({detail})", "63"),
        ("peak resident memory (VmHWM)", "50 MB", f"{peak / MB:.1f} MB", "31.8 MB"),
        ("CPU to start and report", "0.40 s", f"{short.cpu_seconds:.2f} s", ""),
        ("CPU while idle", "0.1 %", idle_share, ""),
        ("SIGTERM to exit, p50 / p95", "1 s", str(short.stop_to_exit), ""),
        ("compressed image without base layers", "20 MB", image, ""),
        ("read, decode and validate a small result", "1 ms",
         f"{1000 * decode_seconds():.3f} ms", ""),
    ]  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
