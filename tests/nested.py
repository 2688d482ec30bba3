"""Directories inside each other, deeper than a path can say."""

import os
from pathlib import Path


def nest(folder: Path, levels: int) -> None:
    """Make so many, each in the one before."""
    here = os.open(folder, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
