"""Running gatherers: each for itself, one after the other, within limits."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from reporter.runtime.orphans import adopt, end_orphans

SECONDS = 60.0
_LOOK = 0.05
_WORDS = {0: "complete", 1: "partial", 2: "not_applicable"}


class Stop(Protocol):
    """Whether to end."""

    def is_set(self) -> bool:
        """Return whether to end."""


@dataclass(frozen=True, slots=True)
class Record:
    """What became of one gatherer: `complete`, `partial`, `not_applicable` or `failed`."""

    name: str
    status: str


def gatherers(directory: Path) -> list[Path]:
    """Return the programs in a directory, in the order of their names. Raises OSError."""
    return sorted(each for each in directory.iterdir() if not each.name.startswith("."))


def run(
    programs: list[Path], out: Path, environ: Mapping[str, str], host: Path, stop: Stop
) -> Iterator[Record]:
    """Run the programs; yield a record after each. Nothing else may be a child of this process."""
    adopt()
    for program in programs:
        if stop.is_set():
            return
        name = program.name.partition("-")[2] or program.name
        (out / name).mkdir()
        told = {
            **environ,
            "GATHER_OUT": str(out / name),
            "GATHER_HOST_ROOT": str(host),
            "GATHER_DEADLINE": str(int(time.time() + SECONDS)),
        }
        yield Record(name, _one(program, out / name, told, stop))


def _one(program: Path, out: Path, environ: Mapping[str, str], stop: Stop) -> str:
    try:
        process = subprocess.Popen(  # noqa: S603
            [program],
            stdin=subprocess.DEVNULL,
            stdout=2,
            env=dict(environ),
            cwd=out,
            process_group=0,
        )
    except OSError:
        return "failed"
    end = time.monotonic() + SECONDS
    while process.poll() is None and time.monotonic() < end and not stop.is_set():
        time.sleep(_LOOK)
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    end_orphans()
    return _WORDS.get(process.returncode, "failed")
