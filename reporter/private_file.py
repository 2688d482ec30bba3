"""Files that only we may read, written whole or not at all. What is in them is not known here."""

import contextlib
import os
from pathlib import Path


def write_private(path: Path, data: bytes) -> None:
    """Put `data` at `path` with mode 0600: written beside it, fsynced, renamed. Raises OSError.

    Afterwards it survives a loss of power, and after an error nothing is left beside it. The
    directory has to be there.
    """
    new = path.with_name(f".{path.name}.new")
    # One of a killed predecessor, or planted by somebody who may write here.
    with contextlib.suppress(FileNotFoundError):
        new.unlink()
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            # The umask may have taken more than it should.
            os.fchmod(file.fileno(), 0o600)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            new.unlink()
        raise
    _sync(path.parent)


def private_directory(path: Path) -> None:
    """Make the directory with mode 0700 where it is not there yet. Raises OSError."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    _sync(path.parent)


def _sync(directory: Path) -> None:
    """Make the names in it survive a loss of power."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
