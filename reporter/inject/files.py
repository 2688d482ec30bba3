"""The texts that `-f` names: files, all manifests of a directory, standard input."""

import argparse
from collections.abc import Iterator, Sequence
from errno import ENOENT
from pathlib import Path
from typing import Final, NamedTuple

from reporter.cli.exits import Unusable, content
from reporter.cli.output import shown_file

SUFFIXES: Final = (".yaml", ".yml", ".json")


class Source(NamedTuple):
    """Where a text is from, for people, and the text with its line breaks as they are."""

    shown: str
    text: str


def add_files(parser: argparse.ArgumentParser) -> None:
    """Declare `-f`; the names are in `files`."""
    parser.add_argument(
        "-f",
        "--filename",
        metavar="FILE",
        action="append",
        required=True,
        dest="files",
        help="a file, a directory and what is below it, or - for standard input; repeatable",
    )


def contents(names: Sequence[str], most: int = -1) -> Iterator[tuple[str, bytes]]:
    """Yield names and bytes (of each `most` at most) of files and of what is in directories.

    Raises OSError, with the name, for what cannot be read.
    """
    for name in names:
        for path in ["-"] if name == "-" else map(str, _manifest_files(Path(name))):
            yield path, content(path, most)


def sources(names: Sequence[str]) -> Iterator[Source]:
    """Yield the texts. Raises OSError, and Unusable for one that is not UTF-8."""
    for name, data in contents(names):
        try:
            yield Source("" if name == "-" else name, data.decode())
        except UnicodeDecodeError as error:
            line = data[: error.start].count(b"\n") + 1
            raise Unusable(f"cannot read {shown_file(name)}: line {line}: not UTF-8") from None


def joined(texts: Sequence[str]) -> str:
    """Return several texts as one stream of documents."""
    stream = ""
    for each in texts:
        if stream and each and not each.startswith("---"):
            stream += "---\n" if stream.endswith("\n") else "\n---\n"
        elif stream and each and not stream.endswith("\n"):
            stream += "\n"
        stream += each
    return stream


def _manifest_files(path: Path) -> list[Path]:
    """Return a file, or all manifests of a directory but hidden ones. Raises OSError."""
    if not path.is_dir():
        return [path]
    found = sorted(
        each
        for each in path.rglob("*")
        if each.suffix.lower() in SUFFIXES and each.is_file() and not _hidden(each, path)
    )
    if not found:
        raise FileNotFoundError(ENOENT, f"no file in it ends in {', '.join(SUFFIXES)}", str(path))
    return found


def _hidden(path: Path, below: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(below).parts)
