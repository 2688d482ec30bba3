"""Saying the same thing at most once a minute, so that trouble that lasts does not fill the log."""

from collections import OrderedDict
from collections.abc import Callable
from math import inf
from typing import Any

EVERY = 60.0
_MOST = 20
"""Lines of one event in that time, whatever they are about: a worker may have many names."""
_REMEMBERED = 1_024
"""Different things; peers choose some of them, so there is an end to what is kept."""


class RateLimitedLog:
    """Remembers when something was last said, and how often it was swallowed since."""

    def __init__(self, every: float = EVERY) -> None:
        self._every = every
        self._said: OrderedDict[object, tuple[float, int]] = OrderedDict()
        self._lines: dict[str, tuple[float, int]] = {}

    def say(
        self,
        now: float,
        write: Callable[..., Any],
        event: str,
        *,
        about: object = None,
        **fields: Any,
    ) -> None:
        """Log `event` by `write`, unless it was said about the same thing a moment ago.

        `now` is monotonic. The next one has the number of those that were left out as `repeated`.
        """
        known = (event, about)
        last, swallowed = self._said.get(known, (-inf, 0))
        began, lines = self._lines.get(event, (-inf, 0))
        if now - began >= self._every:
            began, lines = now, 0
        if now - last < self._every or lines >= _MOST:
            self._said[known] = (last, swallowed + 1)
        else:
            if swallowed:
                fields["repeated"] = swallowed
            write(event, **fields)
            self._said[known], self._lines[event] = (now, 0), (began, lines + 1)
            self._said.move_to_end(known)
        while len(self._said) > _REMEMBERED:
            self._said.popitem(last=False)
