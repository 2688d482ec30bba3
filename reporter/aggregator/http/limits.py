"""The limits of a listener and of what is served on it. All times are seconds, all sizes bytes."""

from dataclasses import dataclass
from typing import Final

KIB = 1024
MIB = 1024 * KIB
KEPT: Final = 41 * KIB  # what a kept connection holds, TLS included
PROGRESS_BODY: Final = MIB  # a fact of the wire: Sonobuoy's relay knows the same bound


@dataclass(frozen=True, slots=True)
class Limits:
    """Every bound that protects one worker from another.

    Above `connections` each answer closes its connection. Besides there are `handshakes` at one
    time, `handshakes_per_address` of them for one address while others want them, and
    `waiting_handshakes` peers that wait for one. Every `sender_look` it is seen whether
    the sender of a body that waits is there. A body may be silent for `body_silence`, and after
    `rate_after` it has to have come at `rate` bytes per second.
    """

    connections: int = 128 * MIB // KEPT
    handshakes: int = 128
    handshakes_per_address: int = 16
    waiting_handshakes: int = 1024
    backlog: int = 1024
    keep_alive: float = 45.0
    head_read: float = 10.0
    handshake: float = 10.0
    discard: float = 5.0
    request_line: int = 8 * KIB
    header_bytes: int = 32 * KIB
    headers: int = 100
    body_silence: float = 15.0
    rate: int = 64 * KIB
    rate_after: float = 30.0
    sender_look: float = 5.0
    progress_waiting: int = 16
    heartbeat_interval: int = 15
