"""Measure the gatherers `host` and `ansible` on a real node of this machine, each in its own Pod.

    python -m tests.bench.host [--runs N]

Seconds from the start of a gatherer's process to its end, seconds of CPU with all that it starts,
and the peak resident memory of its largest process. The peak of the container's control group, as
the node counts it, is over all runs: everything at once, with the files that are read for the first
time and with the program that measures.
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
from tests.bed.containers import cgroup_peak
from tests.bed.controlplane import ControlPlane
from tests.bed.node import Node
from tests.bed.product_image import (
    ANSIBLE_IMAGE,
    PRODUCT_IMAGE,
    build_ansible_image,
    build_product_image,
)

ROOT = Path(__file__).resolve().parents[2]
GATHERERS = {
    "host": (ROOT / "reporter" / "runctl" / "plugins" / "host-facts.yaml", PRODUCT_IMAGE),
    "ansible": (ROOT / "deploy" / "plugins" / "ansible" / "definition.yaml", ANSIBLE_IMAGE),
}
"""By name: definition and image."""
NAMESPACE = "bench"
BOUND = 300.0
MB = 1_000_000
MEASURE = """
import json, os, subprocess, sys, time
told = {**os.environ, "GATHER_HOST_ROOT": "/host", "GATHER_OUT": "/results"}
for _ in range(int(sys.argv[2])):
    began = time.perf_counter()
    process = subprocess.Popen([f"/gatherers.d/10-{sys.argv[1]}"], env=told)
    _, status, usage = os.wait4(process.pid, 0)
    took = time.perf_counter() - began
    cpu = usage.ru_utime + usage.ru_stime
    said = [took, cpu, usage.ru_maxrss * 1024, os.waitstatus_to_exitcode(status)]
    print(json.dumps(said), flush=True)
time.sleep(3600)
"""
Runs = list[tuple[float, float, int, int]]
"""Seconds, seconds of CPU, peak bytes of the largest process, exit code."""


def pod(gatherer: str, runs: int) -> dict[str, Any]:
    """Return a Pod as the plugin has it, which measures instead of delivering."""
    definition, image = GATHERERS[gatherer]
    spec = yaml.safe_load(definition.read_text())["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    container.update(image=image, command=["python3", "-c", MEASURE, gatherer, str(runs)])
    spec.update(nodeName="node1", restartPolicy="Never")
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": gatherer}, "spec": spec}


def measured(gatherer: str, node: Node, runs: int) -> tuple[Runs, int]:
    """Return what each run took, and the peak bytes of the container over all of them."""
    create = ("create", "-n", NAMESPACE, "-f", "-")
    node.controlplane.kubectl(*create, input=yaml.safe_dump(pod(gatherer, runs)))
    path = f"/api/v1/namespaces/{NAMESPACE}/pods/{gatherer}"
    # Quick ones are through before the kubelet says that their container runs.
    node.controlplane.api.wait_for(path, _running)
    end = time.monotonic() + BOUND
    lines: list[str] = []
    while len(lines) < runs and time.monotonic() < end:
        time.sleep(0.2)
        lines = [each.text for each in node.logs(NAMESPACE, gatherer, "agent")]
        lines = [line for line in lines if line.startswith("[")]
    peak = cgroup_peak(node.container_pid(NAMESPACE, gatherer, "agent"))
    node.controlplane.request("DELETE", f"{path}?gracePeriodSeconds=1")
    return [tuple(json.loads(line)) for line in lines], peak


def _running(pod: dict[str, Any]) -> bool:
    return any("running" in each["state"] for each in pod["status"].get("containerStatuses", ()))


def main() -> int:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    runs = parser.parse_args().runs
    if reason := bed_node.why_not():
        print(f"python -m tests.bench.host: {reason}", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        images = {
            PRODUCT_IMAGE: build_product_image(folder / "product.tar"),
            ANSIBLE_IMAGE: build_ansible_image(folder / "ansible.tar"),
        }
        with ControlPlane(folder / "bed", pods=True) as controlplane, Node(controlplane) as node:
            for image, built in images.items():
                node.import_image(built.archive, image)
            space = {"metadata": {"name": NAMESPACE}}
            controlplane.request("POST", "/api/v1/namespaces", space)
            found = {gatherer: measured(gatherer, node, runs) for gatherer in GATHERERS}
    for took, _ in found.values():
        assert [0] * runs == [code for *_, code in took]
    print("| | `host` must be | `host` | `ansible` |\n|---|---|---|---|")
    for at, (name, bound) in enumerate([("seconds", "1.5 s"), ("seconds of CPU", "")]):
        shown = [_seconds([run[at] for run in took]) for took, _ in found.values()]
        print(f"| {name} (worst) | {bound} | {' | '.join(shown)} |")
    largest = [f"{max(run[2] for run in took) / MB:.1f} MB" for took, _ in found.values()]
    print(f"| peak memory of the largest process | 40 MB | {' | '.join(largest)} |")
    peaks = [f"{peak / MB:.1f} MB" for _, peak in found.values()]
    print(f"| peak memory of the container | | {' | '.join(peaks)} |")
    sizes = [f"{built.all_bytes / MB:.1f} MB" for built in images.values()]
    print(f"| image, compressed, with its base | 120 MB for `ansible` | {' | '.join(sizes)} |")
    return 0


def _seconds(values: list[float]) -> str:
    return f"{statistics.median(values):.2f} s ({max(values):.2f} s)"


if __name__ == "__main__":
    sys.exit(main())
