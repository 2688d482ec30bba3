"""Files that only we may read, written whole or not at all, or nowhere but in memory.

What is in them is not known here.
"""

import contextlib
import os
import tempfile
from collections.abc import Iterator
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
    sync_directory(path.parent)


def private_directory(path: Path) -> None:
    """Make the directory with mode 0700 where it is not there yet. Raises OSError."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    sync_directory(path.parent)


def sync_directory(directory: Path) -> None:
    """Make the names in it survive a loss of power. Raises OSError."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def as_file(data: bytes) -> Iterator[str]:
    """Give the name of a file with this content, for a library that takes only names.

    In memory where the system can do that: a private key has no business on a disk.
    """
    if hasattr(os, "memfd_create"):
        with os.fdopen(os.memfd_create("private", os.MFD_CLOEXEC), "wb") as file:
            file.write(data)
            file.flush()
            yield f"/proc/self/fd/{file.fileno()}"
        return
    with tempfile.NamedTemporaryFile() as named:
        named.write(data)
        named.flush()
        yield named.name
