"""A memory cgroup of our own: the limit a container has, on this machine, where that is allowed.

Knows the files of cgroup v1 and v2 and nothing of the process inside.
"""

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from reporter.errors import ReporterError

_PATIENCE = 2.0  # seconds; a killed process leaves its cgroup a moment later
_MOUNTS = Path("/proc/self/mountinfo")
_OWN = Path("/proc/self/cgroup")


class NoMemoryCgroup(ReporterError):
    """This process has no permission to make a memory cgroup; the text says why."""


class Version(NamedTuple):
    """The names of one version's files."""

    limits: tuple[tuple[str, str], ...]  # file and value; `{}` is the limit in bytes
    counter: str  # the file with the line `oom_kill N`


# No swap in either: with swap there is no OOM kill but a slow machine. A container's processes are
# killed together in v2, as the kubelet asks for (memory.oom.group), and one by one in v1.
V1 = Version(
    (
        ("memory.limit_in_bytes", "{}"),
        ("memory.memsw.limit_in_bytes", "{}"),
        ("memory.swappiness", "0"),
    ),
    "memory.oom_control",
)
V2 = Version(
    (("memory.max", "{}"), ("memory.swap.max", "0"), ("memory.oom.group", "1")), "memory.events"
)


class MemoryCgroup:
    """One cgroup with a memory limit. Remove it when its processes have ended."""

    def __init__(self, path: Path, version: Version) -> None:
        self._path, self._version = path, version

    @classmethod
    def make(cls, limit: int, *, mounts: Path = _MOUNTS, own: Path = _OWN) -> "MemoryCgroup":
        """Make one with `limit` bytes. Raises NoMemoryCgroup."""
        causes = []
        for version, parent in places(_text(mounts), _text(own)):
            made = cls(parent / f"status-ctl-{os.getpid()}", version)
            try:
                made._open(limit)
            except OSError as error:
                causes.append(f"{parent}: {os.strerror(error.errno or 0).lower()}")
            else:
                return made
        raise NoMemoryCgroup("; ".join(causes) or "no memory controller is mounted")

    def joiner(self) -> Callable[[], None]:
        """Return what a new process calls before exec to be in this cgroup."""
        procs = str(self._path / "cgroup.procs")

        def join() -> None:
            file = os.open(procs, os.O_WRONLY)
            os.write(file, b"0")
            os.close(file)

        return join

    @property
    def oom_kills(self) -> int:
        """How many processes the kernel has killed here for want of memory."""
        for line in _text(self._path / self._version.counter).splitlines():
            name, _, count = line.partition(" ")
            if name == "oom_kill":
                return int(count)
        return 0

    def remove(self) -> None:
        """Remove the cgroup, killing what is inside; waits 2 s at most."""
        end = time.monotonic() + _PATIENCE
        while self._path.exists() and time.monotonic() < end:
            for pid in _text(self._path / "cgroup.procs").split():
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(int(pid), signal.SIGKILL)
            with contextlib.suppress(OSError):
                self._path.rmdir()
                return
            time.sleep(0.005)

    def _open(self, limit: int) -> None:
        self._path.mkdir()
        try:
            (required, value), *optional = self._version.limits
            (self._path / required).write_text(value.format(limit))
            for name, value in optional:
                # A file that this kernel does not have, or has switched off, limits nothing.
                with contextlib.suppress(OSError):
                    (self._path / name).write_text(value.format(limit))
            _try_to_join(self.joiner())
        except OSError:
            self.remove()
            raise


def places(mounts: str, own: str) -> Iterator[tuple[Version, Path]]:
    """Yield where a memory cgroup may be made, most promising first.

    Below our own cgroup in v1; in v2 beside it, because a cgroup with processes in it cannot hand
    controllers down.
    """
    ours: dict[str, str] = {}
    for line in own.splitlines():
        _, controllers, path = line.split(":", 2)
        ours |= dict.fromkeys(controllers.split(","), path)
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        root, at = before.split()[3:5]
        kind, _, options = [*after.split(), "", ""][:3]
        if kind == "cgroup" and "memory" in options.split(",") and "memory" in ours:
            yield V1, _below(at, root, ours["memory"])
        if kind == "cgroup2" and "" in ours:
            here = _below(at, root, ours[""])
            for parent in [here] if here == Path(at) else [here.parent, here]:
                control = parent / "cgroup.subtree_control"
                if control.exists() and "memory" in control.read_text().split():
                    yield V2, parent


def _text(file: Path) -> str:
    """Return what a file of the kernel says; nothing where it is not there."""
    try:
        return file.read_text()
    except OSError:
        return ""


def _below(mounted_at: str, root: str, path: str) -> Path:
    """Return where a cgroup is seen; `root` is the part of the tree that is mounted."""
    inside = path.removeprefix(root) if root != "/" else path
    return Path(mounted_at) / inside.lstrip("/")


def _try_to_join(join: Callable[[], None]) -> None:
    """Let a short-lived process join: the right to make a cgroup is not the right to enter it."""
    pid = os.fork()
    if pid == 0:
        try:
            join()
        except OSError as error:
            os._exit(error.errno or 1)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    if code := os.waitstatus_to_exitcode(status):
        raise OSError(max(code, 0), "cannot be joined")
