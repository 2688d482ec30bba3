"""Lengths of time as people write them."""

import argparse
import re

_LENGTH = re.compile(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?|(\d+)")


def length(written: str) -> int:
    """Read a length of time in seconds: `48h`, `1h30m`, `90s`, or just seconds."""
    found = _LENGTH.fullmatch(written) if written.isascii() else None
    if not written or found is None or len(written) > 12:
        raise argparse.ArgumentTypeError(f"not a duration like 48h, 30m or 90s: {written!r}")
    hours, minutes, seconds, bare = (int(part or 0) for part in found.groups())
    return hours * 3600 + minutes * 60 + seconds + bare
