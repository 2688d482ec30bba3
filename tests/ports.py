"""Ports that no other test has: for servers that are told theirs, or are away for a while."""

from __future__ import annotations

import atexit
import random
import socket
from functools import cache
from itertools import cycle
from pathlib import Path
from typing import NamedTuple

RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
MANY = 128


class Block(NamedTuple):
    """The ports of this process: it is theirs as long as the UDP port of the first one is open."""

    held: socket.socket
    ports: cycle[int]


def free_port() -> int:
    """Return a port on which nobody listens, and which nobody else will be given.

    Not one that the system gives away by itself: the port of a server that is away, or has not
    started yet, could be taken by any client.
    """
    return next(port for port in _block().ports if _is_free(port))


@cache
def _block() -> Block:
    """Take a block that no other process has, whatever runs beside this one on the machine."""
    lowest = int(RANGE.read_text().split()[0]) if RANGE.exists() else 49152
    if lowest < 16384:  # a machine that gives away nearly all of them: then any that is free
        lowest = 32768
    firsts = list(range(lowest // 2, lowest - MANY, MANY))
    random.shuffle(firsts)
    for first in firsts:
        held = socket.socket(type=socket.SOCK_DGRAM)
        try:
            held.bind(("127.0.0.1", first))
        except OSError:
            held.close()
        else:
            atexit.register(held.close)
            return Block(held, cycle(range(first, first + MANY)))
    raise RuntimeError("every block of ports is taken")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As a server does it: a connection that has ended lately keeps nobody away.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True
