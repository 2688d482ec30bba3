"""`status-ctl retrieve`: the results of a run, whole and as they were announced."""

import argparse
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from reporter.cli import output as show
from reporter.cli.exits import FAILED, GOOD, USAGE, CannotTell
from reporter.cli.output import tell
from reporter.common.objects import number, text
from reporter.common.private_file import sync_directory
from reporter.runctl import origin
from reporter.runctl.archive import TARBALL, confirm, fetch, find_tarball, snapshot_lines
from reporter.untar import BadArchive, extract

DESCRIPTION = """\
Downloads the tarball with the results of a run that is over, verifies its SHA-256, and prints the
path of the file. An interrupted download is resumed. With --extract the tarball is unpacked and the
path of the directory is printed; links and devices are not created. After the download,
`status-ctl delete` does not ask for confirmation.

exit codes:
  0    downloaded, with the right SHA-256
  1    SHA-256 mismatch, or not safe to unpack; nothing is kept
  2    usage error, or the file already exists
  4    cannot tell: not reachable, forbidden, no results yet
  130  Ctrl-C"""

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,200}")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-f",
        "--file",
        metavar="PATH",
        type=Path,
        help="where to write it (default: the current directory)",
    )
    parser.add_argument("--force", action="store_true", help="overwrite an existing file")
    parser.add_argument(
        "-x",
        "--extract",
        metavar="DIR",
        type=Path,
        nargs="?",
        const=Path(),
        help="unpack it into DIR, which must not exist (default: named after the tarball), "
        "instead of keeping the tarball",
    )
    show.arguments(parser)
    origin.arguments(parser, default="the only one, else the newest that you started")


def run(options: argparse.Namespace) -> int:
    """Fetch, check, perhaps unpack, and return the exit code."""
    server, announced = find_tarball(origin.choose(options, own=True))
    goal, unpack = _goal(options, text(announced, "name")), options.extract is not None
    if (goal.exists() or goal.is_symlink()) and (unpack or not options.force):
        tell(f"{goal} already exists" + ("" if unpack else "; use --force to overwrite it"))
        return USAGE
    try:
        with _temporary(goal) as (new, file):
            found = fetch(server, file, number(announced, "size") or 0)
            file.flush()
            os.fsync(file.fileno())
            file.close()
            if found != text(announced, "sha256"):
                tell(f"SHA-256 mismatch: {found or 'more bytes than announced'}")
                return FAILED
            files = None
            if unpack:
                files = _unpack(new, goal)
            else:
                new.replace(goal)
                sync_directory(goal.parent)
    except BadArchive as error:
        tell(f"not unpacked: {error}")
        return FAILED
    except OSError as error:
        raise CannotTell(f"cannot write {goal}: {error.strerror}") from None
    _put(announced, goal, files, options)
    if trouble := confirm(server, found):
        tell(
            "the download was not confirmed, so `status-ctl delete` will ask for confirmation: "
            f"{trouble}"
        )
    for line in snapshot_lines(goal):
        tell(line)
    return GOOD


def _goal(options: argparse.Namespace, announced: str) -> Path:
    """Return the file to write, or the directory to unpack into."""
    name = announced if _NAME.fullmatch(announced) else "results.tar.gz"
    path: Path = options.file or Path(name)
    if path.is_dir():
        options.error(f"{path} is a directory, --file must name a file")
    directory: Path | None = options.extract
    if directory is None:
        return path
    if directory != Path():
        return directory
    plain = path.name.removesuffix(".gz").removesuffix(".tar")
    return path.with_name(plain if plain != path.name else f"{path.name}.d")


def _unpack(new: Path, directory: Path) -> int:
    """Return how many files there were. Raises BadArchive, OSError."""
    with new.open("rb") as packed:
        done = extract(packed, new.stat().st_size, directory, TARBALL)
    os.sync()  # only then the run may be deleted
    for note in done.notes:
        tell(note)
    return done.files


@contextmanager
def _temporary(goal: Path) -> Iterator[tuple[Path, BinaryIO]]:
    """Give a file beside the goal that is gone afterwards, unless it was renamed."""
    goal.parent.mkdir(parents=True, exist_ok=True)
    new = goal.with_name(f".{goal.name}.{os.getpid()}.part")
    new.unlink(missing_ok=True)
    try:
        with new.open("xb") as file:
            yield new, file
    finally:
        new.unlink(missing_ok=True)


def _put(
    announced: Mapping[str, Any], path: Path, files: int | None, options: argparse.Namespace
) -> None:
    if options.output not in {"json", "yaml"}:
        show.put_names([str(path)])
        return
    shown = {
        "api_version": "v1",
        "kind": "Results",
        "path": str(path),
        "files": files,
        "tar-info": dict(announced),
    }
    show.put_data(options.output, shown)
