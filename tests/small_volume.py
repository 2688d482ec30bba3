"""A file system that is soon full."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_volume(folder: Path, size: str, *, busy: bool = False) -> Iterator[Path]:
    """Mount one of this size, as `mount` writes sizes, on a new folder; skip where nobody may.

    In the end no file in it may be open, unless it is `busy`.
    """
    folder.mkdir()
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("mounting a small file system needs root")
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"mounting a small file system: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", *(["-l"] if busy else []), str(folder)], check=True)
