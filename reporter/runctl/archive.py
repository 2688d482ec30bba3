"""The results of a run as a command has them: the tarball, downloaded or on the disk, and read.

A download is resumed and measured. What is read is a file, a directory, or a run's own tarball.
"""

import argparse
import hashlib
import json
import math
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, Final, TextIO, TypeVar, cast
from urllib.parse import quote

from reporter.cli import output as show
from reporter.cli.exits import CannotTell
from reporter.cli.output import tell
from reporter.cli.table import Bar
from reporter.collect.snapshot.files import INDEX
from reporter.common.objects import items, json_object, number, section, text
from reporter.common.text import clean
from reporter.run.names import is_run_name
from reporter.run.view import Row, counts, over, rows
from reporter.runctl import origin
from reporter.runctl.origin import Origin
from reporter.runctl.server import RequestFailed, StatusServer, refusal
from reporter.untar import Archive, BadArchive, Caps, Kind

Results = TypeVar("Results")

_LARGEST: Final = 2**50
_PIECE: Final = 256 * 2**10
_SILENCE: Final = 60.0  # seconds without a byte
_PAUSE: Final = 1.0  # seconds before what was cut off is resumed
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
_INDEX_CAPS: Final = replace(TARBALL, seconds=5.0)
"""What is said of a snapshot is a courtesy: a tarball that takes longer is shown without it."""
_LARGEST_INDEX: Final = 32 * 1024 * 1024
_NAMED: Final = 5


class NotPacked(CannotTell):
    """There is no tarball, or not yet."""


def find_tarball(chosen: Origin) -> tuple[StatusServer, Mapping[str, Any]]:
    """Return who has the tarball, and its name, size and SHA-256. Raises CannotTell."""
    look = chosen.look(entries=False)
    if look.document is None:
        raise CannotTell(look.trouble)
    server = chosen.server  # first: without it the document is a guess
    info = section(look.document, "tar-info")
    if not text(info, "name") or not text(info, "sha256"):
        if over(look.document):
            raise NotPacked("there are no results: packing was given up")
        status = text(look.document, "status")
        raise NotPacked(f"there are no results yet: the run is {status}")
    return server, info


def fetch(server: StatusServer, file: BinaryIO, size: int) -> str:
    """Write the body to the file and return its SHA-256, empty once it is longer than `size`.

    A download that was cut off is resumed, as long as each time more of it comes. Raises
    CannotTell.
    """
    digest, bar = hashlib.sha256(), _SizeBar(sys.stderr, size)
    written = most = 0
    try:
        while True:
            try:
                for at, piece in _parts(server, written):
                    if at < written:
                        digest, written = hashlib.sha256(), 0
                        file.seek(0)
                        file.truncate()
                    digest.update(piece)
                    _write(file, piece)
                    written += len(piece)
                    if written > size:
                        return ""
                    bar.draw(written)
                return digest.hexdigest()
            except RequestFailed as error:
                if written <= most:
                    raise CannotTell(str(error)) from None
                most = written
                time.sleep(_PAUSE)
    finally:
        bar.clear()


def confirm(server: StatusServer, digest: str) -> str:
    """Say that the tarball with this SHA-256 is kept; return why that was not heard, if so.

    It is the last that the server is told, on a connection of its own: that of the download may
    just be ending.
    """
    server.close()
    try:
        answer = server.post("/results/retrieved", json.dumps({"sha256": digest}).encode())
    except RequestFailed as error:
        return str(error)
    finally:
        server.close()
    if answer.status == 200:
        return ""
    return clean(answer.body[:300].decode(errors="replace"), 300, f"answered {answer.status}")


def _parts(server: StatusServer, at: int) -> Iterator[tuple[int, bytes]]:
    """Yield pieces of the body and where each belongs: from `at` on, or all if it must be so."""
    part = {"Range": f"bytes={at}-"} if at else {}
    with server.open("/results", part, timeout=_SILENCE) as response:
        if response.status in {401, 403}:
            raise CannotTell(f"{server.url}: {refusal(response.read(300))} (forbidden)")
        resumed = response.headers.get("Content-Range", "").startswith(f"bytes {at}-")
        if response.status == 200:
            at = 0
        elif response.status != 206 or not resumed:
            raise CannotTell(f"{server.url}: answered {response.status} for the results")
        end = None if response.length is None else at + response.length
        while piece := response.read1(_PIECE):
            yield at, piece
            at += len(piece)
        if end is not None and at != end:
            raise ValueError(f"the results were cut off after {at} bytes")


def _write(file: BinaryIO, piece: bytes) -> None:
    try:
        file.write(piece)
    except OSError as error:
        # Not to be taken for trouble with the server.
        raise CannotTell(f"cannot write {file.name}: {error.strerror}") from None


class _SizeBar(Bar):
    """How much of so many bytes has come, on a terminal; elsewhere nothing."""

    def __init__(self, out: TextIO, size: int) -> None:
        super().__init__(out)
        self._size, self._drawn = size, 0.0

    def draw(self, written: int) -> None:
        """Show it, ten times a second at most."""
        now = time.monotonic()
        if now > self._drawn + 0.1:
            self._drawn = now
            share = f" ({written / self._size:.0%})" if self._size else ""
            self.put(f"{show.size(written)} of {show.size(self._size)}{share}")


