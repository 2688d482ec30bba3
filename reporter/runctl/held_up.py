"""What Pods wait for while somebody waits for a run: told in lines, each once."""

import time
from collections.abc import Callable

from reporter.run.view import Document, held_up

STANDS = 3.0
"""Seconds after which it is no mere step of a start."""


class HeldUp:
    """Hears each document of a run; `see` returns what is worth a line now.

    Of many nodes with the same trouble in one plugin the first is named.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since: dict[str, float] = {}
        self._told: set[tuple[str, str]] = set()

    def see(self, document: Document) -> list[str]:
        """Return the new lines."""
        now, found = self._clock(), held_up(document)
        self._since = {each.key: self._since.get(each.key, now) for each in found}
        lines = []
        for each in found:
            what = each.plugin, each.reason
            if now >= self._since[each.key] + STANDS and what not in self._told:
                self._told.add(what)
                lines.append(f"{each.key}: {each.text}")
        return lines
