"""A ledger as simple as it can be said, to hold the real ones against. Shares no code with them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

LOST, OURS, WORKERS, RESULT = range(4)
RETRY, CAP, GRACE = 120.0, 600.0, 30.0
TIMED_OUT = "Plugin timeout while waiting for results"


@dataclass
class Item:
    """What is known about one key."""

    held: tuple[int, str] | None = None  # rank, digest or text
    before: tuple[int, str] | None = None
    first: float | None = None
    until: float = 0.0
    why: str = ""
    tries: int = 0
    launched: float | None = None
    started: float | None = None
    deadline: float | None = None
    total: int = 0
    completed: int = 0
    failing: list[str] = field(default_factory=list)
    sent: bool = False
    sender: tuple[str, int] | None = None
    gone: set[str] = field(default_factory=set)
    heard: float | None = None
    armed: bool = False


class Model:
    """A run. Each method returns the word the store has to answer with."""

    def __init__(
        self, keys: list[tuple[str, str]], timeouts: dict[str, float], began: float
    ) -> None:
        self.items: dict[Any, Item] = {key: Item() for key in keys}
        self.timeouts = timeouts
        self.phase = 0
        self.alive = began

    @property
    def closed(self) -> bool:
        """Whether nothing more is taken."""
        return self.phase > 0

    def offer(self, key: Any, rank: int, what: str) -> str:
        """A record."""
        item = self.items[key]
        if item.held and rank <= item.held[0]:
            return "duplicate"
        if self.closed:
            return "closed"
        item.before = item.held or item.before
        item.held, item.first = (rank, what), None
        return "accepted"

    def give_up(self, key: Any, text: str) -> str:
        """An error of the aggregator's own."""
        if self.closed:
            return "closed"
        return "recorded" if self.offer(key, OURS, text) == "accepted" else "ignored"

    def attempt(self, key: Any, at: float, text: str) -> str:
        """A failed upload."""
        item = self.items[key]
        if self.closed:
            return "closed"
        if item.held:
            return "ignored"
        if item.first is None:
            item.first, item.until = at, at + RETRY
        elif (item.until, item.why) == (at + RETRY, text):
            return "recorded"  # told twice
        else:
            item.until = max(item.until, min(at + RETRY, item.first + CAP))
        item.why = text
        item.tries += 1
        return "recorded"

    def time_is_over(self, now: float, excused: set[Any]) -> int:
        """How many are given up."""
        if self.closed:
            return 0
        found = 0
        for key, item in self.items.items():
            if item.held or (item.first is not None and item.until > now):
                continue
            late = item.deadline is not None and item.deadline <= now
            if item.first is not None and key not in excused:
                found += self.offer(key, OURS, item.why) == "accepted"
            elif late:
                found += self.offer(key, OURS, TIMED_OUT) == "accepted"
        return found

    def lose(self, key: Any, text: str) -> bool:
        """The bytes of a record are gone."""
        item = self.items[key]
        if self.phase > 1 or not item.held or item.held[0] < WORKERS:
            return False
        item.held = (LOST, text)
        return True

    def launch(self, plugin: str, at: float) -> None:
        """A plugin was started."""
        for key in self.items:
            if key[0] == plugin:
                self.launch_entry(key, at)
                self.start_entry(key, at)

    def launch_entry(self, key: Any, at: float) -> None:
        """One of its Jobs was taken."""
        item = self.items[key]
        item.launched = at if item.launched is None else item.launched

    def start_entry(self, key: Any, at: float) -> None:
        """Its container began."""
        item = self.items[key]
        if item.started is None:
            item.started, item.deadline = at, at + self.timeouts[key[0]]

    def progress(self, key: Any, update: dict[str, Any], sender: tuple[str, int] | None) -> str:
        """An update: `total` and `completed`, or `more`, `failing` and `grow`."""
        item = self.items[key]
        if self.closed:
            return "closed"
        if sender:
            epoch, seq = sender
            if epoch in item.gone or (
                item.sender and item.sender[0] == epoch and seq <= item.sender[1]
            ):
                return "stale"
            if item.sender and item.sender[0] != epoch:
                item.gone.add(item.sender[0])
            item.sender = sender
        item.sent = True
        if "more" in update:
            item.completed += update["more"]
            item.failing = item.failing + update["failing"]
            if update["grow"]:
                item.total += update["more"] + len(update["failing"])
        else:
            item.total, item.completed, item.failing = update["total"], update["completed"], []
        return "applied"

    def hear(self, key: Any, mono: float, beat: bool) -> None:
        """A sign of life."""
        item = self.items[key]
        item.heard = mono
        item.armed = item.armed or beat

    def advance(self, phase: int) -> bool:
        """Whether the run may go there."""
        if phase <= self.phase:
            return True
        if phase > self.phase + 1 or any(item.held is None for item in self.items.values()):
            return False
        self.phase = phase
        return True

    def restart(self, mono: float) -> None:
        """A new process opens the run."""
        for item in self.items.values():
            if item.heard is not None:
                item.heard = mono

    def return_(self, at: float) -> None:
        """Workers can connect again."""
        outage, self.alive = at - self.alive, at
        for key, item in self.items.items():
            if item.held:
                continue
            if item.first is not None:
                item.until = max(item.until, at + GRACE)
            if item.deadline is not None and item.started is not None:
                given = item.deadline - item.started - self.timeouts[key[0]]
                if given < self.timeouts[key[0]]:
                    more = min(outage, self.timeouts[key[0]] - given)
                    item.deadline = max(item.deadline + more, at + GRACE)

    def picture(self) -> dict[Any, Any]:
        """Everything, in plain values."""
        return {
            key: {
                "held": item.held,
                "before": item.before,
                "window": None if item.first is None else (item.first, item.until, item.why),
                "tries": item.tries,
                "launched": item.launched,
                "started": item.started,
                "deadline": item.deadline,
                "progress": (item.total, item.completed, item.failing) if item.sent else None,
                "beat": None if item.heard is None else (item.heard, item.armed),
            }
            for key, item in self.items.items()
        }
