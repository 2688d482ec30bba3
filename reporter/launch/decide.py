"""What the launcher does next: a function of the plan, what is stored, and what is seen.

Level-based: each decision is made from the present alone, so that an event that was lost, came
twice or late, and a restart, make no difference. `Memory` has what the present does not show: since
when something stands, the UIDs of our Jobs, how a Pod that is gone had ended.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from math import inf
from typing import Final

from reporter.common.text import go_duration
from reporter.launch.cleanup import LONGEST_END, REMOVAL, STATE_LOST, clean_up
from reporter.launch.seen import LATE, SeenPod
from reporter.launch.situation import MINUTE, Row, Situation, Track, situation
from reporter.launch.world import Decision, Findings, LaunchedRun, Memory, Present, World
from reporter.run.entry import RETURN_GRACE, Entry, State
from reporter.run.names import entry_name
from reporter.run.plan import GLOBAL, Key
from reporter.run.record import Cause, Failure
from reporter.run.state import UNREACHABLE, PodState

MOUNTED: Final = 10.0  # seconds after the launch in which a Pod usually has what it mounts
HEARD: Final = 20.0  # seconds after the start in which a worker that can reach us is heard
_NOT_MOUNTED: Final = frozenset({"ContainerCreating", "PodInitializing", ""})
_BEFORE_START: Final = frozenset(
    {Row.REFUSED, Row.STARTING, Row.SCHEDULING, Row.NODE, Row.IMAGE, Row.SETUP}
)
_ENDING: Final = frozenset({Row.UPLOADING, Row.ENDED, Row.TAKEN_AWAY})
_LOST: Final = (
    "state lost: the plugins of this run were started, but the aggregator has no record of it; "
    "delete the run and start a new one"
)


def decide(
    run: LaunchedRun,
    entries: Mapping[Key, Entry],
    world: World,
    memory: Memory,
    *,
    now: float,
    begun: bool,
    lost: bool = False,
) -> Decision:
    """Say what to do now. `entries` has every key of the plan.

    `begun`: whether it is stored that launching has begun. Without it a launcher that was killed
    after its first request would take what it has made for the work of one whose state is lost.
    `lost`: whether another one has begun, of whose state we have nothing.
    """
    jobs = {
        key: job
        for job in world.jobs.values()
        if (key := job.key) in entries and key and job.made_for(key, run.name, run.owner)
    }
    ending = all(entry.terminal for entry in entries.values())
    # The run stays open for these, so there is no hurry.
    ending = ending and all(entries[key].state is State.COMPLETE for key in world.uploading)
    memory = after_absence(memory, world, now, ending=ending)
    memory = replace(memory, uids={**memory.uids, **{key: job.uid for key, job in jobs.items()}})
    begun = begun or any(entry.launched_at is not None for entry in entries.values())
    if not ending and not begun and world.unseen_since is None:
        return _beginning(entries, memory, now, lost=lost or bool(jobs))
    present, found = Present(run, entries, jobs, world, memory, now), Findings()
    _watch(present, found)
    clean_up(present, found)
    if world.unseen_since is not None:
        end = inf if memory.ending_since is None else memory.ending_since + LONGEST_END
        next_look = end if now < end < inf else None
        return Decision(
            replace(memory, next_look=next_look),
            start=found.start,
            pods=found.pods,
            next_look=next_look,
            logs_taken=ending and not found.logs_missing,
            through=now >= end,
            stays=found.left if now >= end else {},
        )
    create = _launches(present, found)
    removing = None
    if ending and not found.held:
        removing = now if memory.removing_since is None else memory.removing_since
    late, left = False, bool(found.left or found.delete_secrets)
    if removing is not None and left:
        end = removing + found.grace + REMOVAL
        found.dues.append(end)
        late = now >= end
    next_look = min((due for due in found.dues if due > now), default=None)
    memory = replace(
        memory,
        tracks=found.tracks,
        next_look=next_look,
        removing_since=removing,
        outages=_still_counting(memory, entries.values()),
    )
    return Decision(
        memory,
        create=create,
        adopt=tuple(
            key for key in jobs if entries[key].launched_at is None and not entries[key].terminal
        ),
        start=found.start,
        fail=found.fail,
        take_logs=tuple(found.take_logs),
        delete=tuple(found.delete),
        delete_secrets=tuple(found.delete_secrets),
        pods=found.pods,
        unheard=found.unheard,
        next_look=next_look,
        logs_taken=ending and not found.logs_missing,
        through=ending and (late or not left),
        stays=found.left if late else {},
    )


def _beginning(entries: Mapping[Key, Entry], memory: Memory, now: float, *, lost: bool) -> Decision:
    """Begin, unless somebody has begun before and what he knew is lost."""
    if not lost and not any(
        entry.record is not None and entry.record.reason == STATE_LOST for entry in entries.values()
    ):
        return Decision(memory, begin=True)
    failure = Failure("final", now, _LOST, Cause.LOST, STATE_LOST)
    return Decision(
        memory, fail={key: failure for key, entry in entries.items() if not entry.terminal}
    )


# -- whose turn it is ----------------------------------------------------------------------------


def _turns(present: Present) -> Iterator[Key]:
    """Give the entries that may be launched now and have no Job yet, in the order of the plan.

    A group begins when the ones before it are decided. Each entry that has a Job of ours is at
    work, whether or not its launch is stored.
    """
    entries, plan = present.entries, present.run.plan
    for order in sorted({plugin.order for plugin in plan.plugins}):
        group = [plugin for plugin in plan.plugins if plugin.order == order]
        for plugin in group:
            undecided = [key for key in plugin.keys if not entries[key].terminal]
            waiting = [
                key
                for key in undecided
                if entries[key].launched_at is None and key not in present.jobs
            ]
            at_work = len(undecided) - len(waiting)
            yield from waiting[: max(0, present.run.launch.max_nodes_at_once - at_work)]
        if not all(entries[key].terminal for plugin in group for key in plugin.keys):
            return


def _launches(present: Present, found: Findings) -> tuple[Key, ...]:
    """Say whose Jobs to create; who cannot have one fails."""
    create = []
    for key in _turns(present):
        denial = present.world.denied.get(entry_name(present.run.name, key))
        if denial is None:
            create.append(key)
        else:
            found.fail[key] = Failure(
                "final", present.now, denial.text, Cause.START_FAILED, denial.reason
            )
    return tuple(create)


# -- what becomes of those that were launched ----------------------------------------------------


def _watch(present: Present, found: Findings) -> None:
    """Look at every open entry that was launched."""
    run, world, memory, now = present.run, present.world, present.memory, present.now
    for key, entry in present.entries.items():
        launched = entry.launched_at
        if launched is None or entry.terminal:
            continue
        track, pod = memory.tracks.get(key), present.pod(key)
        if entry.started_at is None and pod is not None and pod.started_at is not None:
            # A node's clock may be wrong, and nothing begins before its launch.
            began = max(launched, min(pod.started_at + world.skew, now))
            found.start[key] = max(began, _returned(present, key, began))
        started = entry.started_at is not None or key in found.start
        obstacle = "" if key in world.heard else world.obstacles.get(key, "")
        seen = situation(
            entry_name(run.name, key),
            present.jobs.get(key),
            pod,
            world.refusals.get(memory.uids.get(key) or "-"),
            track,
            started=started,
            per_node=key.node != GLOBAL,
            obstacle=obstacle,
        )
        found.tracks[key] = track = _followed(track, seen, pod, now=now)
        due = None if seen.patience is None else track.since + seen.patience
        started_by = None
        if seen.row in _BEFORE_START and not started:
            started_by = _start_due(present, key, launched)
        if due is not None and due <= now:
            found.fail[key] = _failure(seen, seen.text, now=now)
        elif started_by is not None and started_by <= now:
            limit = go_duration(run.launch.definition(key.plugin).start_timeout_seconds)
            found.fail[key] = _failure(seen, f"not started within {limit}: {seen.text}", now=now)
        else:
            found.dues += [moment for moment in (due, started_by) if moment is not None]
        if pod is None and seen.row is Row.STARTING and now < launched + LATE:
            found.dues.append(launched + LATE)  # a Job has no Pod in its first moments
        else:
            found.pods[key] = shown = _pod_state(entry, pod, track, world.skew)
            if pod is not None and _is_mute(present, key, pod, seen.row):
                if obstacle:
                    found.pods[key] = replace(shown, reason=UNREACHABLE, message=obstacle)
                if now >= max(entry.started_at or now, memory.first_look or now) + HEARD:
                    found.unheard[key] = pod


def _is_mute(present: Present, key: Key, pod: SeenPod, row: Row) -> bool:
    """Say whether our container of it is at work and is to send heartbeats, but none has come."""
    beats = present.run.launch.definition(key.plugin).heartbeats and key not in present.world.heard
    ours = bool(pod.uploader) and pod.ours_running
    return beats and ours and row in {Row.RUNNING, Row.UPLOADING}


def _followed(track: Track | None, seen: Situation, pod: SeenPod | None, *, now: float) -> Track:
    since, name, end = now, "", None
    if track is not None:
        name, end = track.pod, track.end
        if track.situation.row is seen.row:
            since = track.since
    if seen.row in _ENDING:
        end = seen
    return Track(seen, since, pod.name if pod is not None else name, end)


def _start_due(present: Present, key: Key, launched: float) -> float:
    """Return when it is over with starting; the time in which nothing was seen does not count."""
    timeout = present.run.launch.definition(key.plugin).start_timeout_seconds
    outages = present.memory.outages
    away = sum(end - max(begin, launched) for begin, end in outages if end > launched)
    first = present.memory.first_look
    return max(launched + timeout + away, (present.now if first is None else first) + MINUTE)


def _returned(present: Present, key: Key, began: float) -> float:
    """Return when it began at the earliest, if that was while nobody was here to take its result.

    Its worker is between two tries: of its time so much is left that it can come back.
    """
    first = present.memory.first_look
    if first is None or began >= first:
        return began
    return min(present.now, first + RETURN_GRACE - present.run.plan.timeout_of(key.plugin))


def _failure(seen: Situation, text: str, *, now: float) -> Failure:
    return Failure(
        "final", now, text, seen.cause, seen.reason or "StartTimeout", verdict=seen.verdict
    )


def _pod_state(entry: Entry, pod: SeenPod | None, track: Track, skew: int) -> PodState:
    seen = track.situation
    if pod is None:
        return PodState(track.pod, "", "", seen.reason, seen.message, track.since, 0)
    since: float | None = track.since
    if seen.row is Row.RUNNING:
        began = pod.started_at if pod.unready_at is None else pod.unready_at
        since = None if began is None else began + skew
        if pod.unready_at is None and entry.started_at is not None:
            since = entry.started_at
    return PodState(pod.name, pod.node, pod.phase, seen.reason, seen.message, since, pod.restarts)


def waiting_for_mounts(
    pods: Mapping[Key, PodState], entries: Mapping[Key, Entry], *, now: float
) -> list[Key]:
    """List whose Pods wait for what they mount, for longer than usual: only an Event says why."""
    found = []
    for key, pod in pods.items():
        launched = entries[key].launched_at
        waits = pod.phase == "Pending" and pod.node and pod.reason in _NOT_MOUNTED
        if waits and launched is not None and now >= launched + MOUNTED:
            found.append(key)
    return found


# -- the time in which nothing was seen, which counts for nobody ---------------------------------


def after_absence(memory: Memory, world: World, now: float, *, ending: bool) -> Memory:
    """Note this look, and move what is remembered by the time in which the API was away, or we.

    Who looks later than he had to was stopped: what he takes for the present is old.
    """
    first, last, due = memory.first_look, memory.last_look, memory.next_look
    over = memory.ending_since
    if ending and over is None:
        over = now
    memory = replace(
        memory,
        first_look=now if first is None else first,
        last_look=now,
        ending_since=over if ending else None,
    )
    away, unseen = memory.away_since, world.unseen_since
    if unseen is not None:
        return replace(memory, away_since=unseen if away is None else min(away, unseen))
    if away is None:
        if last is None or due is None or now <= due + LATE:
            return memory
        away = last

    def moved(since: float) -> float:
        return since + max(0.0, now - max(away, since))

    return replace(
        memory,
        tracks={
            key: replace(track, since=moved(track.since)) for key, track in memory.tracks.items()
        },
        away_since=None,
        outages=(*memory.outages, (away, now)),
        ending_since=None if memory.ending_since is None else moved(memory.ending_since),
        removing_since=None if memory.removing_since is None else moved(memory.removing_since),
    )


def _still_counting(memory: Memory, entries: Iterable[Entry]) -> tuple[tuple[float, float], ...]:
    """Return the outages that an entry which has not started yet has lived through."""
    oldest = min(
        (
            entry.launched_at
            for entry in entries
            if entry.launched_at is not None and entry.started_at is None and not entry.terminal
        ),
        default=inf,
    )
    return tuple(outage for outage in memory.outages if outage[1] > oldest)
