"""One body on its way to becoming a blob: written, hashed and counted in one go.

Everything here blocks and runs in a thread. What a body means is decided elsewhere.
"""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from reporter.aggregator.store.files import NEW_FILE, Step, write_all

MOST_PIECES: Final = 1024  # IOV_MAX: what one writev takes


class StagedBody:
    """A private file that a body is read into. Made on the first write."""

    def __init__(self, path: Path, step: Step) -> None:
        self.path = path
        self.size = 0
        self._fd = -1
        self._hash = hashlib.sha256()
        self._step = step

    @property
    def fd(self) -> int:
        """Its descriptor, for reading it from the start with `pread`."""
        return self._fd

    @property
    def digest(self) -> str:
        """The SHA-256 of what was written, in hexadecimal."""
        return self._hash.hexdigest()

    def write(self, pieces: Sequence[bytes]) -> None:
        """Append some pieces, at most `MOST_PIECES` of them. Raises OSError."""
        if self._fd < 0:
            self._fd = os.open(self.path, NEW_FILE, 0o600)
        self._step("write")
        for piece in pieces:
            self._hash.update(piece)
        length = sum(map(len, pieces))
        if pieces and (written := os.writev(self._fd, pieces)) < length:
            write_all(self._fd, memoryview(b"".join(pieces))[written:])
        self.size += length

    def sync(self) -> None:
        """Wait until its bytes are on the disk, and close it. Raises OSError."""
        os.fsync(self._fd)
        self.close()

    def close(self) -> None:
        """Close it, if it is open."""
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            os.close(fd)

    def discard(self) -> None:
        """Close it and remove it, if it is still there. Raises OSError."""
        self.close()
        self.path.unlink(missing_ok=True)
