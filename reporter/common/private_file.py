"""Files that only we may read, written whole or not at all, or nowhere but in memory.

Their contents are not known here.
"""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

_NEW = ".new"
_LEFT_BEHIND = 60.0  # seconds, by the file system's clock; a write takes a fraction of one


def write_private(path: Path, data: bytes) -> None:
    """Put `data` at `path` with mode 0600: written beside it, fsynced, renamed. Raises OSError.

    Afterwards it survives a loss of power, and after an error nothing is left beside it; what a
    killed writer has left goes with a later write. Of several writers at once the last one wins.
    The directory has to be there.
    """
    descriptor, name = tempfile.mkstemp(_NEW, f".{path.name}.", path.parent)
    new = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            # The umask may have taken more than it should.
            os.fchmod(file.fileno(), 0o600)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            written_at = os.fstat(file.fileno()).st_mtime
        new.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            new.unlink()
        raise
    _remove_leftovers(path, written_at - _LEFT_BEHIND)
    sync_directory(path.parent)


def _remove_leftovers(path: Path, before: float) -> None:
    for beside in path.parent.iterdir():
        if beside.name.startswith(f".{path.name}.") and beside.name.endswith(_NEW):
            with contextlib.suppress(OSError):
                if beside.lstat().st_mtime < before:
                    beside.unlink()


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
