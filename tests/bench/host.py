"""Measure the gatherer `host` on a real node of this machine, in the Pod of `host-facts`.

    python -m tests.bench.host [--runs N]

Seconds from the start of its process to its end, and its peak resident memory.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import yaml

from tests.bed import node as bed_node
from tests.bed.controlplane import ControlPlane
from tests.bed.node import Node
from tests.bed.product_image import PRODUCT_IMAGE, build_product_image

ROOT = Path(__file__).resolve().parents[2]
DEFINITION = ROOT / "reporter" / "ctl" / "plugins" / "host-facts.yaml"
BOUND = 180.0
MEASURE = """
import json, os, subprocess, sys, time
told = {**os.environ, "GATHER_HOST_ROOT": "/host", "GATHER_OUT": "/results"}
for _ in range(int(sys.argv[1])):
    began = time.perf_counter()
    process = subprocess.Popen(["/gatherers.d/10-host"], env=told)
    _, status, usage = os.wait4(process.pid, 0)
    took = time.perf_counter() - began
    cpu = usage.ru_utime + usage.ru_stime
    print(json.dumps([took, cpu, usage.ru_maxrss * 1024, os.waitstatus_to_exitcode(status)]))
"""


def pod(runs: int) -> dict[str, Any]:
    """Return a Pod as `host-facts` has it, which measures instead of delivering."""
    spec = yaml.safe_load(DEFINITION.read_text())["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    container.update(image=PRODUCT_IMAGE, command=["python3", "-c", MEASURE, str(runs)])
    spec.update(nodeName="node1", restartPolicy="Never")
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "host"}, "spec": spec}


def measured(runs: int) -> list[tuple[float, float, int, int]]:
    """Return seconds, seconds of CPU, peak bytes and exit code of each run."""
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        built = build_product_image(folder / "product.tar")
        with ControlPlane(folder / "bed", pods=True) as controlplane, Node(controlplane) as node:
            node.import_image(built.archive, PRODUCT_IMAGE)
            space = {"metadata": {"name": "bench"}}
            controlplane.request("POST", "/api/v1/namespaces", space)
            controlplane.kubectl(
                "create", "-n", "bench", "-f", "-", input=yaml.safe_dump(pod(runs))
            )
            end = time.monotonic() + BOUND
            phase = ""
            while phase not in ("Succeeded", "Failed") and time.monotonic() < end:
                time.sleep(0.5)
                found = controlplane.request("GET", "/api/v1/namespaces/bench/pods/host")
                phase = found["status"].get("phase", "")
            log = controlplane.kubectl("logs", "-n", "bench", "host")
    return [tuple(json.loads(line)) for line in log.splitlines() if line.startswith("[")]


def main() -> int:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    runs = parser.parse_args().runs
    if reason := bed_node.why_not():
        print(f"python -m tests.bench.host: {reason}", file=sys.stderr)
        return 1
    took = measured(runs)
    assert runs == len(took)
    assert {0} == {code for *_, code in took}
    seconds, cpu, peaks, _ = zip(*took, strict=True)
    print("| `host` | Must be | Median | Worst |\n|---|---|---|---|")
    print(f"| seconds | 1.5 s | {statistics.median(seconds):.2f} s | {max(seconds):.2f} s |")
    print(f"| seconds of CPU | | {statistics.median(cpu):.2f} s | {max(cpu):.2f} s |")
    mb = [peak / 1e6 for peak in peaks]
    print(f"| peak memory | 40 MB | {statistics.median(mb):.1f} MB | {max(mb):.1f} MB |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
