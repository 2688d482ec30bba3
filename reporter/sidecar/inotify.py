"""Wake-ups from inotify for some files. They are only hints: the file itself decides.

MODIFY is among the events, because a writer that keeps its file open causes no other. A busy writer
cannot flood us: equal events merge in the kernel's queue until it is drained, so a loop that waits
a few milliseconds between two drains handles one event a turn. A change without an event (hard
links, mmap stores, file systems without events, a directory that appears later) is left to polling.
"""

import ctypes
import errno
import os
import struct
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Self

from reporter.common.lifecycle import Wake

_IN_MODIFY = 0x2
_IN_ATTRIB = 0x4
_IN_CLOSE_WRITE = 0x8
_IN_MOVED_TO = 0x80
_IN_CREATE = 0x100
_IN_DELETE_SELF = 0x400
_IN_MOVE_SELF = 0x800
_IN_Q_OVERFLOW = 0x4000
_IN_IGNORED = 0x8000
_IN_ONLYDIR = 0x1000000

_CONTENT = _IN_CREATE | _IN_MODIFY | _IN_CLOSE_WRITE | _IN_MOVED_TO | _IN_ATTRIB
_MASK = _CONTENT | _IN_DELETE_SELF | _IN_MOVE_SELF | _IN_ONLYDIR

_HEADER = struct.Struct("iIII")  # struct inotify_event: wd, mask, cookie, length of the name
_READ = 64 * 1024
_MOST_READS = 64  # at a time: who writes faster than we read does not hold up the pass
BURST = 20  # events of files that are none of ours, before we look at them less often
_NEIGHBOUR_PAUSE = 0.05  # seconds; a busy neighbour wakes us 20 times a second at most
_CHATTY = 4.0  # a writer that never rests gets at most a fifth of our time


class DirectoryWatch:
    """Watches the directories of some files. `fileno()` is readable when `drain()` has work."""

    def __init__(
        self,
        libc: Any,
        descriptor: int,
        paths: Iterable[Path],
        tell: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take over `descriptor`, an inotify instance that `libc` made; see `open`."""
        self._libc = libc
        self._descriptor = descriptor
        self._tell = tell
        self._names: dict[Path, set[bytes]] = {}
        self._watched: dict[Path, int] = {}
        self._told: set[int] = set()
        self._clock = clock
        for path in paths:
            self._names.setdefault(path.parent, set()).add(os.fsencode(path.name))
        self.repair()

    @classmethod
    def open(
        cls,
        paths: Iterable[Path],
        tell: Callable[[str], None] = lambda _: None,
        *,
        load: Callable[[], Any] = lambda: ctypes.CDLL(None, use_errno=True),
    ) -> Self | None:
        """Return a watch, or None without inotify; `tell` is given the reason.

        `tell` is also given later why a directory cannot be watched, once per reason.
        """
        try:
            libc = load()
            descriptor = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        except (OSError, AttributeError, TypeError) as error:
            tell(f"no inotify on this system: {error}")
            return None
        if descriptor < 0:
            tell(f"no inotify: {os.strerror(ctypes.get_errno()).lower()}")
            return None
        return cls(libc, descriptor, paths, tell)

    def fileno(self) -> int:
        """For a selector."""
        return self._descriptor

    def drain(self) -> bool:
        """Take all pending events without waiting; return whether a file may have changed."""
        relevant = False
        for _ in range(_MOST_READS):
            try:
                events = os.read(self._descriptor, _READ)
            except BlockingIOError:
                break
            relevant |= self._take(events)
        return relevant

    def repair(self) -> bool:
        """Watch the directories that exist and are not watched; return whether there was one.

        Cheap when nothing is missing. After True, look at the files: they may have changed before.
        """
        added = [self._watch(path) for path in self._names if path not in self._watched]
        return any(added)

    def sleep(self, wake: Wake, seconds: float, *, cost: float) -> None:
        """Sleep until woken, until one of the files may have changed, or for so long.

        `cost` is how long the last look at the files took, in seconds: the more it costs, the less
        often the file of a busy writer is looked at.
        """
        if self.repair():
            return  # what the directory holds now may have come while nobody watched it
        end, others = self._clock() + seconds, 0
        while seconds > 0 and wake.wait(seconds, (self.fileno(),)):
            seconds = end - self._clock()
            if self.drain():
                wake.wait(min(_CHATTY * cost, seconds))
                return
            # A few are the temporary file that is renamed next; many are a busy neighbour.
            others += 1
            if others > BURST:
                if wake.wait(_NEIGHBOUR_PAUSE) is None:
                    return
                seconds = end - self._clock()

    def close(self) -> None:
        """Close the inotify instance; the watch cannot be used afterwards."""
        os.close(self._descriptor)

    def _watch(self, directory: Path) -> bool:
        watch = self._libc.inotify_add_watch(self._descriptor, os.fsencode(directory), _MASK)
        if watch >= 0:
            self._watched[directory] = watch
            return True
        error = ctypes.get_errno()
        if error not in {errno.ENOENT, *self._told}:
            self._told.add(error)
            self._tell(f"the directory cannot be watched: {os.strerror(error).lower()}")
        return False

    def _take(self, events: bytes) -> bool:
        relevant = False
        at = 0
        while at < len(events):
            watch, mask, _, length = _HEADER.unpack_from(events, at)
            at += _HEADER.size + length
            name = events[at - length : at].rstrip(b"\0")
            # Two names of one directory share a watch.
            directories = [path for path, number in self._watched.items() if number == watch]
            if mask & (_IN_IGNORED | _IN_DELETE_SELF | _IN_MOVE_SELF):
                for directory in directories:
                    del self._watched[directory]
                    relevant = True
                if mask & _IN_MOVE_SELF:
                    self._libc.inotify_rm_watch(self._descriptor, watch)
            elif mask & _IN_Q_OVERFLOW or any(name in self._names[path] for path in directories):
                relevant = True
        return relevant
