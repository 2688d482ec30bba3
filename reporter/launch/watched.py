"""What becomes of the entries that were launched: their starts, their failures, what is shown."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from reporter.common.text import go_duration
from reporter.launch.seen import SeenJob, SeenPod
from reporter.launch.situation import LATE, MINUTE, situation
from reporter.launch.world import Memory, Row, Run, Situation, Track, World
from reporter.run.entry import RETURN_GRACE, Entry
from reporter.run.launcher_status import PodShown
from reporter.run.names import entry_name
from reporter.run.plan import GLOBAL, Key
from reporter.run.record import Failure

_BEFORE_START: Final = frozenset(
    {Row.REFUSED, Row.STARTING, Row.SCHEDULING, Row.NODE, Row.IMAGE, Row.SETUP}
)
_ENDING: Final = frozenset({Row.UPLOADING, Row.ENDED, Row.TAKEN})


@dataclass(slots=True)
class Watched:
    """What was found; `dues` are the moments at which time alone changes something."""

    start: dict[Key, float] = field(default_factory=dict)
    fail: dict[Key, Failure] = field(default_factory=dict)
    tracks: dict[Key, Track] = field(default_factory=dict)
    shown: dict[Key, PodShown] = field(default_factory=dict)
    dues: list[float] = field(default_factory=list)


def watch(
    run: Run,
    entries: Mapping[Key, Entry],
    jobs: Mapping[Key, SeenJob],
    world: World,
    memory: Memory,
    *,
    now: float,
) -> Watched:
    """Look at every open entry that was launched; `jobs` are those of this run."""
    found = Watched()
    for key, entry in entries.items():
        launched = entry.launched_at
        if launched is None or entry.terminal:
            continue
        name, uid = entry_name(run.name, key), memory.uids.get(key, "")
        track, job, pod = memory.tracks.get(key), jobs.get(key), pod_of(world, name, uid)
        if entry.started_at is None and pod is not None and pod.started_at is not None:
            # A node's clock may be wrong, and nothing begins before its launch.
            began = max(launched, min(pod.started_at + world.skew, now))
            found.start[key] = max(began, _returned(run, key, began, memory, now=now))
        refusal = world.refusals.get(uid) if uid else None
        started = entry.started_at is not None or key in found.start
        per_node = key.node != GLOBAL
        seen = situation(name, job, pod, refusal, track, started=started, per_node=per_node)
        found.tracks[key] = track = _followed(track, seen, pod, now=now)
        due = None if seen.patience is None else track.since + seen.patience
        started_by = None
        if seen.row in _BEFORE_START and entry.started_at is None and key not in found.start:
            started_by = _start_due(run, entry.key, launched, memory, now=now)
        if due is not None and due <= now:
            found.fail[key] = _failure(seen, seen.text, now=now)
        elif started_by is not None and started_by <= now:
            found.fail[key] = _failure(seen, _not_started(run, key, seen), now=now)
        else:
            found.dues += [moment for moment in (due, started_by) if moment is not None]
        if pod is None and seen.row is Row.STARTING and now < launched + LATE:
            found.dues.append(launched + LATE)  # a Job has no Pod in its first moments
        else:
            found.shown[key] = _shown(entry, pod, track, world.skew)
    return found


def pod_of(world: World, name: str, job_uid: str) -> SeenPod | None:
    """Return an entry's Pod of that very Job, once that was seen."""
    return world.pods.get((name, job_uid)) if job_uid else None


def _followed(track: Track | None, seen: Situation, pod: SeenPod | None, *, now: float) -> Track:
    since, name, end = now, "", None
    if track is not None:
        name, end = track.pod, track.end
        if track.situation.row is seen.row:
            since = track.since
    if seen.row in _ENDING:
        end = seen
    return Track(seen, since, pod.name if pod is not None else name, end)


def _start_due(run: Run, key: Key, launched: float, memory: Memory, *, now: float) -> float:
    """Return when it is over with starting; the time in which nothing was seen does not count."""
    timeout = run.launch.definition(key.plugin).start_timeout_seconds
    away = sum(end - max(begin, launched) for begin, end in memory.outages if end > launched)
    first = now if memory.first_look is None else memory.first_look
    return max(launched + timeout + away, first + MINUTE)


def _returned(run: Run, key: Key, began: float, memory: Memory, *, now: float) -> float:
    """Return when it began at the earliest, if that was while nobody was here to take its result.

    Its worker is between two tries: of its time so much is left that it can come back.
    """
    first = memory.first_look
    if first is None or began >= first:
        return began
    return min(now, first + RETURN_GRACE - run.plan.timeout_of(key.plugin))


def _not_started(run: Run, key: Key, seen: Situation) -> str:
    timeout = run.launch.definition(key.plugin).start_timeout_seconds
    return f"not started within {go_duration(timeout)}: {seen.text}"


def _failure(seen: Situation, text: str, *, now: float) -> Failure:
    return Failure(
        "final", now, text, seen.cause, seen.reason or "StartTimeout", verdict=seen.verdict
    )


def _shown(entry: Entry, pod: SeenPod | None, track: Track, skew: int) -> PodShown:
    seen = track.situation
    if pod is None:
        return PodShown(track.pod, "", "", seen.reason, seen.message, track.since, 0)
    since: float | None = track.since
    if seen.row is Row.RUNNING:
        told = pod.started_at if pod.unready_at is None else pod.unready_at
        since = None if told is None else told + skew
        if pod.unready_at is None and entry.started_at is not None:
            since = entry.started_at
    return PodShown(pod.name, pod.node, pod.phase, seen.reason, seen.message, since, pod.restarts)
