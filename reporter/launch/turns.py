"""Whose turn it is: groups by `order`, and not more of a plugin at once than is allowed."""

from collections.abc import Collection, Iterator, Mapping

from reporter.launch.seen import SeenJob
from reporter.launch.world import Run, World
from reporter.run.entry import Entry
from reporter.run.names import entry_name
from reporter.run.plan import Key


def turns(run: Run, entries: Mapping[Key, Entry], jobs: Collection[Key]) -> Iterator[Key]:
    """Give the entries that may be launched now and have no Job yet, in the order of the plan.

    A group begins when the ones before it are decided. Each entry that has a Job of ours in `jobs`
    is at work, whether or not its launch is stored.
    """
    plan, most = run.plan, run.launch.max_nodes_at_once
    for order in sorted({plugin.order for plugin in plan.plugins}):
        group = [plugin for plugin in plan.plugins if plugin.order == order]
        for plugin in group:
            undecided = [key for key in plugin.keys if not entries[key].terminal]
            waiting = [
                key for key in undecided if entries[key].launched_at is None and key not in jobs
            ]
            yield from waiting[: max(0, most - (len(undecided) - len(waiting)))]
        if not all(entries[key].terminal for plugin in group for key in plugin.keys):
            return


def our_jobs(run: Run, entries: Mapping[Key, Entry], world: World) -> dict[Key, SeenJob]:
    """Return the Jobs that this run has made: owner, plugin and node are equal.

    The others are left alone, whatever their labels say.
    """
    return {
        job.key: job
        for job in world.jobs.values()
        if job.owner == run.owner
        and job.key in entries
        and job.key is not None
        and job.name == entry_name(run.name, job.key)
    }
