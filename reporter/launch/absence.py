"""The time in which nothing was seen, which counts for nobody: the API was away, or we were."""

from collections.abc import Iterable
from dataclasses import replace
from math import inf

from reporter.launch.situation import LATE
from reporter.launch.world import Memory, World
from reporter.run.entry import Entry


def after_absence(memory: Memory, world: World, now: float, *, ending: bool) -> Memory:
    """Note this look, and move what is remembered by the time in which nothing was seen.

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
    )


def still_counting(memory: Memory, entries: Iterable[Entry]) -> tuple[tuple[float, float], ...]:
    """Return the outages that an entry which has not started yet has lived through."""
    if not memory.outages:
        return ()
    oldest = min(
        (
            entry.launched_at
            for entry in entries
            if entry.launched_at is not None and entry.started_at is None and not entry.terminal
        ),
        default=inf,
    )
    return tuple(outage for outage in memory.outages if outage[1] > oldest)
