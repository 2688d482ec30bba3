"""Manifests from files, directories and standard input."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from errno import ENOENT
from pathlib import Path
from typing import TYPE_CHECKING, Final

from reporter.core.text import clean

if TYPE_CHECKING:
    from reporter.wire.manifest import Manifest
    from reporter.wire.yaml_lines import Mistake

SUFFIXES: Final = (".yaml", ".yml", ".json")


@dataclass(frozen=True, slots=True)
class File:
    """What a file holds. `name` is its path as it was given, `-` for standard input."""

    name: str
    manifests: "Sequence[Manifest]"
    mistakes: "Sequence[Mistake]"

    @property
    def shown(self) -> str:
        """The name for people."""
        return "standard input" if self.name == "-" else clean(self.name, 512, "''")


def load_manifests(names: Sequence[str], *, recursive: bool) -> Iterator[File]:
    """Read files, the manifests of directories, and standard input (`-`).

    Raises OSError, with the name, for what cannot be read.
    """
    # PyYAML is imported only when there is something to read.
    from reporter.wire.manifest import MAX_BYTES, read_manifests

    for name in names:
        for path in _paths(name, recursive=recursive):
            if path == "-":
                data = sys.stdin.buffer.read(MAX_BYTES + 1)
            else:
                with Path(path).open("rb") as opened:
                    data = opened.read(MAX_BYTES + 1)
            yield File(path, *read_manifests(data))


def _paths(name: str, *, recursive: bool) -> list[str]:
    folder = Path(name)
    if name == "-" or not folder.is_dir():
        return [name]
    listed = folder.rglob("*") if recursive else folder.iterdir()
    found = sorted(str(each) for each in listed if each.suffix in SUFFIXES and each.is_file())
    if not found:
        hint = "" if recursive else " (-R looks into its directories too)"
        raise FileNotFoundError(ENOENT, f"no file in it ends in .yaml, .yml or .json{hint}", name)
    return found
