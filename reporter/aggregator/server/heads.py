"""Heads that are too large or malformed. How they are handled is decided elsewhere.

aiohttp queues what its parser refuses among the requests, so that answers keep their order.
"""

from aiohttp.http import RawRequestMessage
from aiohttp.http_exceptions import LineTooLong
from aiohttp.web_protocol import _ErrInfo as Malformed

__all__ = ["Malformed", "size", "status_of", "too_large"]


def size(message: RawRequestMessage | Malformed) -> int:
    """Return the bytes that all headers take on the wire."""
    if isinstance(message, Malformed):
        return 0
    return sum(len(name) + len(value) + 4 for name, value in message.raw_headers)


def too_large() -> Malformed:
    """Make what stands for a head beyond its limit."""
    return Malformed(status=431, exc=LineTooLong(b""), message="head too large")


def status_of(malformed: Malformed) -> int:
    """Return 431 for what was too much, 400 for everything else."""
    # The parser tells too many headers from one that is malformed only by its words.
    large = isinstance(malformed.exc, LineTooLong) or "Too many" in malformed.message
    return 431 if large else 400
