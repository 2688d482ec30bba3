"""What an intake may take in: sizes in bytes, times in seconds. Values only."""

from dataclasses import dataclass
from typing import Final

KIB: Final = 1024
MIB: Final = 1024 * KIB
GIB: Final = 1024 * MIB


@dataclass(frozen=True, slots=True)
class Limits:
    """The caps of uploads, archives and the quarantine.

    `disk_reserve` is what stays free on every file system. Archives: at most `archive_members`
    members (and as many directories), each of `archive_file_bytes`, together `archive_bytes`, and
    not beyond `archive_ratio` times the body unless that is below `archive_free_bytes`.
    `quarantine_body_bytes` is the largest refused body kept whole; of others its head is kept.
    """

    max_result_bytes: int = 512 * MIB
    disk_reserve: int = 64 * MIB
    archive_members: int = 20_000
    archive_file_bytes: int = GIB
    archive_bytes: int = 2 * GIB
    archive_ratio: int = 200
    archive_free_bytes: int = 64 * MIB
    archive_extended_bytes: int = 64 * KIB
    archive_path_bytes: int = 4096
    archive_seconds: float = 60.0
    unpack_threads: int = 2
    quarantine_body_bytes: int = 16 * MIB
    quarantine_head_bytes: int = 64 * KIB
    quarantine_bytes: int = 256 * MIB

    def unpacked(self, body: int) -> int:
        """Bytes that an archive of `body` bytes may unpack to."""
        return min(self.archive_bytes, max(self.archive_free_bytes, self.archive_ratio * body))
