"""Measure the upload of a tarball to a presigned URL: speed, and memory beyond what is idle.

    python -m tests.bench.upload [--mebibytes N] [--runs N]

Into a server on this machine that throws it away, and into a real object store on its disk, beside
curl, with the same file and URL, one after the other.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from reporter.aggregator.tarball.upload import TarballUploader
from reporter.ledger import Store
from reporter.run.plan import Plan
from reporter.run.state import Phase, Tar
from tests.aggregators.bucket import Bucket
from tests.aggregators.object_store import ObjectStore
from tests.aggregators.served import usage
from tests.http_server import Connection, Request, head
from tests.ports import free_port

MIB = 2**20
PIECE = b"status-reporter\0" * 65_536


class Sink(Bucket):
    """Throws away what it gets."""

    def exchange(self, connection: Connection, request: Request) -> None:
        """Read to the end and say that it is there."""
        left = int(request.headers["content-length"])
        space = memoryview(bytearray(MIB))
        while left:
            left -= connection.incoming.readinto(space[:left])  # type: ignore[attr-defined]
        connection.send(head(200, {"Content-Length": "0"}))


async def uploaded(folder: Path, url_file: Path, ca: Path) -> dict[str, float]:
    """Upload `folder/tarball` as the aggregator does: seconds, and bytes beyond those when idle."""
    size = (folder / "tarball").stat().st_size
    store = Store(folder / "run.db")
    await store.open_run(Plan("bench", (), 60), now=time.time())
    await store.advance_run(Phase.POST_PROCESSING)
    upload = TarballUploader(folder, url_file, str(ca))
    await asyncio.to_thread(upload.check, time.time(), 60.0)
    await upload.resume(store, 60.0)
    await upload.begin(store, Tar("tarball", "", "", size))
    idle, began = usage(os.getpid()), time.monotonic()
    assert await upload.over(store)
    found = store.snapshot().upload
    assert found is not None
    assert not found.error, found.error
    seconds = time.monotonic() - began
    await store.close()
    after = usage(os.getpid())
    return {
        "seconds": seconds,
        "cpu_seconds": after.cpu_seconds - idle.cpu_seconds,
        "more": after.peak_bytes - idle.peak_bytes,
    }


def ours(folder: Path, url_file: Path, ca: Path) -> dict[str, float]:
    """Upload it in a process of its own, as `uploaded` does."""
    (folder / "run.db").unlink(missing_ok=True)
    command = [sys.executable, "-m", "tests.bench.upload", "--child"]
    done = subprocess.run(
        [*command, str(folder), str(url_file), str(ca)], stdout=subprocess.PIPE, check=True
    )
    return dict(json.loads(done.stdout.splitlines()[-1]))


def curls(folder: Path, url_file: Path, ca: Path) -> float:
    """Upload it with curl: seconds."""
    began = time.monotonic()
    subprocess.run(
        [
            *("curl", "--silent", "--fail", "--http1.1", "--cacert", str(ca)),
            *("-H", "Expect:", "-T", str(folder / "tarball"), url_file.read_text().strip()),
        ],
        stdout=subprocess.DEVNULL,
        check=True,
    )
    return time.monotonic() - began


def row(name: str, must: str, folder: Path, url_file: Path, ca: Path, runs: int) -> None:
    """Measure one server and print its line of the table."""
    size = (folder / "tarball").stat().st_size / 1e6
    pairs = [
        (ours(folder, url_file, ca), curls(folder, url_file, ca) if shutil.which("curl") else None)
        for _ in range(runs)
    ]
    speed = statistics.median(size / found["seconds"] for found, _ in pairs)
    cpu = statistics.median(size / found["cpu_seconds"] for found, _ in pairs)
    more = max(found["more"] for found, _ in pairs) / MIB
    beside = [size / seconds for _, seconds in pairs if seconds is not None]
    curl = f"{statistics.median(beside):.0f} MB/s" if beside else ""
    here = f"{speed:.0f} MB/s ({cpu:.0f} MB per second of CPU), {more:.1f} MiB"
    print(
        f"| {name} | {must} | {here} | {curl} |",
        flush=True,
    )


def main() -> int:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mebibytes", type=int, default=1024)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--child", nargs=3, type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(asyncio.run(uploaded(*options.child))))
        return 0
    must = "150 MB/s, 20 MB"
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        with (folder / "tarball").open("wb") as file:
            for _ in range(options.mebibytes):
                file.write(PIECE)
        print("| Upload | Must be | Here, beyond idle | curl |\n|---|---|---|---|")
        with Sink(folder / "sink") as sink:
            row("thrown away", must, folder, sink.url_file, sink.ca, options.runs)
        (folder / "store").mkdir()
        with ObjectStore(folder / "store", "127.0.0.1", free_port()) as store:
            url_file = folder / "store" / "url"
            url_file.write_text(store.presigned("/results/tarball"))
            row("kept by versitygw", must, folder, url_file, store.ca, options.runs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
