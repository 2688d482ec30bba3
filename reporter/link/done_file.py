"""The done file, with which a plugin says that its result is there, and which file it is.

The plugin chooses the path, and this process can read what the plugin must not have sent anywhere:
its own environment holds a private key. So what the path leads to is opened without being read,
and is read only if the kernel says that it lies in the results directory. The plugin may rename
that too: where it is, is asked of the open directory, before the done file in it is read. When to
look is not decided here.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from reporter.errors import ReporterError

NAME = "done"
EMPTY = "empty_done_file"
LONGEST = 4096
"""Bytes of a done file; no path is longer."""

# O_PATH only names a file: a device or a FIFO does not notice.
_NAMED = os.O_PATH | os.O_CLOEXEC
_DIRECTORY = _NAMED | os.O_DIRECTORY
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class NoResult(ReporterError):
    """There is a done file and no result can be sent for it. The text is fit for the aggregator.

    `cause` is a token; `unreadable` is the name of a result that is there, but cannot be read.
    """

    def __init__(self, text: str, cause: str, *, unreadable: str = "") -> None:
        super().__init__(text)
        self.cause, self.unreadable = cause, unreadable


@dataclass(frozen=True, slots=True)
class Target:
    """What the done file names, open: a regular file, or a directory.

    `path` is its place inside of the results directory, from there, `opened` a path to the open
    descriptor, `name` the last part of the path as the plugin wrote it.
    """

    opened: Path
    path: Path
    name: str
    directory: bool


def seen(results: Path) -> bool:
    """Return whether there is a done file, whatever it is."""
    return os.path.lexists(results / NAME)


@contextmanager
def directory(results: Path) -> Iterator[Path]:
    """Open the results directory itself, for what is sent without a done file.

    Gives a path to the open descriptor. Raises OSError, also when a link leads there: a plugin can
    make one to a directory that it cannot write a done file to, and must not have sent.
    """
    with ExitStack() as held:
        descriptor = _hold(held, os.open(results, _DIRECTORY))
        plain = "/" + os.path.normpath(results.absolute()).lstrip("/")
        # Our image has one link that results may lie behind.
        image = plain.removeprefix("/var") if plain.startswith("/var/run/") else plain
        if str(_place(descriptor).readlink()) not in (plain, image):
            raise OSError(f"{results} is a symbolic link, or below one")
        yield _place(descriptor)


@contextmanager
def opened(results: Path) -> Iterator[Target | None]:
    """Open what the done file in `results` names; nothing when the done file has gone.

    Relative paths count from `results`, those that are not there from `/`. Raises NoResult.
    """
    with ExitStack() as held:
        try:
            base = _hold(held, os.open(results, _DIRECTORY))
            # Links above the results belong to whoever made the mount, not to the plugin.
            place = _place(base).readlink()
            text = _read(base)
        except FileNotFoundError:
            yield None
            return
        except OSError as error:
            raise _bad_done_file(_reason(error)) from None
        quoted = repr(text if len(text) <= 256 else text[:253] + "...")
        try:
            named = _hold(held, _open(base, text))
        except (OSError, ValueError) as error:
            reason = _reason(error) if isinstance(error, OSError) else "no path"
            raise NoResult(f"the result {quoted} is missing: {reason}", "no_result") from None
        path = _place(named).readlink()
        name = os.path.basename(text.rstrip("/")) or path.name  # noqa: PTH119 - not a Path yet
        if not path.is_relative_to(place):
            raise NoResult(f"the result {quoted} is outside the results directory", "foreign_path")
        kind = os.fstat(named).st_mode
        if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)):
            unfit = f"the result {quoted} is neither a file nor a directory"
            raise NoResult(unfit, "unreadable_result")
        try:
            found = _place(_hold(held, os.open(_place(named), _READ)))
        except OSError as error:
            trouble = f"the result {quoted} cannot be read: {_reason(error)}"
            raise NoResult(trouble, "unreadable_result", unreadable=name) from None
        yield Target(found, path.relative_to(place), name, stat.S_ISDIR(kind))


def _hold(held: ExitStack, descriptor: int) -> int:
    held.callback(os.close, descriptor)
    return descriptor


def _open(base: int, text: str) -> int:
    with suppress(FileNotFoundError, NotADirectoryError):
        return os.open(Path(text), _NAMED, dir_fd=base)
    return os.open(Path("/") / text, _NAMED)


def _place(descriptor: int) -> Path:
    return Path(f"/proc/self/fd/{descriptor}")


def _read(base: int) -> str:
    # Not followed: the text of a linked file would go out as the name of the result.
    file = os.open(NAME, _READ | os.O_NOFOLLOW, dir_fd=base)
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise _bad_done_file("not a regular file")
        data = os.read(file, LONGEST + 1)
    finally:
        os.close(file)
    if len(data) > LONGEST:
        raise _bad_done_file(f"larger than {LONGEST} bytes")
    text = os.fsdecode(data.strip())
    if not text:
        raise NoResult("the done file is empty", EMPTY)
    return text


def _bad_done_file(reason: str) -> NoResult:
    return NoResult(f"the done file cannot be read: {reason}", "unreadable_done_file")


def _reason(error: OSError) -> str:
    return os.strerror(error.errno or errno.EIO).lower()
