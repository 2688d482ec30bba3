"""Where everything is kept: directories and names, nothing about what is in them.

The state directory has what is true (rows and blobs) and bodies on their way; the output directory
gets the tarball. They may be on different file systems, hence one place for unfinished things in
each: a rename does not cross.
"""

import errno
import itertools
import os
from pathlib import Path


class Layout:
    """The directories of one aggregator."""

    def __init__(self, state: Path, output: Path, *, reserve: int = 0) -> None:
        self._reserve = reserve
        self.state = state
        self.output = output
        self.staging = state / "staging"
        self.blobs = state / "blobs"
        self.tls = state / "tls"
        self.podlogs = state / "podlogs"
        self.judging = state / "judging"
        self.kept = state / "kept"
        self.database = state / "run.db"
        self.launch = state / "launch.json"
        self.run_log = state / "run.log"
        self.tarball = state / "tarball.json"
        self.unfinished = output / ".staging"
        self._numbers = itertools.count()

    def prepare(self) -> None:
        """Make the directories that are missing, open to us only. Raises OSError."""
        for root in (self.state, self.output):
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
        for folder in (
            self.staging,
            self.blobs,
            self.tls,
            self.podlogs,
            self.judging,
            self.kept,
            self.unfinished,
        ):
            folder.mkdir(mode=0o700, exist_ok=True)

    def new_body(self) -> Path:
        """A name in the state directory that nobody uses, for a body on its way."""
        return self.staging / f"{next(self._numbers)}.body"

    def free(self) -> int:
        """The bytes free for us on the fuller of the two file systems. Raises OSError."""
        return min(_free(self.state), _free(self.output))

    def check_room(self, length: int) -> None:
        """Raise OSError unless that many bytes, which nobody's verdict needs, leave the reserve."""
        if self.free() < self._reserve + length:
            raise OSError(errno.ENOSPC, "No space left above the reserve")


def _free(folder: Path) -> int:
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize
