"""Measure the aggregator beside a bare aiohttp server, with one load generator, in one run.

    python -m tests.bench.aggregator [--only NAME] [--other URL --ca F --cert F --key F --pid N]

The load is a Go program (tests/bed/load). CPU is the server's own, user and system.
"""

from __future__ import annotations

import argparse
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.aggregators import load
from tests.aggregators.load import Load, Target
from tests.aggregators.served import Aggregator, Usage, plan, usage
from tests.ports import free_port

MB, MIB = 1_000_000, 2**20
PLUGIN = "load"
WORKERS = 2000
CONNECTIONS = 50
BEGINNING = 20.0  # seconds in which a fleet connects for the first time
OURS, BARE, BARE_KEEPS = "status-aggregator", "bare aiohttp", "bare aiohttp that digests and fsyncs"


@dataclass(frozen=True)
class Server:
    """Somebody to load: `pid` is nothing where it cannot be looked into."""

    name: str
    target: Target
    pid: int | None

    def used(self) -> Usage:
        """Return what it has used."""
        return usage(self.pid) if self.pid else Usage(0.0, 0)


@dataclass(frozen=True)
class Measured:
    """One load on one server, and what that cost it."""

    load: Load
    cpu_seconds: float
    peak_bytes: int

    def per_cpu_second(self, kind: str) -> str:
        """Return good answers per second of the server's CPU."""
        answered = self.load.answered(kind)
        wall = f"{answered / self.load.seconds:,.0f}/s"
        return f"{answered / self.cpu_seconds:,.0f} ({wall})" if self.cpu_seconds else wall

    def speed(self) -> str:
        """Return the speed of results, and the server's peak memory."""
        peak = f", peak {self.peak_bytes / MB:.0f} MB" if self.peak_bytes else ""
        return f"{self.load.bytes / MB / self.load.seconds:.0f} MB/s{peak}"


def measure(server: Server, mode: str, **options: object) -> Measured:
    """Load a server and say what came of it; every answer has to be good."""
    before = server.used()
    found = load.run(server.target, mode, **options)
    after = server.used()
    wrong = {
        kind: {status: n for status, n in counts.items() if status != "200"}
        for kind, counts in found.statuses.items()
    }
    if found.errors or any(wrong.values()):
        print(f"{server.name}, {mode}: {found.errors} {wrong}", file=sys.stderr)
    return Measured(found, after.cpu_seconds - before.cpu_seconds, after.peak_bytes)


@contextmanager
def ours(folder: Path, *flags: str) -> Iterator[tuple[Server, Aggregator]]:
    """Start a fresh aggregator."""
    document = plan(PLUGIN, [f"n{number}" for number in range(WORKERS)])
    with Aggregator(folder, document, *flags, fresh=True) as aggregator:
        target = load.target(aggregator, PLUGIN)
        yield Server(OURS, target, aggregator.pid), aggregator


@contextmanager
def bare(folder: Path, like: Target, kept: Path | None = None) -> Iterator[Server]:
    """Start the floor, with the certificates of an aggregator that is below `folder`.

    Bodies are digested and fsynced into `kept`, if there is one.
    """
    port = free_port()
    server = folder / "state" / "tls" / "server.pem"
    command = [sys.executable, "-m", "tests.bench.bare", str(port), str(like.ca), str(server)]
    if kept:
        kept.mkdir()
        command.append(str(kept))
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert "ready\n" == process.stdout.readline()
            url = f"https://127.0.0.1:{port}"
            target = Target(url, like.ca, like.cert, like.key, like.plugin)
            yield Server(BARE_KEEPS if kept else BARE, target, process.pid)
        finally:
            process.kill()


Row = tuple[str, ...]


def progress(servers: list[Server]) -> Row:
    """Updates on kept connections."""
    found = [measure(s, "progress", connections=CONNECTIONS, seconds=8) for s in servers]
    cells = [m.per_cpu_second("progress") for m in found]
    return ("updates per second of CPU, kept connections", "0.6 x bare, aim 0.85", *cells)


def handshakes(servers: list[Server]) -> Row:
    """Updates on a new connection each."""
    found = [measure(s, "handshake", connections=CONNECTIONS, seconds=8) for s in servers]
    cells = [m.per_cpu_second("progress") for m in found]
    return ("the same, a new mutual TLS connection each", "0.9 x bare", *cells)


def many_results(servers: list[Server]) -> Row:
    """Many results at once."""
    found = [measure(s, "results", count=500, size=MIB) for s in servers]
    must = "not below bare that fsyncs, aim 250 MB/s, peak 150 MB"
    return ("500 results of 1 MiB at once", must, *(m.speed() for m in found))


def large_results(servers: list[Server]) -> Row:
    """A few large results at once."""
    found = [measure(s, "results", count=20, size=20 * MIB) for s in servers]
    return ("20 results of 20 MiB at once", "0.9 x bare that fsyncs", *(m.speed() for m in found))


