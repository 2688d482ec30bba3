"""What is taken from a decided entry before its Job goes, and what is removed when."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from reporter.core.launch.job import secret_name
from reporter.core.launch.names import entry_name
from reporter.core.launch.seen import SeenJob, SeenPod
from reporter.core.launch.spec import Launch
from reporter.core.launch.watched import pod_of
from reporter.core.launch.world import Run, World
from reporter.core.run.entry import HOLD, Entry, may_still_come, unjudged
from reporter.core.run.plan import Key, Plugin
from reporter.core.run.results import ResultStatus

END: Final = 60.0  # seconds from the last decided entry until the run goes on without the rest
LOGS: Final = 45.0  # of these, how long a Job stays for the sake of its logs
STATE_LOST: Final = "StateLost"


@dataclass(slots=True)
class Cleanup:
    """What to take and to remove; `left` says of what is to go, by Job, why it is still there.

    `dues` are the moments at which time alone allows more.
    """

    take_logs: list[Key] = field(default_factory=list)
    delete: list[str] = field(default_factory=list)
    delete_secrets: list[str] = field(default_factory=list)
    left: dict[str, str] = field(default_factory=dict)
    dues: list[float] = field(default_factory=list)


def clean_up(
    run: Run,
    entries: Mapping[Key, Entry],
    jobs: Mapping[Key, SeenJob],
    world: World,
    *,
    now: float,
    ending_since: float | None,
) -> Cleanup:
    """Say what to do about the decided entries; `jobs` are those of this run.

    While the run goes on a Job stays until its logs were taken; at its end that has a limit.
    """
    found, kept = Cleanup(), set()
    hurry = ending_since is not None and now >= ending_since + LOGS
    for key, job in jobs.items():
        entry = entries[key]
        if not entry.terminal:
            continue
        pod = pod_of(world, job.name, job.uid)
        logs = key not in world.taken_logs and pod is not None and bool(pod.containers)
        if logs:
            found.take_logs.append(key)
        if unjudged(entry) and run.launch.definition(key.plugin).cleanup == "success":
            found.left[job.name] = "its result has not been judged yet"
            continue
        if not _may_go(run.launch, entry):
            kept.add(key)
            if logs and not hurry:
                found.left[job.name] = "its logs have not been taken yet"
            continue
        wait = _held_until(entry, pod)
        if job.deleting:
            found.left[job.name] = "it is being deleted"
        elif logs and not hurry:
            found.left[job.name] = "its logs have not been taken yet"
        elif wait > now:
            found.left[job.name] = "its worker may still send a result"
            found.dues.append(wait)
        else:
            found.left[job.name] = "its deletion has not been confirmed yet"
            found.delete.append(job.name)
    if ending_since is not None:
        if found.take_logs:
            found.dues.append(ending_since + LOGS)
        for key in entries:
            name = entry_name(run.name, key)
            if name in world.pods and key not in jobs:
                found.left[name] = f"its Pod {world.pods[name].name} has not ended yet"
    for plugin in run.plan.plugins:
        found.delete_secrets += _unneeded(run.name, plugin, entries, jobs.keys() - kept, world)
    return found


def _may_go(launch: Launch, entry: Entry) -> bool:
    record = entry.record
    if record is not None and record.reason == STATE_LOST:
        return True
    cleanup = launch.definition(entry.key.plugin).cleanup
    passed = record is not None and record.verdict == ResultStatus.PASSED
    return cleanup == "always" or (cleanup == "success" and passed)


def _held_until(entry: Entry, pod: SeenPod | None) -> float:
    """Return until when its Pod is left alone: its worker may be between two tries."""
    record = entry.record
    running = pod is not None and pod.ours_running
    if record is None or not running or record.reason == STATE_LOST or not may_still_come(record):
        return 0.0
    return record.at + HOLD


def _unneeded(
    run: str,
    plugin: Plugin,
    entries: Mapping[Key, Entry],
    using: set[Key],
    world: World,
) -> list[str]:
    """Return the Secrets of a plugin that no entry needs any more."""
    needed = {
        secret_name(run, plugin, key)
        for key in plugin.keys
        if key in using or not entries[key].terminal
    }
    given = {secret_name(run, plugin, key) for key in plugin.keys} & world.secrets
    return sorted(given - needed)
