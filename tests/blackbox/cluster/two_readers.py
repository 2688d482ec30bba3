"""What the real `sonobuoy results` says of a tarball, beside what `status-ctl results` says."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Container
from pathlib import Path
from typing import Any

from tests.aggregators.served import ROOT
from tests.bed.binaries import program


def check_both(tarball: Path, plugin: str, raw: Container[str] = ("raw",)) -> dict[str, Any]:
    """Compare status, counts, and but for plugins in `raw` of every test all that is said of it.

    Return what we say.
    """
    told = ours(tarball, plugin)
    lines = sonobuoy(tarball, plugin, "report").splitlines()
    summary = dict(line.split(": ", 1) for line in lines[:7] if ": " in line)
    counts = Counter(told["counts"])
    assert (plugin, told["status"]) == (summary["Plugin"], summary["Status"])
    assert [counts.total(), counts["passed"], counts["failed"], counts["skipped"]] == [
        int(summary[name]) for name in ("Total", "Passed", "Failed", "Skipped")
    ]

    def facts(name: str, status: str, path: str, details: dict[str, Any]) -> tuple[str, ...]:
        return name, status, path, json.dumps(details, sort_keys=True)

    if plugin not in raw:  # whose details are the files themselves
        theirs = [json.loads(line) for line in sonobuoy(tarball, plugin, "detailed").splitlines()]
        assert sorted(
            facts(t["name"], t["status"], t["meta"]["path"], t.get("details", {})) for t in theirs
        ) == sorted(
            facts(t["name"], t["status"], "|".join(t["path"]), t["details"]) for t in told["tests"]
        )
    return told


def sonobuoy(tarball: Path, plugin: str, mode: str) -> str:
    """What the real one prints."""
    command = [str(program("sonobuoy")), "results", str(tarball), "-p", plugin, "-m", mode]
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout


def ours(tarball: Path, plugin: str) -> dict[str, Any]:
    """What we print."""
    command = [sys.executable, str(ROOT / "cmd" / "status-ctl.py"), "results", str(tarball)]
    words = ["--plugin", plugin, "--mode", "detailed", "-o", "json"]
    done = subprocess.run([*command, *words], capture_output=True, check=False, text=True)
    (found,) = json.loads(done.stdout)["plugins"]
    return dict(found)
