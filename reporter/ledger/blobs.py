"""Bodies on their way to the disk, and those that are kept: one blob for each upload.

Nobody else knows where they are, but for `local_file`. A blob's name begins with its SHA-256, for
people; what follows makes it one of its own, also where the same bytes are sent twice. Everything
here blocks.
"""

import contextlib
import hashlib
import os
import secrets
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Final

from reporter.common.private_file import sync_directory
from reporter.ledger.layout import Layout

MOST_PIECES: Final = 1024  # IOV_MAX: what one writev takes
NEW_FILE: Final = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

Step = Callable[[str], None]
"""Told the name of each step that is about to be final; tests stop the process there."""


def no_step(name: str) -> None:
    """Nothing is to happen at this step."""


class StagedBody:
    """A private file that a body is read into. Made on the first write."""

    def __init__(self, path: Path, step: Step) -> None:
        self.path = path
        self.size = 0
        self.made = False
        self.blob = ""  # its name as a blob, given just before it becomes one
        self.fd = -1
        """Its descriptor while it is open, for reading it from the start with `pread`."""
        self._hash = hashlib.sha256()
        self._step = step

    @property
    def digest(self) -> str:
        """The SHA-256 of what was written, in hexadecimal."""
        return self._hash.hexdigest()

    def write(self, pieces: Sequence[bytes]) -> None:
        """Append some pieces, at most `MOST_PIECES` of them. Raises OSError."""
        if self.fd < 0:
            self.fd = os.open(self.path, NEW_FILE, 0o600)
            self.made = True
        self._step("write")
        for piece in pieces:
            self._hash.update(piece)
        length = sum(map(len, pieces))
        if pieces and (written := os.writev(self.fd, pieces)) < length:
            # The kernel may take less than it is given.
            rest = memoryview(b"".join(pieces))[written:]
            while rest:
                rest = rest[os.write(self.fd, rest) :]
        self.size += length

    def sync(self) -> None:
        """Wait until its bytes are on the disk, and close it. Raises OSError."""
        os.fsync(self.fd)
        self.close()

    def close(self) -> None:
        """Close it, if it is open."""
        if self.fd >= 0:
            fd, self.fd = self.fd, -1
            os.close(fd)

    def discard(self) -> None:
        """Close it and remove it, if it is still there. Raises OSError."""
        self.close()
        self.path.unlink(missing_ok=True)


class BlobStore:
    """The bodies of one run, on the local disk. Its methods may be called from several threads."""

    def __init__(self, layout: Layout, step: Step = no_step) -> None:
        self._layout = layout
        self._step = step

    def open(self, blob: str) -> IO[bytes]:
        """Open a blob, to be read to its end whatever becomes of it. Raises FileNotFoundError where
        there is none, and OSError."""
        return self.local_file(blob).open("rb")

    def local_file(self, blob: str) -> Path:
        """Return the path of a blob, there or not, for aiohttp, which opens a file by its name."""
        return self._layout.blobs / blob

    def size(self, blob: str) -> int | None:
        """Return how many bytes a blob has; None if it is not there. Raises OSError."""
        try:
            return self.local_file(blob).stat().st_size
        except FileNotFoundError:
            return None

    def list(self) -> set[str]:
        """Return the names of all blobs. Raises OSError."""
        return {path.name for path in self._layout.blobs.iterdir()}

    def stage(self) -> StagedBody:
        """Begin a body. It is no blob before it is kept."""
        return StagedBody(self._layout.new_body(), self._step)

    def keep(self, body: StagedBody) -> None:
        """Turn a staged body into a blob that survives a loss of power.

        Raises OSError; there is no blob then.
        """
        body.blob = f"{body.digest}-{secrets.token_hex(8)}"
        self._step("sync")
        body.sync()
        self._step("rename")
        body.path.rename(self.local_file(body.blob))
        try:
            self._step("sync directory")
            sync_directory(self._layout.blobs)
        except OSError:
            with contextlib.suppress(OSError):
                self.delete(body.blob)
            raise

    def delete(self, blob: str) -> None:
        """Remove a blob, if it is there. Raises OSError."""
        self.local_file(blob).unlink(missing_ok=True)

    def resume(self, sizes: dict[str, int]) -> tuple[set[str], int]:
        """Begin with the blobs that rows speak of, remove all others.

        `sizes` are the bytes each has according to its row. Returns the blobs that are not there in
        that size, and how many were removed. Raises OSError.
        """
        lost = {blob for blob, size in sizes.items() if self.size(blob) != size}
        unknown = self.list() - (sizes.keys() - lost)
        for blob in unknown:
            self.delete(blob)
        return lost, len(unknown)

    def clear(self) -> None:
        """Remove them all. Raises OSError."""
        for blob in self.list():
            self.delete(blob)
