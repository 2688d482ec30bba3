"""Putting whole trees in their place and taking them out again: nobody sees half of one.

Blocks: for threads. `aside` is always an unused name on the same file system, among unfinished
things, where it does not matter if a killed process leaves something.
"""

import contextlib
import errno
from pathlib import Path

from reporter.aggregator.store.files import remove_tree

_TAKEN = (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR)


def make_directories(path: Path) -> None:
    """Make a directory and its parents, open to us only. Raises OSError."""
    with contextlib.suppress(FileExistsError):
        try:
            path.mkdir(mode=0o700)
        except FileNotFoundError:
            make_directories(path.parent)
            path.mkdir(mode=0o700)


def swap_in(new: Path, home: Path, aside: Path) -> None:
    """Put the tree `new` at `home`, in place of what is there. Raises OSError."""
    try:
        new.rename(home)
    except FileNotFoundError:
        make_directories(home.parent)
        new.rename(home)
    except OSError as error:
        if error.errno not in _TAKEN:
            raise
        home.rename(aside)
        new.rename(home)
        remove_tree(aside)


def take_out(home: Path, aside: Path) -> None:
    """Remove the tree at `home`, if there is one. Raises OSError."""
    with contextlib.suppress(FileNotFoundError):
        home.rename(aside)
        remove_tree(aside)
