"""What is taken from a decided entry before its Job goes, and what is removed when.

A DaemonSet goes when all its entries are decided, as their one Job would.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from reporter.core.launch.job import secret_name
from reporter.core.launch.names import Maker, entry_name
from reporter.core.launch.seen import SeenJob, SeenPod
from reporter.core.launch.situation import LATE
from reporter.core.launch.spec import Launch
from reporter.core.launch.watched import pod_of
from reporter.core.launch.world import Memory, Run, World
from reporter.core.run.entry import HOLD, Entry, may_still_come, unjudged
from reporter.core.run.plan import Key, Plugin
from reporter.core.run.record import Cause, Rank
from reporter.core.run.results import ResultStatus

END: Final = 60.0  # seconds from the last decided entry until the run goes on without the rest
LOGS: Final = 45.0  # of these, how long a Job stays for the sake of its logs
STATE_LOST: Final = "StateLost"
_OWN_WORDS: Final = frozenset({Rank.RESULT, Rank.WORKER})
"""Ranks of what came from the Pod."""


@dataclass(slots=True)
class Cleanup:
    """What to take and to remove; `left` says of what is to go why it is still there.

    `dues` are the moments at which time alone allows more.
    """

    take_logs: list[Key] = field(default_factory=list)
    delete: list[str] = field(default_factory=list)
    delete_sets: list[str] = field(default_factory=list)
    delete_secrets: list[str] = field(default_factory=list)
    left: dict[str, str] = field(default_factory=dict)
    dues: list[float] = field(default_factory=list)


def clean_up(
    run: Run,
    entries: Mapping[Key, Entry],
    jobs: Mapping[Key, SeenJob],
    world: World,
    memory: Memory,
    *,
    now: float,
) -> Cleanup:
    """Say what to do about the decided entries; `jobs` are those of this run.

    While the run goes on a Job stays until its logs were taken; at its end that has a limit.
    `left` is by kind and name.
    """
    found, kept, ending_since = Cleanup(), set(), memory.ending_since
    hurry = ending_since is not None and now >= ending_since + LOGS
    for maker, keys in _by_maker(run, jobs).items():
        job = jobs[keys[0]]
        pods = {key: pod_of(world, entry_name(run.name, key), job.uid) for key in keys}
        unseen = {key: _unseen_until(entries[key], pod, now) for key, pod in pods.items()}
        logs = [
            key
            for key, pod in pods.items()
            if entries[key].terminal
            and key not in world.taken_logs
            and (unseen[key] or (pod is not None and pod.containers))
        ]
        found.take_logs += [key for key in logs if not unseen[key]]
        found.dues += [unseen[key] for key in logs if unseen[key]]
        if not all(entries[key].terminal for key in keys):
            continue
        if any(_unjudged(run.launch, entries[key]) for key in keys):
            found.left[str(maker)] = "its result has not been judged yet"
            continue
        if not all(_may_go(run.launch, entries[key]) for key in keys):
            kept.update(keys)
            if logs and not hurry:
                found.left[str(maker)] = "its logs have not been taken yet"
            continue
        wait = max(_held_until(run.launch, entries[key], pods[key]) for key in keys)
        if job.deleting:
            found.left[str(maker)] = "it is being deleted"
        elif logs and not hurry:
            found.left[str(maker)] = "its logs have not been taken yet"
        elif wait > now:
            found.left[str(maker)] = "its worker may still send a result"
            found.dues.append(wait)
        else:
            found.left[str(maker)] = "its deletion has not been confirmed yet"
            (found.delete_sets if maker.kind == "DaemonSet" else found.delete).append(maker.name)
    if ending_since is not None:
        if found.take_logs:
            found.dues.append(ending_since + LOGS)
        found.left |= _ending_pods(run, entries, jobs, world, memory)
    for plugin in run.plan.plugins:
        found.delete_secrets += _unneeded(run.name, plugin, entries, jobs.keys() - kept, world)
    return found


def _ending_pods(
    run: Run,
    entries: Mapping[Key, Entry],
    jobs: Mapping[Key, SeenJob],
    world: World,
    memory: Memory,
) -> dict[str, str]:
    """Say of what is gone that a Pod of it is still there.

    What went before this process began to look may have made any Pod that says so, but for one that
    no controller made. One in which nothing runs any more is a matter of the garbage collector.
    """
    gone = {entry_name(run.name, key): key for key in entries if key not in jobs}
    left = {}
    for pod in world.pods.values():
        key = gone.get(pod.job)
        if key is None or pod.over or not pod.job_uid:
            continue
        unknown = pod.job_uid if entries[key].launched_at is not None else ""
        if pod.job_uid == memory.uids.get(key, unknown):
            left[str(run.maker(key))] = f"its Pod {pod.name} has not ended yet"
    return left


def _unseen_until(entry: Entry, pod: SeenPod | None, now: float) -> float:
    """Return until when the start of its plugin's container may still be seen, 0 if that is over.

    A result can be here before we see the Pod that sent it, or that the container which made it has
    started, and the kubelet tells nothing of its log before.
    """
    record = entry.record
    if record is None or record.rank not in _OWN_WORDS or now - record.at >= LATE:
        return 0.0
    if pod is not None and (pod.started_at is not None or pod.over):
        return 0.0
    return record.at + LATE


def _by_maker(run: Run, jobs: Mapping[Key, SeenJob]) -> Mapping[Maker, list[Key]]:
    """Return for each Job or DaemonSet the entries that have it."""
    found: dict[Maker, list[Key]] = {}
    for key in jobs:
        found.setdefault(run.maker(key), []).append(key)
    return found


def _unjudged(launch: Launch, entry: Entry) -> bool:
    """Whether its verdict decides and is not known yet."""
    return launch.definition(entry.key.plugin).cleanup == "success" and unjudged(entry)


def _may_go(launch: Launch, entry: Entry) -> bool:
    record = entry.record
    if record is not None and record.reason == STATE_LOST:
        return True
    cleanup = launch.definition(entry.key.plugin).cleanup
    # Where no result came there is something to look at, whatever stands on the Job.
    good = (Rank.RESULT, ResultStatus.PASSED)
    passed = record is not None and (record.rank, record.verdict) == good
    return cleanup == "always" or (cleanup == "success" and passed)


def _held_until(launch: Launch, entry: Entry, pod: SeenPod | None) -> float:
    """Return until when its Pod is left alone: its worker may be between two tries.

    Beside a plugin that a DaemonSet starts again and again it may be in the middle of one.
    """
    record = entry.record
    running = pod is not None and pod.ours_running
    if record is None or not running or record.reason == STATE_LOST:
        return 0.0
    restarted = record.cause is Cause.POD_FAILED and entry.key.plugin in launch.daemon_sets
    return record.at + HOLD if restarted or may_still_come(record) else 0.0


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
