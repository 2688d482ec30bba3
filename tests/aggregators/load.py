"""The load generator: a Go program, so that it costs little beside the server it loads."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.aggregators.served import Aggregator
from tests.bed.binaries import program


@dataclass(frozen=True)
class Target:
    """A server and how to be let in: paths of PEM files."""

    url: str
    ca: Path
    cert: Path
    key: Path
    plugin: str


def target(aggregator: Aggregator, plugin: str) -> Target:
    """Return an aggregator as the workers of a plugin are let in."""
    folder = aggregator.certificates
    pair = (folder / f"{plugin}.crt", folder / f"{plugin}.key")
    return Target(aggregator.url, folder / "ca.pem", *pair, plugin)


@dataclass(frozen=True)
class Load:
    """What one load run saw. `statuses` by kind and status, `milliseconds` by kind and rank.

    `digests` (Base64) and `progress` are by node: of results that were answered with 200 or 409,
    and the last update that was sent and the last that was answered with 200.
    """

    statuses: dict[str, dict[str, int]]
    errors: dict[str, int]
    milliseconds: dict[str, dict[str, float]]
    seconds: float
    bytes: int
    digests: dict[str, str]
    progress: dict[str, dict[str, int]]

    def answered(self, kind: str, status: int = 200) -> int:
        """Return how many requests of a kind were answered so."""
        return self.statuses.get(kind, {}).get(str(status), 0)


def run(target: Target, mode: str, *, timeout: float = 900.0, **options: Any) -> Load:
    """Run one mode to its end; `options` are flags of the program."""
    with start(target, mode, **options) as process:
        return finish(process, timeout)


def finish(process: subprocess.Popen[bytes], timeout: float) -> Load:
    """Wait for the end of a mode that was started, and return what it saw."""
    try:
        out, _ = process.communicate(timeout=timeout)
    finally:
        process.kill()
    assert 0 == process.returncode, out
    found = json.loads(out)
    return Load(**{"digests": {}, "progress": {}} | found)


def start(target: Target, mode: str, **options: Any) -> subprocess.Popen[bytes]:
    """Start one mode."""
    flags = {
        "url": target.url,
        "ca": target.ca,
        "cert": target.cert,
        "key": target.key,
        "plugin": target.plugin,
        "mode": mode,
        **{name.replace("_", "-"): value for name, value in options.items()},
    }
    command = [str(program("load")), *(f"-{name}={value}" for name, value in flags.items())]
    return subprocess.Popen(command, stdout=subprocess.PIPE)