def stalled(servers: list[Server]) -> Row:
    """Updates while uploads stall, beside the same without."""
    cells = []
    for server in servers:
        calm = measure(server, "progress", connections=8, seconds=5).load.milliseconds
        with stalls(server.target, 20):
            held = measure(server, "progress", connections=8, seconds=5).load.milliseconds
        cells.append(f"{held['progress']['p99']:.1f} ms, without {calm['progress']['p99']:.1f} ms")
    return ("p99 of updates while 20 uploads stall", "as without", *cells)


@contextmanager
def stalls(target: Target, count: int) -> Iterator[None]:
    """Hold uploads that have sent one byte and send no more."""
    host, port = target.url.removeprefix("https://").split(":")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(target.ca)
    context.load_cert_chain(target.cert, target.key)
    with ExitStack() as stack:
        for number in range(count):
            raw = stack.enter_context(socket.create_connection((host, int(port))))
            secure = stack.enter_context(context.wrap_socket(raw, server_hostname=host))
            path = f"/api/v1/results/by-node/n{1000 + number}/{target.plugin}"
            head = f"PUT {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {MIB}\r\n\r\n"
            secure.sendall(head.encode() + b"x")
        yield


FIGURES: dict[str, Callable[[list[Server]], Row]] = {
    "progress": progress,
    "handshakes": handshakes,
    "many": many_results,
    "large": large_results,
    "stalled": stalled,
}


def fleet(seconds: float) -> Row:
    """Many workers that behave as they do; on ours alone."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, ours(Path(folder)) as (server, _):
        options = {"connections": WORKERS, "seconds": seconds, "size": 256 * 1024}
        found = measure(server, "fleet", **options, spread="true")
    slowest = max(ranks["p99"] for ranks in found.load.milliseconds.values())
    kinds = ", ".join(
        f"{kind} {ranks['p99']:.0f} ms" for kind, ranks in found.load.milliseconds.items()
    )
    share = 100 * found.cpu_seconds / found.load.seconds
    return (
        f"fleet of {WORKERS}, {seconds:.0f} s, p99",
        "250 ms, peak 300 MB",
        f"{slowest:.0f} ms ({kinds}), peak {found.peak_bytes / MB:.0f} MB, {share:.0f} % of a core",
    )


def steady(seconds: float) -> Row:
    """The same without results: what a run costs while its plugins work; on ours alone.

    Each worker has an address of its own, as in a cluster. Connections that end after 10 s, as they
    once did, stand beside those that are kept from one heartbeat to the next.
    """
    options = {"connections": WORKERS, "seconds": seconds, "uploads": "false", "spread": "true"}
    cells = []
    for name, idle in (("kept", 0), ("closed after 10 s", 10)):
        with (
            tempfile.TemporaryDirectory(prefix="bench-") as folder,
            ours(Path(folder)) as (server, _),
            load.start(server.target, "fleet", **options, idle=idle) as process,
        ):
            time.sleep(BEGINNING)
            before, began = server.used(), time.monotonic()
            found = load.finish(process, 2 * seconds)
            after, took = server.used(), time.monotonic() - began
        assert not found.errors, found.errors
        share = 100 * (after.cpu_seconds - before.cpu_seconds) / took
        cells.append(f"{share:.1f} % of a core, peak {after.peak_bytes / MB:.0f} MB ({name})")
    return (
        f"fleet of {WORKERS} without results, {seconds:.0f} s",
        "less if kept",
        ", ".join(cells),
    )


def main() -> int:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=[*FIGURES, "fleet", "steady"])
    parser.add_argument("--fleet-seconds", type=float, default=120)
    parser.add_argument("--other", help="https://HOST:PORT of another aggregator")
    for name in ("ca", "cert", "key"):
        parser.add_argument(f"--{name}", type=Path)
    parser.add_argument("--pid", type=int, help="its process, if it runs here")
    chosen = parser.parse_args()
    others = []
    if chosen.other:
        if not (chosen.ca and chosen.cert and chosen.key):
            parser.error("--other needs --ca, --cert and --key")
        target = Target(chosen.other, chosen.ca, chosen.cert, chosen.key, PLUGIN)
        others = [Server(chosen.other, target, chosen.pid)]
    names = [OURS, BARE, BARE_KEEPS, *(server.name for server in others)]
    print(f"| Figure | Must be | {' | '.join(names)} |\n|---|---|{'---|' * len(names)}")
    for name, figure in FIGURES.items():
        if chosen.only in (None, name):
            # Fresh servers for each: a peak of memory is of this figure alone.
            with (
                tempfile.TemporaryDirectory(prefix="bench-") as folder,
                ours(Path(folder)) as (server, _),
                bare(Path(folder), server.target) as floor,
                bare(Path(folder), server.target, Path(folder) / "kept") as keeps,
            ):
                print(f"| {' | '.join(figure([server, floor, keeps, *others]))} |", flush=True)
    if chosen.only in (None, "fleet"):
        print(f"| {' | '.join(fleet(chosen.fleet_seconds))} |", flush=True)
    if chosen.only in (None, "steady"):
        print(f"| {' | '.join(steady(chosen.fleet_seconds))} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
