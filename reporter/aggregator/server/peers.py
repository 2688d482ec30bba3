"""Who may come in: peers that have still to prove who they are, and connections that are kept.

A peer that has said nothing costs a file and no more. Some of those that speak may shake hands at
one time. While there is room anybody may; when there is none, each address has its share.
"""

import asyncio
import socket
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Final, TypeVar

from reporter.aggregator import limits
from reporter.aggregator.server.connection import Connection

_STALLED: Final = 3.0  # seconds after which a handshake makes room for a neighbour's
_LOOK: Final = 0.25  # seconds between looks for such a one

Whose = TypeVar("Whose", bound=Hashable)
Each = TypeVar("Each", bound=Hashable)


class Groups(dict[Whose, dict[Each, None]]):
    """What belongs to whom, in the order of arrival. Nobody is in it who has nothing."""

    total = 0

    def add(self, whose: Whose, each: Each) -> None:
        """Add one."""
        self.setdefault(whose, {})[each] = None
        self.total += 1

    def discard(self, whose: Whose, each: Each) -> None:
        """Remove one, if it is there."""
        if each in self.get(whose, ()):
            del self[whose][each]
            self.total -= 1
            if not self[whose]:
                del self[whose]

    def count(self, whose: Whose) -> int:
        """Return how many are somebody's."""
        return len(self.get(whose, ()))

    def oldest(self, whose: Whose) -> Each | None:
        """Return the first of somebody's."""
        return next(iter(self.get(whose, ())), None)


@dataclass(eq=False, slots=True)
class PendingPeer:
    """A peer from `address` that has not proved who it is; its time is over at `until`.

    `begun` is when its `handshake` began. Both are times of the loop's clock.
    """

    socket: socket.socket
    address: str
    until: float
    timer: asyncio.TimerHandle | None = None
    handshake: asyncio.Task[None] | None = None
    begun: float = 0.0


