"""Small dealings with files that the standard library has no safe form of."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

Step = Callable[[str], None]
"""Told the name of each step that is about to be final; tests stop the process there."""

NEW_FILE: Final = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def no_step(name: str) -> None:
    """Nothing is to happen at this step."""


def write_all(fd: int, data: bytes | memoryview) -> None:
    """Write everything: the kernel may take less than it is given. Raises OSError."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def remove_content(folder: Path) -> int:
    """Remove everything in a directory for unfinished things; the number of things found."""
    found = list(folder.iterdir())
    for path in found:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    return len(found)
