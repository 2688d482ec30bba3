"""Numbers and short texts out of files that anything may have written: a value, or nothing."""

import re
from typing import Final

LARGEST: Final = 2**63 - 1
_TEXT: Final = 1_024  # characters of one value
_WHOLE = re.compile(r"-?[0-9]{1,19}")
_DECIMAL = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,15})?")
_HEX = re.compile(r"(?:0x)?([0-9a-fA-F]{1,32})")
_UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]+")


def whole(text: str) -> int | None:
    """Read an integer of 64 bits."""
    text = text.strip()
    value = int(text) if _WHOLE.fullmatch(text) else None
    return value if value is not None and -LARGEST <= value <= LARGEST else None


def natural(text: str) -> int | None:
    """Read an integer of 64 bits that is not negative: a size, a number of something."""
    value = whole(text)
    return None if value is None or value < 0 else value


def decimal(text: str) -> float | None:
    """Read a decimal number."""
    text = text.strip()
    return float(text) if _DECIMAL.fullmatch(text) else None


def hexadecimal(text: str) -> int | None:
    """Read a hexadecimal number, with or without `0x`."""
    found = _HEX.fullmatch(text.strip())
    return int(found[1], 16) if found else None


def short(text: str) -> str | None:
    """Return one line of text, cut to 1,024 characters; nothing for an empty one."""
    return _UNSEEN.sub(" ", text).strip()[:_TEXT].rstrip() or None


def truth(text: str) -> bool | None:
    """Read a flag of the kernel: `Y`, `N`, `1`, `0`."""
    return {"y": True, "1": True, "n": False, "0": False}.get(text.strip().lower())


def words(text: str) -> list[str]:
    """Return words as short texts, sorted, each once."""
    return sorted({each for word in text.split() if (each := short(word))})


def count(ranges: str) -> int | None:
    """Return how many a list such as `0-3,8` names."""
    total = 0
    for part in ranges.strip().split(","):
        first, dash, last = part.partition("-")
        low = whole(first)
        high = whole(last) if dash else low
        if low is None or high is None or not 0 <= low <= high:
            return None
        total += high - low + 1
    return min(total, LARGEST)


def known(**facts: object) -> dict[str, object]:
    """Return the facts that are known: not None, and no empty list or object."""
    return {name: value for name, value in facts.items() if value not in (None, [], {})}
