"""What options of several commands take: lengths of time, sizes, counts, and our image."""

import argparse
import os
import re

from reporter import __version__

_LENGTH = re.compile(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?|(\d+)")
_SIZE = re.compile(r"([0-9]+)(k|M|G|T|Ki|Mi|Gi|Ti)?")
_UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12} | {
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
    "Ti": 2**40,
}


def length(written: str) -> int:
    """Read a length of time in seconds: `48h`, `1h30m`, `90s`, or just seconds."""
    found = _LENGTH.fullmatch(written) if written.isascii() else None
    if not written or found is None or len(written) > 12:
        raise argparse.ArgumentTypeError(f"not a duration like 48h, 30m or 90s: {written!r}")
    hours, minutes, seconds, bare = (int(part or 0) for part in found.groups())
    return hours * 3600 + minutes * 60 + seconds + bare


def wait_time(written: str) -> int:
    """Read a wait time in seconds, as `10s`, `5m` or a number of seconds; at least one."""
    seconds = length(written)
    if not 0 < seconds < 2**31:
        raise argparse.ArgumentTypeError(f"not a wait time of at least 1s: {written!r}")
    return seconds


def size(text: str) -> int:
    """Read a positive quantity of bytes as Kubernetes writes it."""
    found = _SIZE.fullmatch(text)
    value = int(found[1]) * _UNITS[found[2] or ""] if found else 0
    if not 0 < value < 2**63:
        raise argparse.ArgumentTypeError(f"not a size like 64Mi or 1G: {text!r}")
    return value


def count(text: str) -> int:
    """Read a number of things, at least one."""
    if not (text.isascii() and text.isdigit() and len(text) <= 9 and int(text)):
        raise argparse.ArgumentTypeError(f"not a number of at least 1: {text!r}")
    return int(text)


def port(text: str) -> int:
    """Read a port number."""
    if not (text.isascii() and text.isdigit() and len(text) <= 5 and 0 < int(text) <= 65535):
        raise argparse.ArgumentTypeError(f"not a port from 1 to 65535: {text!r}")
    return int(text)


def image_argument(parser: "argparse._ActionsContainer") -> None:
    """Declare `--image`."""
    parser.add_argument(
        "--image",
        default=os.environ.get("STATUS_CTL_IMAGE") or f"status-reporter:{__version__}",
        help="the status reporter's image (default: %(default)s, or STATUS_CTL_IMAGE)",
    )
