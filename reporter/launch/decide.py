"""What the launcher does next: a function of the plan, what is stored, and what is seen.

Level-based: each decision is made from the present alone, so that an event that was lost, came
twice or late, and a restart, make no difference. `Memory` only has since when something stands.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from math import inf
from typing import Final

from reporter.launch.absence import after_absence, still_counting
from reporter.launch.cleanup import END, STATE_LOST, clean_up
from reporter.launch.turns import our_jobs, turns
from reporter.launch.watched import watch
from reporter.launch.world import Decision, Memory, Run, World
from reporter.run.entry import Entry, State
from reporter.run.names import entry_name
from reporter.run.plan import Key
from reporter.run.record import Cause, Failure

LONGEST_END: Final = 600.0  # seconds of clean-up, those in which the API is away included
_LOST: Final = (
    "state lost: Jobs of this run exist, but the aggregator has no record of having launched them"
)


def decide(
    run: Run,
    entries: Mapping[Key, Entry],
    world: World,
    memory: Memory,
    *,
    now: float,
    begun: bool,
) -> Decision:
    """Say what to do now. `entries` has every key of the plan.

    `begun`: whether it is stored that launching has begun. Without it a launcher that was killed
    after its first request would take what it has made for the work of one whose state is lost.
    """
    jobs = our_jobs(run, entries, world)
    ending = all(entry.terminal for entry in entries.values())
    # The run stays open for these, so there is no hurry.
    ending = ending and all(entries[key].state is State.COMPLETE for key in world.uploading)
    memory = after_absence(memory, world, now, ending=ending)
    memory = replace(memory, uids={**memory.uids, **{key: job.uid for key, job in jobs.items()}})
    begun = begun or any(entry.launched_at is not None for entry in entries.values())
    if not ending and not begun and world.unseen_since is None:
        return _beginning(entries, memory, now, lost=bool(jobs))
    watched = watch(run, entries, jobs, world, memory, now=now)
    cleared = clean_up(run, entries, jobs, world, memory, now=now)
    if world.unseen_since is not None:
        end = inf if memory.ending_since is None else memory.ending_since + LONGEST_END
        next_look = end if now < end < inf else None
        return Decision(
            replace(memory, next_look=next_look),
            start=watched.start,
            shown=watched.shown,
            next_look=next_look,
            through=now >= end,
            stays=cleared.left if now >= end else {},
        )
    create, refused = _launches(run, entries, jobs, world, now=now)
    dues = [*watched.dues, *cleared.dues]
    late, left = False, bool(cleared.left or cleared.delete_secrets)
    if memory.ending_since is not None and left:
        dues.append(memory.ending_since + END)
        late = now >= memory.ending_since + END
    next_look = min((due for due in dues if due > now), default=None)
    memory = replace(
        memory,
        tracks=watched.tracks,
        next_look=next_look,
        outages=still_counting(memory, entries.values()),
    )
    return Decision(
        memory,
        create=tuple(create),
        adopt=tuple(key for key in jobs if _unlaunched(entries[key])),
        start=watched.start,
        fail=watched.fail | refused,
        take_logs=tuple(cleared.take_logs),
        delete=tuple(cleared.delete),
        delete_secrets=tuple(cleared.delete_secrets),
        shown=watched.shown,
        next_look=next_look,
        through=ending and (late or not left),
        stays=cleared.left if late else {},
    )


def _beginning(entries: Mapping[Key, Entry], memory: Memory, now: float, *, lost: bool) -> Decision:
    """Begin, unless somebody has begun before and what he knew is lost."""
    if not lost and not any(_is_lost(entry) for entry in entries.values()):
        return Decision(memory, begin=True)
    failure = Failure("final", now, _LOST, Cause.LOST, STATE_LOST)
    return Decision(
        memory, fail={key: failure for key, entry in entries.items() if not entry.terminal}
    )


def _launches(
    run: Run,
    entries: Mapping[Key, Entry],
    jobs: Collection[Key],
    world: World,
    *,
    now: float,
) -> tuple[list[Key], dict[Key, Failure]]:
    """Say whose Jobs to create, and who cannot have one."""
    create, refused = [], {}
    for key in turns(run, entries, jobs):
        name = entry_name(run.name, key)
        if name in world.jobs:
            text = f"Job {name} exists already and does not belong to this run"
            refused[key] = Failure("final", now, text, Cause.START_FAILED, "NameTaken")
        elif name in world.denied:
            text = f"Job {name} was refused: {world.denied[name]}"
            refused[key] = Failure("final", now, text, Cause.START_FAILED, "JobRefused")
        else:
            create.append(key)
    return create, refused


def _unlaunched(entry: Entry) -> bool:
    return entry.launched_at is None and not entry.terminal


def _is_lost(entry: Entry) -> bool:
    return entry.record is not None and entry.record.reason == STATE_LOST
