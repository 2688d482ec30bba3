"""What a container wrote and took, read from the node's files from outside."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

LOG_LINE = re.compile(r"(\S+?)(\.\d+)?(Z|[+-]\d\d:\d\d) (stdout|stderr) ([FP]) (.*)")


@dataclass(frozen=True)
class LogLine:
    """A line of a container's output with containerd's stamp, in nanoseconds since 1970."""

    time_ns: int
    stream: str
    text: str


@dataclass(frozen=True)
class Usage:
    """What a container's main process took: peak resident bytes (VmHWM) and CPU seconds."""

    peak_bytes: int
    cpu_seconds: float


def process_usage(pid: int) -> Usage | None:
    """What a living process took so far; None where it has ended."""
    process = Path("/proc") / str(pid)
    try:
        peak = re.search(r"VmHWM:\s+(\d+) kB", (process / "status").read_text())
        fields = (process / "stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    if peak is None:
        # A zombie has no memory.
        return None
    ticks = int(fields[11]) + int(fields[12])
    return Usage(int(peak[1]) * 1024, ticks / os.sysconf("SC_CLK_TCK"))


def cgroup_peak(pid: int) -> int:
    """The most bytes that the control group of a living process has had: version 1, else 2."""
    groups = dict(line.split(":", 2)[1:] for line in _lines(Path("/proc") / str(pid) / "cgroup"))
    version_1 = groups.get("memory")
    place, file = ("memory", "memory.max_usage_in_bytes") if version_1 else ("", "memory.peak")
    group = (version_1 or groups[""]).lstrip("/")
    return int((Path("/sys/fs/cgroup") / place / group / file).read_text())


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines()


def log_lines(text: str) -> list[LogLine]:
    """Parse containerd's log format; a line it has cut in pieces (tag P) is joined again."""
    lines: list[LogLine] = []
    partial = ""
    for line in text.splitlines():
        found = LOG_LINE.fullmatch(line)
        if found is None:
            continue
        second, fraction, zone, stream, tag, content = found.groups()
        if tag == "P":
            partial += content
            continue
        moment = datetime.fromisoformat(second + zone.replace("Z", "+00:00"))
        nanoseconds = int((fraction or ".")[1:].ljust(9, "0"))
        stamp = int(moment.timestamp()) * 1_000_000_000 + nanoseconds
        lines.append(LogLine(stamp, stream, partial + content))
        partial = ""
    return lines
