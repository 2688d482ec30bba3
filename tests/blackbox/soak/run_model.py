"""What the documents of runs allow, said from outside: from the plugins' own logs and the faults.

A verdict is the status of an entry with the verdict on its result.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tests.blackbox.soak.draw_runs import Plan, Plugin

Verdict = tuple[str, str]
Object = dict[str, Any]

FAILED: Verdict = ("failed", "failed")
TIMED_OUT: Verdict = ("timed_out", "timeout")
MISSING = {FAILED, ("failed", "unknown"), ("failed", "passed"), TIMED_OUT}
"""No result came: the Job's condition may say how its plugin ended."""
LOST = {FAILED, ("failed", "unknown")}
"""The kept result is no longer what was received."""
NEAR = 10.0
"""Seconds from the moment a result is written until it is in, on a busy node."""
SETTLES = 30.0
"""Seconds that deadlines and retries have left after the aggregator was away."""
GRACE = 60.0
"""Seconds that a worker of ours has at its Pod's end, and that an ended Pod's result may take."""
END = 45.0 + 20.0
"""Seconds for the logs of the plugins, and for late results."""
ACKNOWLEDGED = "wrote 200"
"""What a client of ours says, when it was told that its result is stored."""


SETTLED = ("status", "digest", "result_status")


@dataclass(frozen=True)
class Lived:
    """A plugin from outside: when its container said what at first, and how many Pods it had.

    `harmed`: its Pod, Job or worker was; `stopped`: seconds for which its worker stood still;
    `damaged`: a bit of its kept result was flipped; `ended`: it was stopped by the command.
    """

    said: Mapping[str, float]
    pods: int
    harmed: bool
    stopped: float
    damaged: bool = False
    ended: bool = False


@dataclass(frozen=True)
class World:
    """When the aggregator was away, whether its state was lost, and seconds of a sick cluster."""

    away: tuple[tuple[float, float], ...]
    lost: bool
    sick: float


def allowed(plugin: Plugin, lived: Lived, world: World) -> set[Verdict]:
    """The verdicts that the entry may end with; none where it did what is never right."""
    begun, write = lived.said.get("begin"), lived.said.get("write")
    hurt = lived.harmed or lived.ended or world.lost or bool(world.sick)
    if "second 200" in lived.said or lived.pods > 1:
        return set()  # the first result is kept, and no Job is started twice
    if ACKNOWLEDGED in lived.said and not world.lost:
        # Nothing can undo that, but a disk that does not keep it.
        return {("complete", plugin.says)} | (LOST if lived.damaged else set())
    if begun is None:
        return MISSING if hurt else set()
    missing = {TIMED_OUT} if plugin.contract == "link" else {TIMED_OUT, FAILED}
    if write is not None:
        found = {("complete", plugin.says)}
        if write + NEAR + lived.stopped > begun + plugin.timeout:
            found |= missing  # a late result may still be taken
        # Its Pod ends with it, and its worker waits for the aggregator no longer than that.
        hurt |= sum(max(0, end - max(start, write)) for start, end in world.away) > GRACE - NEAR
    elif plugin.says or plugin.end == "stay":
        found = missing
    elif plugin.contract == "done-file" and plugin.end == "exit 0":
        found = {("complete", "unknown")}  # what is there is packed: an archive without a file
    else:
        found = {FAILED}
    return found | (MISSING if hurt else set()) | (LOST if lived.damaged else set())


def of_run(entries: Iterable[Object]) -> tuple[str, str, int]:
    """The status of a run that is over, its verdict, and the exit code of who waits for it."""
    words, status = set(), "complete"
    for each in entries:
        words.add(each["result_status"])
        if each["status"] != "complete":
            status = "failed"
            words |= {"failed"} if each["result_status"] != "unknown" else set()
    verdict = "failed" if "failed" in words else "passed" if words == {"passed"} else "unknown"
    return status, verdict, 0 if verdict == "passed" else 1


def history(
    plan: Plan, documents: Iterable[Object], lived: Mapping[str, Lived], world: World
) -> str:
    """What got worse, came too late or too early, or changed after the end.

    A record gives way to one of a higher rank only.
    """
    if world.lost:
        return ""  # revisions begin anew
    ranks = {"running": 0, "timed_out": 1, "failed": 1, "worker_error": 2, "complete": 3}
    shown: dict[str, tuple[int, Object]] = {}
    decided: dict[str, tuple[float, int]] = {}
    over: tuple[float, list[Object]] | None = None
    for document in sorted(documents, key=lambda each: int(each["revision"])):
        at = datetime.fromisoformat(document["time"]).timestamp()
        for entry in document["plugins"]:
            cause = (entry["error"] or {}).get("cause")
            rank = ranks.get(cause, ranks[entry["status"]])
            before, old = shown.get(entry["key"], (0, entry))
            kept = [old[name] in ("", None, entry[name]) for name in SETTLED]
            worse = rank < before and not lived[entry["key"]].damaged
            if worse or (rank == before and not all(kept)):
                return f"{entry['key']} got worse: {old}, then {entry}"
            shown[entry["key"]] = (rank, entry)
            if rank:
                # A late result was given up before, perhaps between two looks.
                decided.setdefault(entry["key"], (at, 1 if entry["late"] else rank))
        now = [{**entry, "last-heartbeat": None} for entry in document["plugins"]]
        if over and (over[1] != now or not document["final"]):
            return f"changed after the run was over: {over}, then {now}"
        over = (over or (at, now)) if document["final"] else None
    slack = sum(end - start + SETTLES for start, end in world.away) + world.sick + 2 * NEAR
    for plugin in plan.plugins:
        seen, (at, _) = lived[plugin.key], decided[plugin.key]
        begun = seen.said.get("begin", at)
        if at > begun + plugin.timeout + GRACE + seen.stopped + slack and not seen.harmed:
            return f"{plugin.key} was decided too late: it began at {begun}, {decided}"
        for low in (each for each in plan.plugins if each.order < plugin.order):
            complete = decided[low.key][1] == ranks["complete"]
            if complete and begun < lived[low.key].said.get("write", begun):
                return f"{plugin.key} began before the result of {low.key} was there"
    if not over or over[0] > max(decided.values())[0] + END + slack:
        return f"the run was over too late: {over and over[0]}, {decided}"
    return ""
