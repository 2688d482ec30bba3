"""The connections whose peers have proved who they are, and what one peer may have of them."""

from collections import Counter
from typing import Protocol

Peer = tuple[str, str]
"""An address, and the serial number of the certificate it has shown."""


class LimitedConnection(Protocol):
    """What is asked of a connection."""

    @property
    def at_work(self) -> bool:
        """Whether it has a request."""

    def end(self) -> None:
        """Close it at once."""


class ConnectionLimits:
    """At most `most` connections are kept; while newer ones are answered there are `spare` more.

    One peer may keep a quarter of them. Whoever has more gives way to others when there is
    no room, with those that have no request.
    """

    def __init__(self, most: int, spare: int) -> None:
        self._most, self._spare = most, spare
        self._quarter = max(1, most // 4)
        self._peers: dict[LimitedConnection, Peer] = {}
        self._counts: Counter[Peer] = Counter()
        self._greedy: dict[Peer, dict[LimitedConnection, None]] = {}

    def __len__(self) -> int:
        return len(self._peers)

    def enter(self, connection: LimitedConnection, peer: Peer) -> None:
        """Count a connection in."""
        self._peers[connection] = peer
        self._counts[peer] += 1
        if peer in self._greedy:
            self._greedy[peer][connection] = None
        elif self._counts[peer] > self._quarter:
            self._greedy[peer] = {each: None for each, of in self._peers.items() if of == peer}

    def leave(self, connection: LimitedConnection) -> None:
        """Count a connection out; nothing if that has happened."""
        peer = self._peers.pop(connection, None)
        if peer is None:
            return
        self._counts[peer] -= 1
        if not self._counts[peer]:
            del self._counts[peer]
        if peer in self._greedy:
            self._greedy[peer].pop(connection, None)
            if self._counts[peer] <= self._quarter:
                del self._greedy[peer]

    def crowded(self, connection: LimitedConnection) -> bool:
        """Say whether a connection is to end with its next answer."""
        return len(self) > self._most or self._peers.get(connection) in self._greedy

    def room(self, beside: int) -> bool:
        """Say whether one more may come, with so many on their way in; make room if need be."""
        if len(self) < self._most:
            return len(self) + beside < self._most + self._spare
        for connections in list(self._greedy.values()):
            idle = next((connection for connection in connections if not connection.at_work), None)
            if idle is not None:
                self.leave(idle)
                idle.end()
                return True
        return len(self) + beside < self._most + self._spare
