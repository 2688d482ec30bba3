"""The results that a command reads: of a file or a directory, else those of a run, downloaded."""

import argparse
import math
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Final, TypeVar, cast

from reporter.cli.exits import CannotTell
from reporter.cli.output import tell
from reporter.run.names import is_run_name
from reporter.runctl import origin
from reporter.runctl.download import download
from reporter.untar import Archive, BadArchive, Caps, Kind

Results = TypeVar("Results")

_LARGEST: Final = 2**50
_PIECE: Final = 256 * 2**10
TARBALL: Final = Caps(
    members=_LARGEST,
    file_bytes=_LARGEST,
    content_bytes=_LARGEST,
    free_bytes=_LARGEST,
    path_bytes=8192,
    seconds=math.inf,
)
"""For the results of very many workers: each was within the aggregator's own caps.

How many there are is up to the plan, so nothing but bytes bounds the members. A reader remembers
their names, which takes about 80 MB for a million.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare FILE|RUN and the options that say where a run's status comes from."""
    origin.arguments(parser, named=False)
    parser.add_argument(
        "source",
        metavar="FILE|RUN",
        nargs="?",
        help="a tarball or directory, or a run as NAME or run/NAME (default: the only one)",
    )


def read(options: argparse.Namespace, read_path: Callable[[Path], Results]) -> Results | None:
    """Return what `read_path` finds; nothing for a damaged archive, which is told.

    Raises CannotTell, also for what cannot be read.
    """
    try:
        source = _file_or_run(options)
        if source is not None:
            return read_path(source)
        with tempfile.NamedTemporaryFile(prefix="results-", suffix=".tar.gz") as file:
            if not download(origin.choose(options), cast("BinaryIO", file)):
                raise BadArchive("SHA-256 mismatch")
            file.flush()
            return read_path(Path(file.name))
    except BadArchive as error:
        tell(f"cannot be read: {error}")
        return None
    except OSError as error:
        raise CannotTell(
            f"cannot read {error.filename or options.source}: {error.strerror}"
        ) from None


def _file_or_run(options: argparse.Namespace) -> Path | None:
    """Return the file or directory that `source` names; otherwise it is a run, which is set."""
    source = options.source
    if source is None:
        options.run_name = None
        return None
    named = source.startswith("run/") and is_run_name(source.removeprefix("run/"))
    if not named and ("/" in source or Path(source).exists()):
        return Path(source)
    try:
        options.run_name = origin.run_name(source)
    except argparse.ArgumentTypeError as error:
        options.error(f"no such file, and {error}")
    return None


def members(
    path: Path, pattern: str, caps: Caps = TARBALL
) -> Iterator[tuple[str, Iterator[bytes] | None]]:
    """Yield what is in a directory and fits the pattern, or everything in a tarball, by its path.

    A file comes with its content, which is to be read before the next one is asked for, or not at
    all. Raises OSError, and BadArchive for an archive that is damaged.
    """
    if path.is_dir():
        for each in sorted(path.glob(pattern)):
            yield str(each.relative_to(path)), _pieces(each) if each.is_file() else None
        return
    with path.open("rb") as file:
        archive = Archive(file, path.stat().st_size, caps)
        for member in archive:
            pieces = map(bytes, archive.content()) if member.kind is Kind.FILE else None
            yield b"/".join(member.path).decode(errors="replace"), pieces
            for _ in pieces or ():  # what was not read of it
                pass


def beginning(pieces: Iterator[bytes], most: int) -> bytes:
    """Return at least so many bytes of a content, or all of it."""
    found = bytearray()
    for piece in pieces:
        found += piece
        if len(found) >= most:
            break
    return bytes(found)


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from iter(lambda: file.read(_PIECE), b"")
