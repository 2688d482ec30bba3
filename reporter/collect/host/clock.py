"""What the kernel says about its clock: whether somebody keeps it right, and how well."""

import ctypes
from typing import Any

_UNSYNCHRONISED = 0x0040
_NANOSECONDS = 0x2000
_ERROR = 5


class _Timex(ctypes.Structure):
    """struct timex of adjtimex(2); the members behind are not read."""

    _fields_ = (
        ("modes", ctypes.c_uint),
        ("offset", ctypes.c_long),
        ("freq", ctypes.c_long),
        ("maxerror", ctypes.c_long),
        ("esterror", ctypes.c_long),
        ("status", ctypes.c_int),
        ("rest", ctypes.c_char * 256),
    )


def state() -> dict[str, Any]:
    """Return whether the clock is synchronised, its offset and error; nothing where nobody says."""
    try:
        ask = ctypes.CDLL(None).adjtimex
    except (OSError, AttributeError):
        return {}
    timex = _Timex()
    said = ask(ctypes.byref(timex))
    if said < 0:
        return {}
    synchronised = said != _ERROR and not timex.status & _UNSYNCHRONISED
    if not synchronised:
        # The other numbers are those of a clock that nobody keeps.
        return {"synchronised": False}
    return {
        "synchronised": True,
        "offset_seconds": timex.offset / (1e9 if timex.status & _NANOSECONDS else 1e6),
        "estimated_error_seconds": timex.esterror / 1e6,
        "maximum_error_seconds": timex.maxerror / 1e6,
    }
