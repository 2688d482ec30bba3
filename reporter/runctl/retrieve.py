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
from reporter.runctl.archive import TARBALL
from reporter.runctl.download import confirm, fetch, find_tarball
from reporter.runctl.server import RequestFailed, StatusServer
from reporter.runctl.snapshot_index import snapshot_lines
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
    origin.arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Fetch, check, perhaps unpack, and return the exit code."""
    chosen = origin.choose(options)
    server, announced = find_tarball(chosen)
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
        tell(f"{goal} already exists" + ("" if directory else "; use --force to overwrite it"))
        return USAGE
    try:
        return _deliver(server, announced, path, directory, options)
    except RequestFailed as error:
        raise CannotTell(str(error)) from None
    except OSError as error:
        raise CannotTell(f"cannot write {error.filename or path}: {error.strerror}") from None


def _deliver(
    server: StatusServer,
    announced: Mapping[str, Any],
    path: Path,
    directory: Path | None,
    options: argparse.Namespace,
) -> int:
    with _temporary(path if directory is None else directory) as (new, file):
        found = fetch(server, file, number(announced, "size") or 0)
        file.flush()
        os.fsync(file.fileno())
        file.close()
        if found != text(announced, "sha256"):
            tell(f"SHA-256 mismatch: {found or 'more bytes than announced'}")
            return FAILED
        files = None
        if directory is None:
            new.replace(path)
            sync_directory(path.parent)
        else:
            try:
                with new.open("rb") as packed:
                    done = extract(packed, new.stat().st_size, directory, TARBALL)
            except BadArchive as error:
                tell(f"not unpacked: {error}")
                return FAILED
            except OSError as error:
                raise CannotTell(f"cannot write {directory}: {error.strerror}") from None
            os.sync()  # only then the run may be deleted
            files = done.files
            for note in done.notes:
                tell(note)
    _put(announced, path if directory is None else directory, files, options)
    if trouble := confirm(server, found):
        tell(
            "the download was not confirmed, so `status-ctl delete` will ask for confirmation: "
            f"{trouble}"
        )
    for line in snapshot_lines(path if directory is None else directory):
        tell(line)
    return GOOD


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
