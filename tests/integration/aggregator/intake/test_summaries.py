"""`sonobuoy_results.yaml` of each plugin in the tarball of a run."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import yaml

from reporter.run.plan import Key, Plan, Plugin
from reporter.run.record import Cause
from reporter.run.state import Phase
from tests.integration.aggregator.intake.scene import ARCHIVE, JSON, REPORT, Scene, play
from tests.integration.aggregator.test_judging import (
    FAILING,
    PASSING,
    judged,
    judging,
    packed,
)

UNIT = Key("unit", "global")
CHECK = Key("check", "global")
MINE = Key("mine", "global")
LOGS1, LOGS2, LOGS3 = (Key("logs", f"node{number}") for number in (1, 2, 3))
PLAN = Plan(
    "run-1",
    (
        Plugin("unit", result_format="junit"),
        Plugin("check", result_format="adapter"),
        Plugin("mine", result_format="manual"),
        Plugin("logs", ("node1", "node2", "node3")),
    ),
)


def summaries(tarball: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the summaries in a tarball by plugin, and what is in `meta/info.json`."""
    found, info = {}, {}
    with tarfile.open(tarball) as tar:
        for member in tar:
            parts = member.name.split("/")
            content = tar.extractfile(member)
            if parts[-1] == "sonobuoy_results.yaml":
                found[parts[1]] = yaml.safe_load(content)
            elif member.name == "meta/info.json":
                info = json.load(content)
    return found, info


def test_every_kind_of_entry(tmp_path: Path) -> None:
    """Reports, an adapter's result, files of nodes, an error report and a timeout."""

    async def story(here: Scene) -> None:
        await here.put(UNIT, packed(("b.xml", PASSING), ("a/c.xml", FAILING)), ARCHIVE)
        await here.put(CHECK, b'{"status":"failure","reason":"DiskSlow","message":"80 ms"}', JSON)
        await here.put(MINE, b"items: [{name: x, status: degraded}, {name: y, status: passed}]")
        await here.put(LOGS1, packed(("d/two", b"2"), ("one", b"1")), ARCHIVE)
        await here.put(LOGS2, b'{"error":"no disk","n":3}', REPORT)
        await here.give_up(LOGS3, "silent", Cause.HEARTBEAT)
        async with judging(here):
            await judged(here, UNIT, MINE)
        await here.store.advance_run(Phase.POST_PROCESSING)
        await here.finish.package(here.store.snapshot())

    done = play(tmp_path, story, plan=PLAN)
    (tarball,) = done.layout.output.glob("*.tar.gz")
    found, info = summaries(tarball)
    passed = {"name": "opens", "status": "passed"}
    failed = {"name": "closes", "status": "failed", "details": {"failure": "is open line 7"}}
    summary = {"type": "summary"}
    assert {"plugins": ["unit", "check", "mine", "logs"]} == info
    assert {
        "name": "unit",
        "status": "failed",
        "meta": summary,
        "items": [
            {
                "name": "c.xml",
                "status": "failed",
                "meta": {"file": "results/global/a/c.xml", "type": "file"},
                "items": [{"name": "s", "status": "failed", "items": [passed, failed]}],
            },
            {
                "name": "b.xml",
                "status": "passed",
                "meta": {"file": "results/global/b.xml", "type": "file"},
                "items": [{"name": "s", "status": "passed", "items": [passed]}],
            },
        ],
    } == found["unit"]
    assert {
        "name": "check",
        "status": "failed",
        "meta": summary,
        "items": [
            {
                "name": "a.json",
                "status": "failed",
                "meta": {"file": "results/global/a.json", "type": "file"},
                "items": [
                    {
                        "name": "DiskSlow",
                        "status": "failed",
                        "meta": {"path": "results/global/a.json", "type": "verdict"},
                        "details": {"reason": "DiskSlow", "message": "80 ms"},
                    }
                ],
            }
        ],
    } == found["check"]
    assert (
        "degraded: 1, passed: 1" == found["mine"]["status"] == found["mine"]["items"][0]["status"]
    )
    late = found["logs"]["items"].pop()
    assert {
        "name": "logs",
        "status": "failed",
        "meta": summary,
        "items": [
            {
                "name": "node1",
                "status": "passed",
                "meta": {"type": "node"},
                "items": [
                    {"name": "two", "status": "passed", "meta": {"file": "results/node1/d/two"}},
                    {"name": "one", "status": "passed", "meta": {"file": "results/node1/one"}},
                ],
            },
            {
                "name": "node2",
                "status": "failed",
                "meta": {"type": "node"},
                "items": [
                    {
                        "name": "no disk",
                        "status": "failed",
                        "meta": {"file": "errors/node2/error.json", "type": "verdict"},
                        "details": {"error": "no disk"},
                    }
                ],
            },
        ],
    } == found["logs"]
    assert ("node3", "failed", "timeout") == (
        late["name"],
        late["status"],
        late["items"][0]["status"],
    )


