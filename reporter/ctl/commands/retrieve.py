"""`status-ctl retrieve`: the results of a run, whole and as they were announced."""

import argparse
import hashlib
import math
import os
import re
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO, Final, TextIO

from reporter.core.launch.snapshot_plugin import PLUGIN
from reporter.core.objects import number, section, text
from reporter.core.run.plan import GLOBAL
from reporter.core.run.view import over
from reporter.ctl.exits import FAILED, GOOD, CannotTell
from reporter.ctl.run import origin
from reporter.ctl.run.by_http import refusal
from reporter.ctl.run.server import NoAnswer, StatusServer
from reporter.ctl.show import output as show
from reporter.ctl.show.table import redraws
from reporter.ctl.show.tell import tell
from reporter.ctl.snapshot_index import contents_lines, snapshot_lines
from reporter.untar import BadArchive, Caps, extract

DESCRIPTION = """\
Downloads the tarball with the results of a run that is over, verifies its SHA-256, and prints the
path it was written to. A download that is cut off is resumed. With --extract it is unpacked, and
the path of the directory is printed; links and devices are not created.

exit codes:
  0    downloaded, with the right SHA-256
  1    SHA-256 mismatch, or not safe to unpack; nothing is kept
  2    usage error, or the file already exists
  4    cannot tell: not reachable, forbidden, no results yet
  130  Ctrl-C"""

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,200}")
_PIECE = 256 * 1024
_LARGEST: Final = 2**38
# The results of very many workers: each was within the aggregator's own caps.
TARBALL: Final = Caps(
    members=1_000_000,
    file_bytes=_LARGEST,
    content_bytes=_LARGEST,
    free_bytes=_LARGEST,
    path_bytes=8192,
    seconds=math.inf,
)
_SILENCE = 60.0  # seconds without a byte
_COURTESY = 2.0  # seconds for what only a person wants to know
_PAUSE = 1.0  # seconds before what was cut off is resumed


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "-f",
        "--file",
        metavar="PATH",
        type=Path,
        help="where to write it (default: the current directory, under its own name)",
    )
    parser.add_argument("--force", action="store_true", help="overwrite an existing file")
    parser.add_argument(
        "-x",
        "--extract",
        metavar="DIR",
        type=Path,
        nargs="?",
        const=Path(),
        help="unpack it into DIR, which must not exist (default: named after the tarball), and "
        "keep only that",
    )
    show.arguments(parser)
    origin.arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Fetch, check, perhaps unpack, and return the exit code."""
    chosen = origin.choose(options)
    server, announced = _announced(chosen)
    name = text(announced, "name")
    path: Path = options.file or Path(name if _NAME.fullmatch(name) else "results.tar.gz")
    if path.is_dir():
        options.error(f"{path} is a directory, --file must name a file")
    directory = options.extract
    if directory == Path():
        directory = path.with_name(path.name.removesuffix(".gz").removesuffix(".tar"))
        if directory == path:
            directory = path.with_name(f"{path.name}.d")
    goal = path if directory is None else directory
    if (goal.exists() or goal.is_symlink()) and (directory is not None or not options.force):
        options.error(
            f"{goal} already exists" + ("" if directory else "; use --force to overwrite it")
        )
    try:
        return _deliver(server, announced, path, directory, options)
    except NoAnswer as error:
        raise CannotTell(str(error)) from None
    except OSError as error:
        raise CannotTell(f"cannot write {error.filename or path}: {error.strerror}") from None


def download(chosen: origin.Origin, file: BinaryIO) -> bool:
    """Write the tarball to a file that nobody keeps; return whether it is what was announced.

    Raises CannotTell and OSError.
    """
    server, announced = _announced(chosen)
    try:
        # Else `delete` would take the results for downloaded.
        found = _fetch(server, file, number(announced, "size") or 0, {"Results-Kept": "no"})
    except NoAnswer as error:
        raise CannotTell(str(error)) from None
    return found == text(announced, "sha256")


def _announced(chosen: origin.Origin) -> tuple[StatusServer, Mapping[str, Any]]:
    """Return who has the tarball, and its name, size and SHA-256. Raises CannotTell."""
    look = chosen.look(entries=False)
    if look.document is None:
        raise CannotTell(f"{look.detail} ({look.outcome.replace('_', ' ')})")
    server = chosen.server  # first: without it the document is a guess
    announced = section(look.document, "tar-info")
    if not text(announced, "name") or not text(announced, "sha256"):
        if over(look.document):
            raise CannotTell("there are no results: packing was given up")
        status = text(look.document, "status")
        raise CannotTell(f"there are no results yet: the run is {status}")
    return server, announced


def _deliver(
    server: StatusServer,
    announced: Mapping[str, Any],
    path: Path,
    directory: Path | None,
    options: argparse.Namespace,
) -> int:
    with _unfinished(path if directory is None else directory) as (new, file):
        found = _fetch(server, file, number(announced, "size") or 0)
        file.close()
        if found != text(announced, "sha256"):
            tell(f"SHA-256 mismatch: {found or 'more bytes than announced'}")
            return FAILED
        files = None
        if directory is None:
            new.replace(path)
        else:
            try:
                with new.open("rb") as packed:
                    done = extract(packed, new.stat().st_size, directory, TARBALL)
            except BadArchive as error:
                tell(f"not unpacked: {error}")
                return FAILED
            except OSError as error:
                raise CannotTell(f"cannot write {directory}: {error.strerror}") from None
            files = done.files
            for note in done.notes:
                tell(note)
    _put(announced, path if directory is None else directory, files, options)
    for line in _of_the_snapshot(server) if directory is None else snapshot_lines(directory):
        tell(line)
    return GOOD


def _of_the_snapshot(server: StatusServer) -> tuple[str, ...]:
    """Ask what the run's snapshot lacks, if it has one: finding it in the tarball takes long."""
    try:
        answer = server.get(f"/results/{PLUGIN}/{GLOBAL}/snapshot", timeout=_COURTESY)
    except NoAnswer:
        return ()
    return contents_lines(answer.body) if answer.status == 200 else ()


