"""What is taken from a decided entry before its Job goes, and what is removed when."""

from typing import Final

from reporter.launch.job import pod_grace, secret_name
from reporter.launch.seen import LATE, SeenPod
from reporter.launch.world import Findings, Present
from reporter.run.entry import HOLD, Entry, may_still_come, unjudged
from reporter.run.launch_file import Launch
from reporter.run.names import entry_name
from reporter.run.plan import Key, Plugin
from reporter.run.record import Cause, Rank
from reporter.run.results import ResultStatus

LOGS: Final = 45.0  # seconds from the last decided entry in which a Job stays for its logs
REMOVAL: Final = 30.0  # seconds beyond the grace period until what is still there is given up
LONGEST_END: Final = 600.0  # seconds of clean-up, those in which the API is away included
STATE_LOST: Final = "StateLost"
_OWN_WORDS: Final = frozenset({Rank.RESULT, Rank.WORKER})
"""Ranks of what came from the Pod."""


def clean_up(present: Present, found: Findings) -> None:
    """Say what to do about the decided entries.

    While the run goes on a Job stays until its logs were taken; at its end that has a limit.
    """
    launch, now, ending_since = present.run.launch, present.now, present.memory.ending_since
    patience = LOGS if present.world.unseen_since is None else LONGEST_END
    hurry = ending_since is not None and now >= ending_since + patience
    kept = set()
    for key, job in present.jobs.items():
        entry = present.entries[key]
        if not entry.terminal:
            continue
        pod = present.pod(key)
        unseen = _unseen_until(entry, pod, now)
        logs = key not in present.world.taken_logs and (
            unseen or (pod is not None and pod.containers)
        )
        if unseen and logs:
            found.dues.append(unseen)
        elif logs:
            found.take_logs.append(key)
        left = "its logs have not been taken yet" if logs and not hurry else ""
        found.logs_missing |= bool(left)
        found.held |= bool(left)
        if _unjudged(launch, entry):
            found.held = True
            left = "its result has not been judged yet"
        elif not _may_go(launch, entry):
            kept.add(key)
        elif job.deleting:
            left = "it is being deleted"
        elif not left and (wait := _held_until(entry, pod)) > now:
            left = "its worker may still send a result"
            found.held = True
            found.dues.append(wait)
        elif not left:
            left = "its deletion has not been confirmed yet"
            found.delete.append(job.name)
        if left:
            found.left[f"Job {job.name}"] = left
            found.grace = max(found.grace, pod_grace(launch.definition(key.plugin)))
    if ending_since is not None:
        if found.take_logs:
            found.dues.append(ending_since + LOGS)
        _find_ending_pods(present, found)
    for plugin in present.run.plan.plugins:
        found.delete_secrets += _unneeded(present, plugin, present.jobs.keys() - kept)


def _find_ending_pods(present: Present, found: Findings) -> None:
    """Say of what is gone that a Pod of it is still there.

    What went before this process began to look may have made any Pod that says so, but for one that
    no controller made. One in which nothing runs any more is a matter of the garbage collector.
    """
    entries, jobs, run = present.entries, present.jobs, present.run.name
    gone = {entry_name(run, key): key for key in entries if key not in jobs}
    for pod in present.world.pods.values():
        key = gone.get(pod.job)
        if key is None or pod.over or not pod.job_uid:
            continue
        unknown = pod.job_uid if entries[key].launched_at is not None else ""
        if pod.job_uid == present.memory.uids.get(key, unknown):
            found.left[f"Job {pod.job}"] = f"its Pod {pod.name} has not ended yet"
            found.grace = max(found.grace, pod_grace(present.run.launch.definition(key.plugin)))


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


def _unjudged(launch: Launch, entry: Entry) -> bool:
    """Whether its verdict decides and is not known yet."""
    return launch.definition(entry.key.plugin).cleanup == "success" and unjudged(entry)


def _may_go(launch: Launch, entry: Entry) -> bool:
    record = entry.record
    if record is not None and (record.reason == STATE_LOST or record.cause is Cause.STOPPED):
        return True  # its Pod may run for ever
    cleanup = launch.definition(entry.key.plugin).cleanup
    # Where no result came there is something to look at, whatever stands on the Job.
    good = (Rank.RESULT, ResultStatus.PASSED)
    passed = record is not None and (record.rank, record.verdict) == good
    return cleanup == "always" or (cleanup == "success" and passed)


def _held_until(entry: Entry, pod: SeenPod | None) -> float:
    """Return until when its Pod is left alone: its worker may be between two tries."""
    record = entry.record
    running = pod is not None and pod.ours_running
    if record is None or not running or record.reason == STATE_LOST:
        return 0.0
    return record.at + HOLD if may_still_come(record) else 0.0


def _unneeded(present: Present, plugin: Plugin, using: set[Key]) -> list[str]:
    """Return the Secrets of a plugin that no entry needs any more."""
    run = present.run.name
    needed = {
        secret_name(run, plugin, key)
        for key in plugin.keys
        if key in using or not present.entries[key].terminal
    }
    given = {secret_name(run, plugin, key) for key in plugin.keys} & present.world.secrets
    return sorted(given - needed)
