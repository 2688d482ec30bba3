"""Measure a whole run, beside the same run of the real Sonobuoy on the same node, and its parts.

    python -m tests.bench.runs [--runs N]

From the start of `run` to the tarball on this machine, of one plugin in Sonobuoy's shape that is
done at once; the images are on the node. Both in turn, each in a namespace of its own that is
removed before the next. Then how soon it is known that a Pod waits, or that a run cannot begin.
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
from tests.bench.launching import Pods, refusals, troubles
from tests.blackbox.cluster.scene import BOUND, Person, write

SONOBUOY_IMAGE = "localhost/sonobuoy:bed"
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


class Both:
    """Somebody with the kubeconfig of a cluster, a plugin and both commands."""

    def __init__(self, person: Person, pods: Pods) -> None:
        self._person, self._pods = person, pods
        self.first: list[float] = []
        """The seconds to the first Pod of a plugin, of each run of ours."""
        write(person.home, "trivial.yaml", PLUGIN)
        write(person.home, "config.json", CONFIG)

    def ours(self) -> float:
        """Return the seconds of a run of ours."""
        began = time.monotonic()
        self._ours("run", "-f", "trivial.yaml", "--name", "bench", "--storage", "none", "--wait")
        self._ours("retrieve", "bench", "--file", "ours.tar.gz")
        took = time.monotonic() - began
        self.first.append(self._pods.first_after(began) - began)
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
        with tarfile.open(self._person.home / name) as opened:
            names = {member.removeprefix("./") for member in opened.getnames()}
        assert "plugins/trivial/results/global/a" in names, names
        (self._person.home / name).unlink()

    def _ours(self, *arguments: str) -> None:
        done = self._person.run(*arguments)
        assert done[0] == 0, (arguments, done)

    def _sonobuoy(self, *arguments: str) -> None:
        done = subprocess.run(
            [str(program("sonobuoy")), *arguments],
            cwd=self._person.home,
            env={
                "KUBECONFIG": str(self._person.cluster.kubeconfig),
                "PATH": os.environ["PATH"],
                "HOME": str(self._person.home),
            },
            capture_output=True,
            text=True,
            timeout=BOUND,
            check=False,
        )
        assert done.returncode == 0, (arguments, done.stdout, done.stderr)


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
    pods = Pods(person.cluster)
    both = Both(person, pods)
    took: dict[Callable[[], float], list[float]] = {both.ours: [], both.sonobuoys: []}
    for _ in range(runs):
        for run, seconds in took.items():
            seconds.append(run())
    ours, theirs = (statistics.median(seconds) for seconds in took.values())
    print("| Figure | Must be | Here | Sonobuoy |\n|---|---|---|---|")
    print(
        "| from `run` to the tarball, one trivial plugin | a third of Sonobuoy's | "
        f"{ours:.1f} s, {ours / theirs:.2f} of Sonobuoy's | {theirs:.1f} s |"
    )
    print(f"| from `run` to the first Pod of a plugin | 5 s | {_typical(both.first)} | |")
    print(f"| a Pod's trouble in `/status`, p50 / p95 | p95 1 s | {troubles(person, pods)} | |")
    for case, (problems, seconds) in refusals(person, runs).items():
        print(f"| `run` says all {problems} problems: {case} | 3 s | {_typical(seconds)} | |")


def _typical(seconds: list[float]) -> str:
    return f"{statistics.median(seconds):.1f} s, at most {max(seconds):.1f} s"


if __name__ == "__main__":
    sys.exit(main())
