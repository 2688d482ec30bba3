"""Measure a snapshot of 10,000 Pods from a FakeKube over TLS: memory and objects per CPU second.

    python -m tests.bench.snapshot [--pods N] [--runs N]

The agent's own code runs in a process of its own, as `status-agent snapshot` does between its start
and its delivery. The server is in this process, so the time on the clock says nothing.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile

from tests.fakekube import FakeKube, make_job, make_pod

MB = 1_000_000
CODE = """
import json, resource, sys
from pathlib import Path
from reporter.collect.snapshot.options import SnapshotOptions
from reporter.collect.snapshot.snapshot import take_snapshot
from reporter.common.lifecycle import Stop
from reporter.kube.api import KubeApi

server, ca_file, token_file, out = sys.argv[1:]
api = KubeApi.connect(server, ca_file=ca_file, token_file=token_file)
failure = take_snapshot(SnapshotOptions(), api, Path(out), lambda *_: None, Stop())
assert failure is None, failure
index = json.loads((Path(out) / "resources" / "index.json").read_text())
assert index["complete"], index
used = resource.getrusage(resource.RUSAGE_SELF)
peak = next(
    int(line.split()[1]) * 1024
    for line in Path("/proc/self/status").read_text().splitlines()
    if line.startswith("VmHWM")
)
count = sum(each["count"] for each in index["resources"])
print(json.dumps([count, used.ru_utime + used.ru_stime, peak]))
"""


def crowd(fake: FakeKube, pods: int) -> None:
    """Create so many Pods with 20 environment variables each, in 50 namespaces."""
    job = make_job("crowd")
    for number in range(pods):
        pod = make_pod(job, name=f"pod-{number:05}", uid=f"uid-{number}")
        pod["metadata"]["namespace"] = f"space-{number % 50}"
        env = [{"name": f"NAME_{each}", "value": "x" * 40} for each in range(20)]
        pod["spec"]["containers"][0]["env"] = env
        fake.create_pod(pod)


def measure(fake: FakeKube) -> tuple[int, float, int]:
    """Take a snapshot of everything; return its objects, the seconds of CPU and the peak's bytes.

    The server must know a token.
    """
    with tempfile.TemporaryDirectory(prefix="bench-") as out:
        arguments = [fake.server, fake.ca_file, fake.token_file, out]
        done = subprocess.run(
            [sys.executable, "-c", CODE, *arguments],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    count, seconds, peak = json.loads(done.stdout)
    return count, seconds, peak


def main() -> int:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=3)
    chosen = parser.parse_args()
    rates, peaks = [], []
    with FakeKube(role="admin") as fake:
        crowd(fake, chosen.pods)
        size = len(json.dumps(fake.pod("pod-00000", "space-0")))
        for _ in range(chosen.runs):
            count, seconds, peak = measure(fake)
            assert count == chosen.pods
            rates.append(count / seconds)
            peaks.append(peak)
            fake.journal.clear()
    print("| Figure | Must be | Median | Worst |\n|---|---|---|---|")
    rate, slowest = statistics.median(rates), min(rates)
    print(f"| objects per CPU second, {size} bytes each | 2,000 | {rate:,.0f} | {slowest:,.0f} |")
    median, largest = statistics.median(peaks) / MB, max(peaks) / MB
    print(f"| peak resident memory (VmHWM) | 100 MB | {median:.1f} MB | {largest:.1f} MB |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
