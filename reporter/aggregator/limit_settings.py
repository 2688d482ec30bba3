"""The aggregator's limits that users may have to change for a run or a cluster."""

from __future__ import annotations

from typing import Any

from reporter.common.settings import LONGEST, Integer, Variables, setting

MIB, GIB = 2**20, 2**30


def whole(means: str, default: int, low: int, high: int = LONGEST) -> Any:
    """Declare a whole number with its bounds."""
    return setting(means, default, f"an integer from {low} to {high}", ge=low, le=high)


class Limits(Variables):
    """Results, archives, disk, memory. The others are constants, in `aggregator.limits`."""

    max_result_bytes: Integer = whole("largest result body", 512 * MIB, 1, 4 * GIB)
    disk_reserve_bytes: Integer = whole(
        "disk space kept free; uploads that would use it are refused", 64 * MIB, 0, 2**50
    )
    connection_memory_bytes: Integer = whole(
        "memory for worker connections, 41 KiB each; beyond it they close after each response",
        128 * MIB,
        4 * MIB,
        2**40,
    )
    archive_max_members: Integer = whole(
        "maximum number of members of an archive", 20_000, 1, 10_000_000
    )
    archive_max_file_bytes: Integer = whole("largest file in an archive", GIB, 1, 2**50)
    archive_max_bytes: Integer = whole("total size of the files in an archive", 2 * GIB, 1, 2**50)
    archive_seconds: Integer = whole("timeout for verifying an archive", 60, 1, 3_600)
