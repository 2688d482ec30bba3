"""Measure a whole run, beside the same run of the real Sonobuoy on the same node.

    python -m tests.bench.runs [--runs N]

From the start of `run` to the tarball on this machine, of one plugin in Sonobuoy's shape that is
done at once; the images are on the node. Both in turn, each in a namespace of its own that is
removed before the next.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.bed import images
from tests.bed import node as bed_node
from tests.bed.__main__ import EXAMPLES_IMAGE, down, up
from tests.bed.binaries import program
from tests.bed.controlplane import ControlPlane
from tests.bed.node import Node
from tests.bed.product_image import PRODUCT_IMAGE

ROOT = Path(__file__).resolve().parents[2]
SONOBUOY_IMAGE = "localhost/sonobuoy:bed"
BOUND = 600
# Workers built by a newer Go than Sonobuoy's own releases refuse its `https://[IPv4]:PORT`.
CONFIG = '{"Server": {"advertiseaddress": "sonobuoy-aggregator:8080"}}'
PLUGIN = f"""\
sonobuoy-config: {{driver: Job, plugin-name: trivial, result-format: raw}}
spec:
  name: plugin
  image: {EXAMPLES_IMAGE}
  imagePullPolicy: IfNotPresent
  command:
    - /bin/sh
    - -c
    - echo -n done >$RESULTS_DIR/a; echo -n $RESULTS_DIR/a >$RESULTS_DIR/done
  volumeMounts: [{{mountPath: /tmp/sonobuoy/results, name: results}}]
"""


class Person:
    """Somebody with the kubeconfig of a cluster, a plugin and both commands."""

    def __init__(self, cluster: ControlPlane, folder: Path) -> None:
        self._cluster, self._folder = cluster, folder
        (folder / "trivial.yaml").write_text(PLUGIN)
        (folder / "config.json").write_text(CONFIG)

    def ours(self) -> float:
        """Return the seconds of a run of ours."""
        began = time.monotonic()
        self._ours("run", "-f", "trivial.yaml", "--name", "bench", "--storage", "none", "--wait")
        self._ours("retrieve", "bench", "--file", "ours.tar.gz")
        took = time.monotonic() - began
        self._check("ours.tar.gz")
        self._ours("delete", "bench")
        return took

    def sonobuoys(self) -> float:
        """Return the seconds of a run of Sonobuoy's."""
        began = time.monotonic()
        self._sonobuoy(
            *("run", "--config", "config.json", "--plugin", "trivial.yaml"),
            *("--sonobuoy-image", SONOBUOY_IMAGE, "--skip-preflight", "--wait=10"),
        )
        self._sonobuoy("retrieve", "--filename", "sonobuoys.tar.gz")
        took = time.monotonic() - began
        self._check("sonobuoys.tar.gz")
        self._sonobuoy("delete", "--wait=10")
        return took

    def _check(self, name: str) -> None:
        with tarfile.open(self._folder / name) as opened:
            names = {member.removeprefix("./") for member in opened.getnames()}
        assert "plugins/trivial/results/global/a" in names, names
        (self._folder / name).unlink()

    def _ours(self, *arguments: str) -> None:
        self._run([sys.executable, str(ROOT / "cmd" / "status-ctl.py"), *arguments])

    def _sonobuoy(self, *arguments: str) -> None:
        self._run([str(program("sonobuoy")), *arguments])

    def _run(self, command: list[str]) -> None:
        done = subprocess.run(
            command,
            cwd=self._folder,
            env={
                "KUBECONFIG": str(self._cluster.kubeconfig),
                "PATH": os.environ["PATH"],
                "HOME": str(self._folder),
                "STATUS_CTL_IMAGE": PRODUCT_IMAGE,
            },
            capture_output=True,
            text=True,
            timeout=BOUND,
            check=False,
        )
        assert not done.returncode, (command, done.stdout, done.stderr)


def main() -> int:
    """Measure and print a table; 1 where there can be no node."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    runs = parser.parse_args().runs
    if reason := bed_node.why_not():
        print(f"make bench: {reason}", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name) / "bed"
        try:
            up(folder)
            cluster = ControlPlane(folder)
            archive = Path(name) / "sonobuoy.tar"
            images.write_program_image(archive, program("sonobuoy"))
            Node(cluster).import_image(archive, SONOBUOY_IMAGE)
            _measure(Person(cluster, Path(name)), runs)
        finally:
            down(folder)
    return 0


def _measure(person: Person, runs: int) -> None:
    took: dict[Callable[[], float], list[float]] = {person.ours: [], person.sonobuoys: []}
    for _ in range(runs):
        for run, seconds in took.items():
            seconds.append(run())
    ours, theirs = (statistics.median(seconds) for seconds in took.values())
    print("| Figure | Must be | Here | Sonobuoy |\n|---|---|---|---|")
    print(
        "| from `run` to the tarball, one trivial plugin | a third of Sonobuoy's | "
        f"{ours:.1f} s, {ours / theirs:.2f} of Sonobuoy's | {theirs:.1f} s |"
    )


if __name__ == "__main__":
    sys.exit(main())