class Handshakes:
    """Gives turns. All of it happens on the event loop.

    `begin` starts the handshake of a peer, which ends with `leave`; `room` says whether there is
    place for one more connection beside so many on their way in; `failed(reason, address, text)`
    hears of peers that are sent away. `waiting` peers wait for their turn.
    """

    def __init__(
        self,
        begin: Callable[[PendingPeer], asyncio.Task[None]],
        room: Callable[[int], bool],
        failed: Callable[[str, str, str], None],
        waiting: int,
    ) -> None:
        self._begin, self._room, self._failed, self._waiting = begin, room, failed, waiting
        self._loop = asyncio.get_running_loop()
        self._silent = Groups[str, PendingPeer]()
        self._queued = Groups[str, PendingPeer]()
        self._inside = Groups[str, PendingPeer]()
        self._look: asyncio.TimerHandle | None = None
        self._full_since: float | None = None
        self._full = 0.0

    @property
    def full_seconds(self) -> float:
        """For how long in all somebody has stood here for whom there was no place."""
        since = self._full_since
        return self._full + (0.0 if since is None else self._loop.time() - since)

    def wait_for_turn(self, client: socket.socket, address: str) -> None:
        """Take in a new peer."""
        if self._silent.total + self._queued.total >= self._waiting:
            self._thin_out()
        peer = PendingPeer(client, address, self._loop.time() + limits.HANDSHAKE)
        peer.timer = self._loop.call_at(peer.until, self._send_away, peer, "no handshake in time")
        self._silent.add(address, peer)
        self._loop.add_reader(client, self._speaks, peer)

    def leave(self, peer: PendingPeer) -> None:
        """Note that a handshake is over, be it good or not."""
        self._inside.discard(peer.address, peer)
        self.admit()

    def admit(self) -> None:
        """Let in whoever may shake hands now; to be called when there may be room again."""
        while (peer := self._next()) is not None:
            self._forget(peer)
            if peer.address in self._queued:  # behind the others' next ones
                self._queued[peer.address] = self._queued.pop(peer.address)
            peer.begun = self._loop.time()
            self._inside.add(peer.address, peer)
            peer.handshake = self._begin(peer)
        self._note()

    def close(self) -> None:
        """Send everybody away who waits."""
        if self._look is not None:
            self._look.cancel()
        for waiting in (self._silent, self._queued):
            for peer in [peer for peers in waiting.values() for peer in peers]:
                self._drop(peer)

    def _speaks(self, peer: PendingPeer) -> None:
        self._loop.remove_reader(peer.socket)
        self._silent.discard(peer.address, peer)
        self._queued.add(peer.address, peer)
        self.admit()

    def _next(self) -> PendingPeer | None:
        """Return the next to be let in, having made room for it where that is right."""
        if not self._queued or not self._room(self._inside.total):
            return None
        if self._inside.total < limits.HANDSHAKES:
            return self._queued.oldest(next(iter(self._queued)))
        share, greedy = limits.HANDSHAKES_PER_ADDRESS, self._largest(self._inside)
        for address in self._queued:
            if self._inside.count(greedy) > share > self._inside.count(address):
                self._push_out(self._inside.oldest(greedy))
                return self._queued.oldest(address)
        long_ago = self._loop.time() - _STALLED
        for address in self._queued:
            oldest = self._inside.oldest(address)
            if oldest is not None and oldest.begun < long_ago:
                self._push_out(oldest)
                return self._queued.oldest(address)
        return None

    def _push_out(self, peer: PendingPeer | None) -> None:
        assert peer is not None
        assert peer.handshake is not None
        self._inside.discard(peer.address, peer)
        peer.handshake.cancel()
        self._failed("timeout", peer.address, "stalled while others wait for their handshake")

    def _note(self) -> None:
        """Keep the time for which there was no place for somebody, and look again soon."""
        now, share = self._loop.time(), limits.HANDSHAKES_PER_ADDRESS
        stuck = any(self._inside.count(each) < share for each in self._queued)
        if stuck and self._full_since is None:
            self._full_since = now
        elif not stuck and self._full_since is not None:
            self._full += now - self._full_since
            self._full_since = None
        if self._queued and self._look is None:
            self._look = self._loop.call_later(_LOOK, self._look_again)

    def _look_again(self) -> None:
        self._look = None
        self.admit()

    def _thin_out(self) -> None:
        """Send one away of the address that has most here: who says nothing before who waits."""
        address = self._largest(self._silent, self._queued)
        peer = self._silent.oldest(address) or self._queued.oldest(address)
        assert peer is not None
        self._send_away(peer, "too many connections wait for their handshake")

    def _send_away(self, peer: PendingPeer, why: str) -> None:
        self._drop(peer)
        self._failed("timeout", peer.address, why)
        self._note()

    def _drop(self, peer: PendingPeer) -> None:
        self._loop.remove_reader(peer.socket)
        self._forget(peer)
        peer.socket.close()

    def _forget(self, peer: PendingPeer) -> None:
        self._silent.discard(peer.address, peer)
        self._queued.discard(peer.address, peer)
        if peer.timer is not None:
            peer.timer.cancel()

    @staticmethod
    def _largest(*groups: Groups[str, PendingPeer]) -> str:
        addresses = {address: None for group in groups for address in group}
        return max(addresses, key=lambda each: sum(group.count(each) for group in groups))


Peer = tuple[str, str]
"""An address, and the serial number of the certificate it has shown."""


class ConnectionLimits:
    """At most `most` connections are kept, and while newer ones are answered a few more.

    One peer may keep a quarter of them. Whoever has more gives way to others when there is
    no room, with those that have no request.
    """

    def __init__(self, most: int) -> None:
        self._most, self._quarter = most, max(1, most // 4)
        self._peers: dict[Connection, Peer] = {}
        self._kept = Groups[Peer, Connection]()
        self._greedy: dict[Peer, None] = {}  # few: each has more than a quarter

    def enter(self, connection: Connection, peer: Peer) -> None:
        """Count a connection in."""
        self._peers[connection] = peer
        self._kept.add(peer, connection)
        if self._kept.count(peer) > self._quarter:
            self._greedy[peer] = None

    def leave(self, connection: Connection) -> None:
        """Count a connection out; nothing if that has happened."""
        peer = self._peers.pop(connection, None)
        if peer is None:
            return
        self._kept.discard(peer, connection)
        if self._kept.count(peer) <= self._quarter:
            self._greedy.pop(peer, None)

    def crowded(self, connection: Connection) -> bool:
        """Say whether a connection is to end with its next answer."""
        return self._kept.total > self._most or self._peers.get(connection) in self._greedy

    def room(self, beside: int) -> bool:
        """Say whether one more may come, with so many on their way in; make room if need be."""
        if self._kept.total >= self._most:
            for peer in self._greedy:
                idle = next((each for each in self._kept[peer] if not each.at_work), None)
                if idle is not None:
                    self.leave(idle)
                    idle.end()
                    return True
        return self._kept.total + beside < self._most + limits.HANDSHAKES