# -- what is read ----------------------------------------------------------------------------------


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare FILE|RUN and the options that say where a run's status comes from."""
    origin.arguments(parser, named=False)
    parser.add_argument(
        "source",
        metavar="FILE|RUN",
        nargs="?",
        help="a tarball or directory, or a run as NAME or run/NAME (default: the only one "
        "in the namespace, else the newest that you started)",
    )


def read(
    options: argparse.Namespace,
    read_path: Callable[[Path], Results],
    read_entries: Callable[[StatusServer, Sequence[Row]], Results | None],
) -> Results | None:
    """Return what `read_path` finds; nothing for a damaged archive, which is told.

    Of a run without a tarball it is what `read_entries` finds in its single results, and
    `options.partial` is true then. Raises CannotTell, also for what cannot be read.
    """
    options.partial = False
    try:
        source = _file_or_run(options)
        if source is not None:
            return read_path(source)
        chosen = origin.choose(options, own=True)
        try:
            return _whole(chosen, read_path)
        except NotPacked as why:
            return _part(chosen, why, options, read_entries)
    except BadArchive as error:
        tell(f"cannot be read: {error}")
        return None
    except OSError as error:
        raise CannotTell(
            f"cannot read {error.filename or options.source}: {error.strerror}"
        ) from None


def marked(options: argparse.Namespace) -> dict[str, bool]:
    """Return the mark of a document of which only a part was there to be read."""
    return {"partial": True} if options.partial else {}


def _whole(chosen: Origin, read_path: Callable[[Path], Results]) -> Results:
    """Return what is in the tarball of a run. Raises CannotTell, BadArchive, OSError."""
    with tempfile.NamedTemporaryFile(prefix="results-", suffix=".tar.gz") as file:
        server, info = find_tarball(chosen)
        found = fetch(server, cast("BinaryIO", file), number(info, "size") or 0)
        if found != text(info, "sha256"):
            raise BadArchive("SHA-256 mismatch")
        file.flush()
        return read_path(Path(file.name))


def _part(
    chosen: Origin,
    why: NotPacked,
    options: argparse.Namespace,
    read_entries: Callable[[StatusServer, Sequence[Row]], Results | None],
) -> Results:
    """Return what is there already. Raises CannotTell, `why` where that is nothing."""
    look = chosen.look()
    if look.document is None:
        raise CannotTell(look.trouble)
    options.partial = True
    try:
        found = read_entries(chosen.server, list(rows(look.document)))
    except RequestFailed as error:
        raise CannotTell(str(error)) from None
    if found is None:
        raise why
    counted, status = counts(look.document), text(look.document, "status")
    come = f"{counted['received']} of {counted['entries']} results have arrived"
    tell(f"partial: {come}, the run is {status}")
    return found


def fetch_result(server: StatusServer, row: Row, file: BinaryIO) -> bool:
    """Write a single result to a file, if it is an archive; say whether it is.

    Raises RequestFailed, CannotTell.
    """
    with server.open(f"/results/{quote(row.key)}", timeout=_SILENCE) as response:
        if response.status != 200:
            raise ValueError(f"answered {response.status} for the result of {row.key}")
        if response.headers.get("Content-Type") != "application/gzip":
            server.close()
            return False
        while piece := response.read1(_PIECE):
            _write(file, piece)
        if response.length:
            raise ValueError(f"the result of {row.key} was cut off")
    file.flush()
    return True


def ask_for_report(server: StatusServer, row: Row) -> Mapping[str, Any]:
    """Return what a single result says, without its tests that passed. Raises RequestFailed."""
    answer = server.get(f"/results/{quote(row.key)}/report")
    found = json_object(answer.body) if answer.status == 200 else None
    if found is None:
        raise RequestFailed(f"{server.url}: answered {answer.status} for the report of {row.key}")
    return found


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


# -- what a tarball says of the cluster's snapshot in it -------------------------------------------


def snapshot_lines(path: Path) -> tuple[str, ...]:
    """Return two lines at most; none without a snapshot, or where it has everything."""
    index = None
    try:
        for name, pieces in members(path, INDEX, _INDEX_CAPS):
            if name == INDEX and pieces is not None:
                index = json.loads(beginning(pieces, _LARGEST_INDEX))
                break
    except (OSError, BadArchive, ValueError, RecursionError):
        return ()
    return tuple(index_lines(index)) if isinstance(index, dict) else ()


def index_lines(index: Mapping[str, Any]) -> Iterator[str]:
    """Yield the same from the index of a snapshot."""
    parts = [(_name(each), each) for each in items(index, "resources")]
    parts += [(name, section(index, name)) for name in ("hosts", "podlogs")]
    groups = (text(each, "group") for each in items(index, "groupErrors"))
    gone = (text(each, "namespace") for each in items(index, "namespaceErrors"))
    missing = (
        ("truncated", [name for name, part in parts if text(part, "truncated")]),
        ("failed", [name for name, part in parts if text(part, "error")]),
        ("API groups that did not answer", list(groups)),
        ("namespaces that failed", list(gone)),
    )
    said = [text(index, "stopped") or text(index, "error")]
    said += [f"{what}: {_several(names)}" for what, names in missing if names]
    if index.get("complete") is not True:
        yield f"the snapshot is not complete: {'; '.join(filter(None, said)) or f'see {INDEX}'}"
    if blanked := sum(number(part, "redacted") or 0 for _, part in parts):
        yield f"values redacted in the snapshot: {blanked}"


def _several(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _name(resource: Mapping[str, Any]) -> str:
    return ".".join(filter(None, (text(resource, "resource"), text(resource, "group"))))
