"""`status-ctl results` on tarballs that the real Sonobuoy has made, beside what Sonobuoy says.

`python -m tests.bed.sonobuoy_recorder tests/blackbox/ctl/recorded_sonobuoy.json` records anew.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.archives.text_tar import pack
from tests.blackbox.ctl.scripted import Home

RECORD = json.loads(Path(__file__).with_name("recorded_sonobuoy.json").read_text())
PLUGINS = [(run, plugin) for run in RECORD for plugin in RECORD[run]["said"]]


@pytest.fixture(scope="module")
def tarballs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """What was recorded, packed again."""
    folder = tmp_path_factory.mktemp("recorded")
    return {run: pack(RECORD[run]["members"], folder / f"{run}.tar.gz") for run in RECORD}


def results(home: Home, tarball: Path, *words: str) -> tuple[int, dict[str, Any]]:
    """The exit code, and what is said of each plugin."""
    code, out, err = home.run("results", str(tarball), *words, "--mode", "detailed", "-o", "json")
    assert "" == err
    return code, {each["name"]: each for each in json.loads(out)["plugins"]}


def theirs(report: str) -> dict[str, str]:
    """The head of what `sonobuoy results` prints."""
    return dict(line.split(": ", 1) for line in report.splitlines() if ": " in line)


@pytest.mark.parametrize(("run", "plugin"), PLUGINS)
def test_a_plugin(home: Home, tarballs: dict[str, Path], run: str, plugin: str) -> None:
    """Status, counts, and of every test its name, status, place and details."""
    _, found = results(home, tarballs[run], "--plugin", plugin)
    said, told = RECORD[run]["said"][plugin], found[plugin]
    summary, counts = theirs(said["report"]), Counter(told["counts"])

    assert [plugin] == list(found)
    assert (plugin, told["status"]) == (summary["Plugin"], summary["Status"])
    assert {
        "Total": counts.total(),
        "Passed": counts["passed"],
        "Failed": counts["failed"] + counts["timeout"],
        "Skipped": counts["skipped"],
    } == {name: int(summary[name]) for name in ("Total", "Passed", "Failed", "Skipped")}
    failed = said["report"].partition("Failed tests:\n")[2].split("\n")
    assert sorted(filter(None, failed)) == sorted(
        each["name"] for each in told["tests"] if each["status"] in {"failed", "timeout"}
    )

    def facts(*parts: Any) -> str:
        return json.dumps(parts, sort_keys=True)

    # Of an item that stands for a file Sonobuoy prints the file itself.
    items = [json.loads(each) for each in said["detailed"].splitlines() if each[:1] == "{"]
    ours = [each for each in told["tests"] if plugin != "logs" and each["status"] != "timeout"]
    assert sorted(
        facts(each["name"], each["status"], each["meta"]["path"], each.get("details", {}))
        for each in items
    ) == sorted(
        facts(each["name"], each["status"], "|".join(each["path"]), each["details"])
        for each in ours
    )


@pytest.mark.parametrize(("run", "code"), [("passed", 0), ("failed", 1), ("timeout", 1)])
def test_a_run(home: Home, tarballs: dict[str, Path], run: str, code: int) -> None:
    """Every plugin that Sonobuoy knows, and the verdict."""
    ended, found = results(home, tarballs[run])

    assert (code, set(RECORD[run]["said"])) == (ended, set(found))
