"""Lists of plain values that are cut to what somebody may be sent."""

import json
from collections.abc import Iterable
from typing import Any


def within(found: Iterable[Any], many: int, size: int) -> tuple[list[Any], int]:
    """Return the first values, at most so `many` and of `size` bytes as JSON; and how many more.

    All values are looked at, one at a time.
    """
    kept: list[Any] = []
    more = 0
    for each in found:
        if not more and len(kept) < many:
            size -= len(json.dumps(each, ensure_ascii=False).encode("utf-8", "replace"))
            if size >= 0:
                kept.append(each)
                continue
        more += 1
    return kept, more