@contextmanager
def _unfinished(goal: Path) -> Iterator[tuple[Path, BinaryIO]]:
    """Give a file beside the goal that is gone afterwards, unless it was renamed."""
    goal.parent.mkdir(parents=True, exist_ok=True)
    new = goal.with_name(f".{goal.name}.{os.getpid()}.part")
    new.unlink(missing_ok=True)
    try:
        with new.open("xb") as file:
            yield new, file
    finally:
        new.unlink(missing_ok=True)


def _fetch(
    server: StatusServer,
    file: BinaryIO,
    size: int,
    headers: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Write the body to the file and return its SHA-256, empty once it is longer than `size`.

    What was cut off is resumed, as long as each time more of it comes. Raises NoAnswer,
    CannotTell, OSError.
    """
    digest, bar = hashlib.sha256(), Bar(sys.stderr, size)
    written = most = 0
    try:
        while True:
            try:
                for at, piece in _pieces(server, written, headers):
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
            except NoAnswer:
                if written <= most:
                    raise
                most = written
                time.sleep(_PAUSE)
    finally:
        bar.clear()


def _pieces(
    server: StatusServer, at: int, headers: Mapping[str, str]
) -> Iterator[tuple[int, bytes]]:
    """Yield pieces of the body and where each belongs: from `at` on, or all if it must be so."""
    part = {"Range": f"bytes={at}-"} if at else {}
    with server.open("/results", {**headers, **part}, timeout=_SILENCE) as response:
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
            raise NoAnswer(f"{server.url}: the results were cut off after {at} bytes")


def _write(file: BinaryIO, piece: bytes) -> None:
    try:
        file.write(piece)
    except OSError as error:
        # Not to be taken for trouble with the server.
        raise CannotTell(f"cannot write {file.name}: {error.strerror}") from None


class Bar:
    """How much has come, on a terminal; elsewhere nothing."""

    def __init__(self, out: TextIO, size: int) -> None:
        self._out, self._size, self._drawn = out, size, 0.0
        self._wanted = redraws(out)

    def draw(self, written: int) -> None:
        """Show it, ten times a second at most."""
        now = time.monotonic()
        if self._wanted and now > self._drawn + 0.1:
            self._drawn = now
            share = f" ({written / self._size:.0%})" if self._size else ""
            self._out.write(f"\r\033[K{show.size(written)} of {show.size(self._size)}{share}")
            self._out.flush()

    def clear(self) -> None:
        """Take it away."""
        if self._drawn:
            self._out.write("\r\033[K")
            self._out.flush()


def _put(
    announced: Mapping[str, Any], path: Path, files: int | None, options: argparse.Namespace
) -> None:
    if options.output in {"json", "yaml"}:
        shown = {
            "api_version": "v1",
            "kind": "Results",
            "path": str(path),
            "files": files,
            "tar-info": dict(announced),
        }
        show.put_data(options.output, shown)
    else:
        show.put_names([str(path)])
