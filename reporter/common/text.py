"""Text from outside, made fit to be shown; names of hosts; lengths of time in Go's notation.

Pure. The limits and defaults of single fields live with their formats, not here.
"""

import re
from collections.abc import Iterable

_PERCENT = re.compile(rb"%([0-9A-Fa-f]{2})")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")

_FRAMES = re.compile(
    r'^(?:Traceback \(most recent call last\):|  File ".*", line \d+.*)\n?(?: {2}[ \[].*\n?)*', re.M
)
"""What a Python traceback has above its last line."""

_BREAKS = "\t\n\v\f\r\x85\u2028\u2029"
_BIDIRECTIONAL = "\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
_INVISIBLE = (
    0xAD,
    *range(0x200B, 0x2010),
    *range(0x2060, 0x2065),
    0xFEFF,
    *range(0xE0000, 0xE0080),
)
_TABLE: dict[int, str | None] = {
    **dict.fromkeys((*range(0x20), *range(0x7F, 0xA0)), None),
    **dict.fromkeys((*map(ord, _BIDIRECTIONAL), *_INVISIBLE), None),
    **dict.fromkeys(map(ord, _BREAKS), " "),
}


def clean(text: str, limit_bytes: int, default: str = "") -> str:
    """Text that is safe in a condition, a log line and a terminal, at most `limit_bytes` of UTF-8.

    Lone surrogates become U+FFFD; line breaks and tabs become one space each (CR LF is one break);
    other control, bidirectional and invisible characters go; Unicode white space is trimmed; empty
    becomes `default` (as it is); the rest is cut on a code-point boundary and trimmed again.
    """
    return clean_pieces((text,), limit_bytes, default)


def clean_pieces(pieces: Iterable[str], limit_bytes: int, default: str = "") -> str:
    """Return `clean` of the joined pieces, taking no more pieces than the limit needs.

    A piece must not end between the halves of a surrogate pair or of a CR LF.
    """
    kept = ""
    for piece in pieces:
        flat = piece.replace("\r\n", "\n").translate(_TABLE)
        kept = (kept + _LONE_SURROGATE.sub("\ufffd", flat)).lstrip()
        if len(kept.encode()) >= limit_bytes:
            break
    return kept.encode()[:limit_bytes].decode(errors="ignore").rstrip() or default


def last_lines(printed: str, most: int, room: int) -> list[str]:
    """Return the last lines that a process has printed, cleaned; of a Python traceback one.

    At most so many lines, and where they take more than `room` bytes, fewer. The beginning of what
    is given may be cut.
    """
    lines = [clean(line, room) for line in _FRAMES.sub("", printed).splitlines()]
    lines = [*filter(None, lines)][-most:]
    while len(lines) > 1 and sum(map(len, lines)) > room:
        del lines[0]
    return lines


def go_duration(seconds: int) -> str:
    """Whole seconds as Go prints a duration: `12s`, `5m0s`, `1h0m0s`."""
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes}m{rest}s"
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"


def percent_decoded(data: bytes) -> bytes:
    """The bytes that percent-encoded ones stand for (RFC 3986); what is no escape stays."""
    return _PERCENT.sub(lambda found: bytes.fromhex(found[1].decode()), data)


def is_host(text: str) -> bool:
    """Whether it can be looked up: parts of 1 to 63 bytes between dots, 253 in all; or an address.

    A dot at the end is one of a full name.
    """
    try:
        return 0 < len(text.encode("idna").rstrip(b".")) <= 253
    except UnicodeError:
        return False