def test_a_result_that_never_came_has_not_passed(tmp_path: Path) -> None:
    """Whatever the condition of its Job says; only what could not be told stays unknown."""

    async def story(here: Scene) -> None:
        await here.give_up(UNIT, "40 disks; its result never arrived", verdict="passed")
        await here.give_up(CHECK, "no disks found", verdict="unknown")
        await here.give_up(MINE, "silent", Cause.DEADLINE, verdict="passed")
        await here.put(LOGS1, b"1")
        await here.give_up(LOGS2, "gone; its result never arrived", verdict="passed")
        await here.put(LOGS3, b"3")
        await here.store.advance_run(Phase.POST_PROCESSING)
        await here.finish.package(here.store.snapshot())

    done = play(tmp_path, story, plan=PLAN)
    (tarball,) = done.layout.output.glob("*.tar.gz")
    found, _ = summaries(tarball)
    items = {name: found[name]["items"][0] for name in ("unit", "check", "mine")}
    assert {"unit": "failed", "check": "unknown", "mine": "failed", "logs": "failed"} == {
        name: each["status"] for name, each in found.items()
    }
    assert {"unit": "failed", "check": "unknown", "mine": "timeout"} == {
        name: each["status"] for name, each in items.items()
    }
    assert "40 disks; its result never arrived" == items["unit"]["name"]
    nodes = {each["name"]: each for each in found["logs"]["items"]}
    assert {"node1": "passed", "node2": "failed", "node3": "passed"} == {
        name: each["status"] for name, each in nodes.items()
    }
    assert "failed" == nodes["node2"]["items"][0]["status"]


def test_a_result_that_cannot_be_read_again_is_unknown_there(tmp_path: Path, monkeypatch) -> None:
    """Its reader was killed: nothing half-written is left, and its counts are the record's."""

    async def story(here: Scene) -> None:
        await here.put(UNIT, PASSING, JSON)
        for key in (CHECK, MINE, LOGS1, LOGS2, LOGS3):
            await here.give_up(key, "gone")
        async with judging(here):
            await judged(here, UNIT)
        await here.store.advance_run(Phase.POST_PROCESSING)
        monkeypatch.setattr("reporter.results.process._PAUSE", 0)
        monkeypatch.setattr(
            "reporter.results.process._PROGRAM",
            "import os, sys; os.write(int(sys.argv[2]), b'- name: \"'); os.kill(os.getpid(), 9)",
        )
        await here.finish.package(here.store.snapshot())

    done = play(tmp_path, story, plan=PLAN)
    (tarball,) = done.layout.output.glob("*.tar.gz")
    found, _ = summaries(tarball)
    assert "passed" == found["unit"]["status"]
    (item,) = found["unit"]["items"]
    assert ("unknown", "the process that read it was killed 3 times") == (
        item["status"],
        item["meta"]["error"],
    )
