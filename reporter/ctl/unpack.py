"""Taking a tarball apart into a new directory: plain files and directories, and nothing else.

What lies in it came from workers, so names and kinds are checked one by one; the directory is ours
and new, so nothing in it can lead elsewhere.
"""

import gzip
import math
import os
import shutil
import tarfile
import tempfile
import zlib
from pathlib import Path
from typing import BinaryIO

MOST_MEMBERS = 1_000_000
MOST_BYTES = 256 * 1024**3
_LONGEST = 255  # bytes of one name
_DEEPEST = 64
_DESCRIPTION = 1024 * 1024  # bytes
_PIECE = 1024 * 1024


class Unsafe(Exception):
    """The archive holds what it should not; nothing of it is left."""


def unpack(archive: Path, target: Path) -> int:
    """Unpack into `target`, which must not exist; return how many files there are.

    All or nothing: it is made beside it and renamed. Raises Unsafe and OSError.
    """
    if target.exists() or target.is_symlink():
        raise FileExistsError(17, "it already exists", str(target))
    target.parent.mkdir(parents=True, exist_ok=True)
    new = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        with _Metered(archive) as stream:
            with tarfile.open(fileobj=stream, mode="r|") as opened:
                files = _all(opened, stream, new)
            # The check sum of what was unpacked stands at the very end.
            stream.due = math.inf
            while stream.read(_PIECE):
                pass
        new.chmod(0o755)
        new.rename(target)
    except (tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError, ValueError) as error:
        shutil.rmtree(new, ignore_errors=True)
        raise Unsafe(f"not a whole archive: {error}") from None
    except BaseException:
        shutil.rmtree(new, ignore_errors=True)
        raise
    return files


class _Metered(gzip.GzipFile):
    """Gives `due` bytes and no more: tarfile reads what describes a member into memory."""

    due: float = _DESCRIPTION

    def read(self, size: int | None = -1) -> bytes:
        """Read. Raises Unsafe."""
        found = super().read(size)
        self.due -= len(found)
        if self.due < 0:
            raise Unsafe("the headers of a member are too large")
        return found


def _all(opened: tarfile.TarFile, stream: _Metered, root: Path) -> int:
    files = members = size = 0
    while (member := opened.next()) is not None:
        # It would remember them all.
        opened.members.clear()  # type: ignore[attr-defined]
        opened.pax_headers = {}
        stream.due = member.size + _DESCRIPTION
        members += 1
        size += member.size
        if members > MOST_MEMBERS or size > MOST_BYTES:
            raise Unsafe("too large to unpack")
        path = root.joinpath(*_parts(member.name))
        if member.isdir():
            _directory(path, member.name)
            continue
        # A sparse one may be a few bytes here and fill the disk.
        if not member.isreg() or member.issparse():
            raise Unsafe(f"{member.name!r} is neither a file nor a directory")
        if path == root:
            raise Unsafe("a file without a name")
        _directory(path.parent, member.name)
        content = opened.extractfile(member)
        assert content is not None
        with content, _new(path, member.name) as file:
            shutil.copyfileobj(content, file, _PIECE)
        files += 1
    return files


def _directory(path: Path, name: str) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise Unsafe(f"{name!r} is below a file") from None


def _new(path: Path, name: str) -> BinaryIO:
    """Open a file that is not there yet: two of one name would hide one of them."""
    try:
        return path.open("xb")
    except FileExistsError:
        raise Unsafe(f"{name!r} is duplicated") from None


def _parts(name: str) -> list[str]:
    """Return the components of a member's name; Unsafe unless they stay inside."""
    parts = name.removesuffix("/").split("/")
    if name in {".", "./"}:
        return []
    bad = any(part in {"", ".", ".."} or len(os.fsencode(part)) > _LONGEST for part in parts)
    if bad or "\0" in name or len(parts) > _DEEPEST:
        raise Unsafe(f"{name[:200]!r} is not a valid path in an archive")
    return parts
