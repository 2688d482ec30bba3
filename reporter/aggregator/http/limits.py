"""The limits of a listener and of what is served on it. All times are seconds, all sizes bytes."""

from dataclasses import dataclass
from typing import Final

KIB = 1024
MIB = 1024 * KIB
PROGRESS_BODY: Final = MIB  # a fact of the wire: Sonobuoy's relay knows the same bound


@dataclass(frozen=True, slots=True)
class Limits:
    """Every bound that protects one worker from another.

    Connections beyond `connections` wait in the backlog; above `keep_connections` each answer
    closes its connection. Of the uploads, `uploads` are read at one time, `uploads_per_key` of one
    key, and others wait `slot_wait` unread. A body may be silent for `body_silence`, and after
    `rate_after` it has to have come at `rate` bytes per second.
    """

    connections: int = 512
    keep_connections: int = 256
    backlog: int = 1024
    keep_alive: float = 10.0
    head_read: float = 10.0
    handshake: float = 10.0
    discard: float = 5.0
    request_line: int = 8 * KIB
    header_bytes: int = 32 * KIB
    headers: int = 100
    body_silence: float = 15.0
    rate: int = 64 * KIB
    rate_after: float = 30.0
    result_bytes: int = 512 * MIB
    uploads: int = 64
    uploads_per_key: int = 2
    slot_wait: float = 60.0
    progress_waiting: int = 16
    heartbeat_interval: int = 15
