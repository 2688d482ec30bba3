"""How long a run can take."""

import math

from reporter.run.plan import LONGEST_TIMEOUT, Plan
from reporter.run.spec import Launch


def longest(plan: Plan, launch: Launch | None) -> float:
    """Return the seconds until the last plugin is through, if each takes all the time it has.

    Plugins of one order run side by side, orders one after the other; of a plugin that is launched
    only so many nodes at once.
    """
    groups: dict[int, float] = {}
    for plugin in plan.plugins:
        start, waves = 0, 1
        if launch is not None:
            start = launch.definition(plugin.name).start_timeout_seconds
            waves = math.ceil(len(plugin.keys) / launch.max_nodes_at_once)
        seconds = waves * (start + plan.timeout_of(plugin.name))
        groups[plugin.order] = max(groups.get(plugin.order, 0.0), seconds)
    return min(sum(groups.values()), float(LONGEST_TIMEOUT))
