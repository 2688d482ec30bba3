"""Who may come in: peers that have still to prove who they are, and connections that are kept.

A peer that has said nothing costs a file and no more. Some of those that speak may shake hands at
one time. While there is room anybody may; when there is none, each address has its share.
"""

import asyncio
import socket
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

HANDSHAKES: Final = 128  # at one time
HANDSHAKES_PER_ADDRESS: Final = 16  # of them, while others want one
_STALLED: Final = 3.0  # seconds after which a handshake makes room for a neighbour's
_LOOK: Final = 0.25  # seconds between looks for such a one


class Beginning:
    """A connection whose transport is being made, and which may be unwanted before it is."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._unwanted = False

    def has(self, transport: asyncio.Transport) -> None:
        """Hear that it is made."""
        self._transport = transport
        if self._unwanted:
            transport.abort()

    def abort(self) -> None:
        """End it now, or as soon as there is something to end."""
        self._unwanted = True
        if self._transport is not None:
            self._transport.abort()


@dataclass(eq=False, slots=True)
class PendingPeer:
    """A peer from `address` that has not proved who it is; its time is over at `until`.

    `begun` is when its handshake began. Both are times of the loop's clock.
    """

    socket: socket.socket
    address: str
    until: float
    timer: asyncio.TimerHandle | None = None
    handshake: Beginning | None = None
    begun: float = 0.0


class Handshakes:
    """Gives turns. All of it happens on the event loop.

    `begin` starts the handshake of a peer, which ends with `leave`; `room` says whether there is
    place for one more connection; `failed(reason, address, text)` hears of peers that are sent
    away. `most` handshakes run at one time, of which any address may have `share`; `waiting` peers
    wait for theirs. None of it takes longer than `seconds` in all.
    """

    def __init__(
        self,
        begin: Callable[[PendingPeer], Beginning],
        room: Callable[[], bool],
        failed: Callable[[str, str, str], None],
        *,
        most: int,
        share: int,
        waiting: int,
        seconds: float,
    ) -> None:
        self._begin, self._room, self._failed = begin, room, failed
        self._most, self._share, self._waiting, self._seconds = most, share, waiting, seconds
        self._loop = asyncio.get_running_loop()
        self._silent: dict[PendingPeer, None] = {}
        self._queues: OrderedDict[str, deque[PendingPeer]] = OrderedDict()
        self._inside: dict[str, dict[PendingPeer, None]] = {}
        self._present: Counter[str] = Counter()
        self._look: asyncio.TimerHandle | None = None
        self._full_since: float | None = None
        self._full = 0.0

    @property
    def handshakes(self) -> int:
        """How many are under way."""
        return sum(map(len, self._inside.values()))

    @property
    def full_seconds(self) -> float:
        """For how long in all somebody has stood here for whom there was no place."""
        since = self._full_since
        return self._full + (0.0 if since is None else self._loop.time() - since)

    def wait_for_turn(self, client: socket.socket, address: str) -> None:
        """Take in a new peer."""
        if self._present.total() >= self._waiting:
            self._thin_out()
        peer = PendingPeer(client, address, self._loop.time() + self._seconds)
        peer.timer = self._loop.call_at(peer.until, self._expire, peer)
        self._silent[peer] = None
        self._present[address] += 1
        self._loop.add_reader(client, self._speaks, peer)

    def leave(self, peer: PendingPeer) -> None:
        """Note that a handshake is over, be it good or not."""
        inside = self._inside.get(peer.address, {})
        if peer in inside:
            del inside[peer]
            if not inside:
                del self._inside[peer.address]
        self.admit()

    def admit(self) -> None:
        """Let in whoever may shake hands now; to be called when there may be room again."""
        while (peer := self._next()) is not None:
            queue = self._queues[peer.address]
            queue.popleft()
            if queue:
                self._queues.move_to_end(peer.address)
            else:
                del self._queues[peer.address]
            self._forget(peer)
            peer.begun = self._loop.time()
            self._inside.setdefault(peer.address, {})[peer] = None
            peer.handshake = self._begin(peer)
        self._note()

    def close(self) -> None:
        """Send everybody away who waits."""
        if self._look is not None:
            self._look.cancel()
        for peer in [*self._silent, *(peer for queue in self._queues.values() for peer in queue)]:
            self._drop(peer)

    def _speaks(self, peer: PendingPeer) -> None:
        self._loop.remove_reader(peer.socket)
        del self._silent[peer]
        self._queues.setdefault(peer.address, deque()).append(peer)
        self.admit()

    def _next(self) -> PendingPeer | None:
        """Return the next to be let in, having made room for it where that is right."""
        if not self._queues or not self._room():
            return None
        if self.handshakes < self._most:
            return next(iter(self._queues.values()))[0]
        greedy = max(self._inside, key=lambda address: len(self._inside[address]))
        for address, queue in self._queues.items():
            if len(self._inside[greedy]) > self._share > len(self._inside.get(address, ())):
                self._push_out(next(iter(self._inside[greedy])))
                return queue[0]
        long_ago = self._loop.time() - _STALLED
        for address, queue in self._queues.items():
            oldest = next(iter(self._inside.get(address, ())), None)
            if oldest is not None and oldest.begun < long_ago:
                self._push_out(oldest)
                return queue[0]
        return None

    def _push_out(self, peer: PendingPeer) -> None:
        inside = self._inside[peer.address]
        del inside[peer]
        if not inside:
            del self._inside[peer.address]
        assert peer.handshake is not None
        peer.handshake.abort()
        self._failed("timeout", peer.address, "stalled while others wait for their handshake")

    def _note(self) -> None:
        """Keep the time for which there was no place for somebody, and look again soon."""
        now = self._loop.time()
        stuck = any(len(self._inside.get(each, ())) < self._share for each in self._queues)
        if stuck and self._full_since is None:
            self._full_since = now
        elif not stuck and self._full_since is not None:
            self._full += now - self._full_since
            self._full_since = None
        if self._queues and self._look is None:
            self._look = self._loop.call_later(_LOOK, self._look_again)

    def _look_again(self) -> None:
        self._look = None
        self.admit()

    def _expire(self, peer: PendingPeer) -> None:
        self._drop(peer)
        self._failed("timeout", peer.address, "no handshake in time")
        self._note()

    def _thin_out(self) -> None:
        """Send one away of the address that has most here: who says nothing before who waits."""
        address = max(self._present, key=lambda each: self._present[each])
        silent = (peer for peer in self._silent if peer.address == address)
        peer = next(silent, None) or self._queues[address][0]
        self._drop(peer)
        self._failed("timeout", address, "too many connections wait for their handshake")

    def _drop(self, peer: PendingPeer) -> None:
        if peer in self._silent:
            self._loop.remove_reader(peer.socket)
            del self._silent[peer]
        else:
            queue = self._queues[peer.address]
            queue.remove(peer)
            if not queue:
                del self._queues[peer.address]
        self._forget(peer)
        peer.socket.close()

    def _forget(self, peer: PendingPeer) -> None:
        self._present[peer.address] -= 1
        if not self._present[peer.address]:
            del self._present[peer.address]
        if peer.timer is not None:
            peer.timer.cancel()


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
