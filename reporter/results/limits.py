"""What a report may be, and the error for one that is not read to its end."""

from typing import Final

DEEPEST: Final = 64
MOST_BYTES: Final = 512 * 2**20


class UnreadableReport(Exception):
    """Why a report cannot be read, in one line that is safe to show."""
