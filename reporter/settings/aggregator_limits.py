"""The aggregator's limits: how much it takes at a time, from workers and from readers."""

from __future__ import annotations

from typing import Any

from reporter.settings.rules import LONGEST, Integer, Variables, setting

KIB, MIB, GIB = 2**10, 2**20, 2**30


def whole(means: str, default: int, low: int, high: int = LONGEST) -> Any:
    """Declare a whole number with its bounds."""
    return setting(means, default, f"an integer from {low} to {high}", ge=low, le=high)


class Limits(Variables):
    """Uploads, connections, archives, what is refused."""

    max_result_bytes: Integer = whole("largest result body", 512 * MIB, 1, 4 * GIB)
    max_uploads: Integer = whole("concurrent uploads", 64, 1, 1_024)
    max_uploads_per_key: Integer = whole("concurrent uploads per plugin and node", 2, 1, 64)
    slot_wait_seconds: Integer = whole(
        "how long an upload waits for a free slot before it is read", 1_800, 0, 86_400
    )
    body_silence_seconds: Integer = whole("longest pause while a body is received", 15, 1, 600)
    min_upload_bytes_per_second: Integer = whole(
        "minimum average speed of an upload, and of a download as a whole", 64 * KIB, 0, GIB
    )
    upload_rate_after_seconds: Integer = whole(
        "how long an upload runs before its speed is checked", 30, 1, 3_600
    )
    disk_reserve_bytes: Integer = whole(
        "disk space kept free; uploads that would use it are refused", 64 * MIB, 0, 2**50
    )

    connection_memory_bytes: Integer = whole(
        "memory for worker connections, 41 KiB each; above it they are closed after each response",
        128 * MIB,
        4 * MIB,
        2**40,
    )
    backlog: Integer = whole(
        "connections waiting to be accepted (listen backlog)", 1_024, 1, 65_535
    )
    handshake_seconds: Integer = whole("timeout of a TLS handshake", 10, 1, 600)
    header_seconds: Integer = whole("timeout for receiving the headers of a request", 10, 1, 600)
    discard_seconds: Integer = whole(
        "how long the rest of a refused body is read, so that the sender receives the response",
        5,
        0,
        600,
    )
    max_request_line_bytes: Integer = whole("longest request line", 8 * KIB, 256, MIB)
    max_header_bytes: Integer = whole("total size of the headers of a request", 32 * KIB, KIB, MIB)
    max_headers: Integer = whole("maximum number of headers of a request", 100, 8, 10_000)
    max_progress_waiting: Integer = whole(
        "progress updates queued per plugin and node", 16, 1, 10_000
    )

    archive_max_members: Integer = whole(
        "maximum number of members of an archive", 20_000, 1, 10_000_000
    )
    archive_max_file_bytes: Integer = whole("largest file in an archive", GIB, 1, 2**50)
    archive_max_bytes: Integer = whole("total size of the files in an archive", 2 * GIB, 1, 2**50)
    archive_max_ratio: Integer = whole("maximum compression ratio of an archive", 200, 1, 100_000)
    archive_free_bytes: Integer = whole(
        "unpacked size up to which the ratio is not checked", 64 * MIB, 0, 2**50
    )
    archive_max_header_bytes: Integer = whole(
        "largest extended header of a member", 64 * KIB, KIB, 64 * MIB
    )
    archive_max_path_bytes: Integer = whole("longest path of a member", 4_096, 255, 4_096)
    archive_seconds: Integer = whole("timeout for verifying an archive", 60, 1, 3_600)
    verify_threads: Integer = whole("archives verified concurrently", 2, 1, 64)
