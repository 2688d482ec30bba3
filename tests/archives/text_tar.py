"""A tarball from texts, as records keep it."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping
from pathlib import Path


def pack(members: Mapping[str, str], path: Path) -> Path:
    """Write files by name, and return where."""
    with tarfile.open(path, "w:gz") as made:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content.encode())
            made.addfile(info, io.BytesIO(content.encode()))
    return path
