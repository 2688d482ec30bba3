"""The done file, with which a plugin says that its result is there, and which file it is.

The plugin chooses the path, and this process can read what the plugin must not have sent anywhere:
its own environment holds a private key. So nothing outside the results directory is opened, and no
link is followed while opening. When to look is not decided here.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from reporter.errors import ReporterError

NAME = "done"
EMPTY = "empty_done_file"
LONGEST = 4096
"""Bytes of a done file; no path is longer."""

_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
# To pass through a directory the right to enter it is enough (O_PATH).
_THROUGH = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


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

    `path` is its resolved place inside of the results directory, `name` the last part of the path
    as the plugin wrote it.
    """

    descriptor: int
    path: Path
    name: str
    directory: bool


def seen(results: Path) -> bool:
    """Return whether there is a done file, whatever it is."""
    return os.path.lexists(results / NAME)


@contextmanager
def opened(results: Path) -> Iterator[Target | None]:
    """Open what the done file in `results` names; nothing when the done file has gone.

    Relative paths count from `results`, those that are not there from `/`. Raises NoResult.
    """
    # Links above the directory belong to whoever made the mount, not to the plugin.
    base = Path(os.path.realpath(results))
    try:
        root = os.open(base, _THROUGH)
    except FileNotFoundError:
        yield None
        return
    except OSError as error:
        raise _bad_done_file(_reason(error)) from None
    try:
        text = _read(root)
        if text is None:
            yield None
            return
        path = _resolve(base, text)
        name = os.path.basename(text.rstrip("/")) or path.name  # noqa: PTH119 - not a Path yet
        descriptor = _open(root, path.relative_to(base), text, name)
    finally:
        os.close(root)
    try:
        directory = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        yield Target(descriptor, path, name, directory)
    finally:
        os.close(descriptor)


def _read(root: int) -> str | None:
    try:
        file = os.open(NAME, _FILE, dir_fd=root)
    except FileNotFoundError:
        return None
    except OSError as error:
        # Not followed either: the text of a linked file would go out as the name of the result.
        raise _bad_done_file(_reason(error)) from None
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise _bad_done_file("not a regular file")
        data = os.read(file, LONGEST + 1)
    except OSError as error:
        raise _bad_done_file(_reason(error)) from None
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


def _resolve(base: Path, text: str) -> Path:
    path = base / text
    if not os.path.isabs(text) and not _is_there(path):  # noqa: PTH117 - as the plugin wrote it
        path = Path("/") / text
    try:
        resolved = Path(os.path.realpath(path, strict=True))
    except (OSError, ValueError) as error:
        reason = _reason(error) if isinstance(error, OSError) else "no path"
        raise NoResult(f"the result {_shown(text)} is missing: {reason}", "no_result") from None
    if not resolved.is_relative_to(base):
        raise NoResult(
            f"the result {_shown(text)} is outside the results directory", "foreign_path"
        )
    return resolved


def _is_there(path: Path) -> bool:
    try:
        return os.path.lexists(path)
    except ValueError:
        return False


def _open(root: int, relative: Path, text: str, name: str) -> int:
    """Open it, one directory after the other. A part that is a link by now is refused."""
    here = os.dup(root)
    try:
        *through, last = relative.parts or (".",)
        for part in through:
            below = os.open(part, _THROUGH, dir_fd=here)
            os.close(here)
            here = below
        found = os.open(last, _FILE, dir_fd=here)
    except OSError as error:
        text = f"the result {_shown(text)} cannot be read: {_reason(error)}"
        raise NoResult(text, "unreadable_result", unreadable=name) from None
    finally:
        os.close(here)
    kind = os.fstat(found).st_mode
    if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)):
        os.close(found)
        text = f"the result {_shown(text)} is neither a file nor a directory"
        raise NoResult(text, "unreadable_result")
    return found


def _shown(text: str) -> str:
    """Quote a path: one line, no control characters, of bounded length."""
    return repr(text if len(text) <= 256 else text[:253] + "...")


def _reason(error: OSError) -> str:
    return os.strerror(error.errno or errno.EIO).lower()
