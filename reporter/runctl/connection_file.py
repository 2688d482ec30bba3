"""The connection file on the disk: where it lies, whether it may be trusted, how it is written."""

import errno
import os
import stat
from collections.abc import Mapping
from pathlib import Path

from reporter.common.private_file import write_private
from reporter.run.connection_file import MAX_BYTES, ConnectionFile, UnusableFile, decode, encode

TRADITIONAL = Path("/tmp/sonobuoy.json")  # noqa: S108 - only read when it is ours and private


def own_place(environ: Mapping[str, str]) -> Path | None:
    """Return where we keep it: in the user's state directory; nothing for a user without a home."""
    base = Path(environ.get("XDG_STATE_HOME", ""))
    # A relative one is to be ignored, says its specification.
    if not base.is_absolute():
        try:
            base = Path.home() / ".local" / "state"
        except RuntimeError:
            return None
    return base / "status-reporter" / "connection.json"


def read_connection(
    path: Path, *, now: float, max_age: float | None = None, user: int | None = None
) -> ConnectionFile:
    """Read the file. Raises UnusableFile, its text without the file's name, and FileNotFoundError.

    It has to belong to `user` (who we are, unless said) and to be readable by nobody else: anyone
    could have put it there otherwise, or have taken the key out of it.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except OSError as error:
        why = "a symbolic link" if error.errno == errno.ELOOP else error.strerror
        raise UnusableFile(f"cannot be read: {why}") from None
    try:
        _check(os.fstat(descriptor), os.geteuid() if user is None else user)
    except UnusableFile:
        os.close(descriptor)
        raise
    with os.fdopen(descriptor, "rb") as file:
        data = file.read(MAX_BYTES + 1)
    return decode(data, now=now, max_age=max_age)


def create_connection(path: Path, connection: ConnectionFile) -> None:
    """Put it there with mode 0600 where nothing is yet. Raises FileExistsError, OSError."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
        try:
            file.write(encode(connection))
            file.flush()
            os.fsync(file.fileno())
        except OSError:
            path.unlink()
            raise


def write_connection(path: Path, connection: ConnectionFile) -> None:
    """Put it there with mode 0600, whole or not at all. Raises OSError."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_private(path, encode(connection))


def remove_connection(path: Path) -> str:
    """Remove it; return why it is still there, nothing once it is gone."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        return f"{path}: {error.strerror}"
    return ""


def _check(found: os.stat_result, user: int) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise UnusableFile("cannot be read: not a plain file")
    if found.st_uid != user:
        raise UnusableFile(f"belongs to another user (uid {found.st_uid})")
    if found.st_mode & 0o077:
        mode = stat.S_IMODE(found.st_mode)
        raise UnusableFile(f"is readable by others (mode {mode:04o}): chmod 600 it, if it is yours")
