"""The connections whose peers have proved who they are, and what one peer may have of them."""

from collections import Counter
from typing import Protocol

Peer = tuple[str, str]
"""An address, and the serial number of the certificate it has shown."""


class Guest(Protocol):
    """What is asked of a connection."""

    @property
    def at_work(self) -> bool:
        """Whether it has a request."""

    def end(self) -> None:
        """Close it at once."""


class House:
    """At most `most` connections are kept; while newer ones are answered there are `spare` more.

    One peer may keep a quarter of them. Whoever has more gives way to others when the house is
    full, with those that have no request.
    """

    def __init__(self, most: int, spare: int) -> None:
        self._most, self._spare = most, spare
        self._quarter = max(1, most // 4)
        self._peers: dict[Guest, Peer] = {}
        self._counts: Counter[Peer] = Counter()
        self._greedy: dict[Peer, dict[Guest, None]] = {}

    def __len__(self) -> int:
        return len(self._peers)

    def enter(self, guest: Guest, peer: Peer) -> None:
        """Count a connection in."""
        self._peers[guest] = peer
        self._counts[peer] += 1
        if peer in self._greedy:
            self._greedy[peer][guest] = None
        elif self._counts[peer] > self._quarter:
            self._greedy[peer] = {each: None for each, of in self._peers.items() if of == peer}

    def leave(self, guest: Guest) -> None:
        """Count a connection out; nothing if that has happened."""
        peer = self._peers.pop(guest, None)
        if peer is None:
            return
        self._counts[peer] -= 1
        if not self._counts[peer]:
            del self._counts[peer]
        if peer in self._greedy:
            self._greedy[peer].pop(guest, None)
            if self._counts[peer] <= self._quarter:
                del self._greedy[peer]

    def crowded(self, guest: Guest) -> bool:
        """Say whether a connection is to end with its next answer."""
        return len(self) > self._most or self._peers.get(guest) in self._greedy

    def room(self, beside: int) -> bool:
        """Say whether one more may come, with so many on their way in; make room if need be."""
        if len(self) < self._most:
            return len(self) + beside < self._most + self._spare
        for guests in list(self._greedy.values()):
            idle = next((guest for guest in guests if not guest.at_work), None)
            if idle is not None:
                self.leave(idle)
                idle.end()
                return True
        return len(self) + beside < self._most + self._spare
