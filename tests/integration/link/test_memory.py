"""W23: however big a result is, its worker stays small."""

import hashlib
import os
import subprocess
import sys

import pytest

from tests.integration.link.scripted import Scripted
from tests.scripted_server import Say

MIB = 1024 * 1024
PROGRAM = """
import os, sys
from reporter.link import AggregatorClient, ResultSource, WorkerConfig

def kib(field):
    with open("/proc/self/status") as status:
        return int(next(line for line in status if line.startswith(field)).split()[1])

with AggregatorClient(WorkerConfig.from_env(os.environ)) as client:
    client.put_result(ResultSource.from_bytes(b"{}", "warm.json"))
    before = kib("VmRSS")
    delivery = client.put_result(ResultSource.from_file(sys.argv[1]))
    print(delivery.outcome, delivery.attempts, delivery.digest, kib("VmHWM") - before)
"""


@pytest.mark.parametrize("size", [96 * MIB, pytest.param(512 * MIB, marks=pytest.mark.long)])
def test_w23_a_large_result_in_16_mib(tmp_path, size):
    """W23: the whole way, hashing and one failed try included."""
    big = tmp_path / "big.bin"
    with big.open("wb") as file:
        file.truncate(size)  # sparse: it costs no disk
    sha256 = hashlib.sha256()
    for _ in range(size // MIB):
        sha256.update(bytes(MIB))
    with Scripted(results=[Say(), Say(503, early=True), Say()]) as server:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, big],
            env={"PATH": os.environ["PATH"], **server.environment()},
            capture_output=True,
            text=True,
            check=True,
            timeout=100,
        )
        last = server.requests[-1]
    outcome, attempts, digest, grown = done.stdout.split()
    assert ("accepted", "2", sha256.hexdigest()) == (outcome, attempts, digest)
    assert (size, digest) == (last.length, last.digest)
    assert 16 * 1024 >= int(grown)
