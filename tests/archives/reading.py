"""Archives in memory, given to the reader; and what is then on the disk."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

from reporter.untar import Caps, Checked, check, extract


def checked(body: bytes, caps: Caps | None = None, **options: Any) -> Checked:
    """What the reader says of a body."""
    return check(io.BytesIO(body), len(body), caps or Caps(), **options)


def extracted(body: bytes, target: Path, caps: Caps | None = None) -> dict[bytes, bytes | None]:
    """Every path below the new directory `target`, with the content of files, None for others."""
    extract(io.BytesIO(body), len(body), target, caps or Caps())
    return tree(target)


def tree(top: Path) -> dict[bytes, bytes | None]:
    """Every path below a directory, with the content of files, None for others, at any depth."""
    found: dict[bytes, bytes | None] = {}
    for at, folders, files, fd in os.fwalk(os.fsencode(top)):
        home = os.path.relpath(at, os.fsencode(top))
        for name in (*folders, *files):
            path = os.path.normpath(os.path.join(home, name))
            found[path] = _content(name, fd) if name in files else None
    return found


def _content(name: bytes, directory: int) -> bytes | None:
    with open(os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=directory), "rb") as file:
        return file.read()
