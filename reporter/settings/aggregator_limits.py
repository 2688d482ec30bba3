"""The aggregator's limits: how much it takes at a time, from workers and from readers."""

from __future__ import annotations

from typing import Any

from reporter.settings.rules import LONGEST, Integer, Variables, setting

KIB, MIB, GIB = 2**10, 2**20, 2**30


def whole(means: str, default: int, low: int, high: int = LONGEST) -> Any:
    """Declare a whole number with its bounds."""
    return setting(means, default, f"an integer from {low} to {high}", ge=low, le=high)


class Limits(Variables):
    """Uploads, connections, event streams, archives, what is refused."""

    max_result_bytes: Integer = whole("largest body of a result", 512 * MIB, 1, 4 * GIB)
    max_uploads: Integer = whole("uploads read at one time", 64, 1, 1_024)
    max_uploads_per_key: Integer = whole("of these for one plugin on one node", 2, 1, 64)
    slot_wait_seconds: Integer = whole(
        "how long further uploads wait for their turn, unread", 1_800, 0, 86_400
    )
    body_silence_seconds: Integer = whole("longest silence in a body", 15, 1, 600)
    min_upload_bytes_per_second: Integer = whole(
        "least average speed of an upload", 64 * KIB, 0, GIB
    )
    upload_rate_after_seconds: Integer = whole(
        "age from which on an upload's speed counts", 30, 1, 3_600
    )
    disk_reserve_bytes: Integer = whole(
        "space that stays free: uploads that would take it are refused", 64 * MIB, 0, 2**50
    )

    connection_memory_bytes: Integer = whole(
        "memory for the workers' connections, 41 KiB each; beyond it they are closed after each "
        "answer",
        128 * MIB,
        4 * MIB,
        2**40,
    )
    backlog: Integer = whole("connections that wait to be taken", 1_024, 1, 65_535)
    handshake_seconds: Integer = whole("longest TLS handshake", 10, 1, 600)
    header_seconds: Integer = whole("longest time to send a request's head", 10, 1, 600)
    discard_seconds: Integer = whole(
        "how long the rest of a refused body is read, so that its sender sees the answer",
        5,
        0,
        600,
    )
    max_request_line_bytes: Integer = whole("longest request line", 8 * KIB, 256, MIB)
    max_header_bytes: Integer = whole("all headers of a request", 32 * KIB, KIB, MIB)
    max_headers: Integer = whole("number of headers of a request", 100, 8, 10_000)
    max_progress_waiting: Integer = whole(
        "progress updates that wait for one plugin on one node", 16, 1, 10_000
    )

    max_event_streams: Integer = whole(
        "streams of `/events` at one time; further readers ask `/status`", 32, 0, 4_096
    )
    event_comment_seconds: Integer = whole(
        "how often such a stream is written to when nothing happens", 15, 1, 600
    )
    event_history: Integer = whole(
        "revisions that its reader may have missed and still be told only what has changed",
        1_000,
        0,
        1_000_000,
    )

    archive_max_members: Integer = whole("members of an archive", 20_000, 1, 10_000_000)
    archive_max_file_bytes: Integer = whole("largest file in an archive", GIB, 1, 2**50)
    archive_max_bytes: Integer = whole("all files of an archive", 2 * GIB, 1, 2**50)
    archive_max_ratio: Integer = whole("how far a body may unpack", 200, 1, 100_000)
    archive_free_bytes: Integer = whole(
        "size up to which the ratio does not count", 64 * MIB, 0, 2**50
    )
    archive_max_header_bytes: Integer = whole(
        "largest extended header of a member", 64 * KIB, KIB, 64 * MIB
    )
    archive_max_path_bytes: Integer = whole("longest path of a member", 4_096, 255, 4_096)
    archive_seconds: Integer = whole("longest time to unpack", 60, 1, 3_600)
    unpack_threads: Integer = whole("archives unpacked at one time", 2, 1, 64)
    quarantine_body_bytes: Integer = whole(
        "largest refused body that is kept whole", 16 * MIB, 0, 4 * GIB
    )
    quarantine_bytes: Integer = whole("all refused bodies that are kept", 256 * MIB, 0, 2**50)
