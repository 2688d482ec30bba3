"""The objects that `-f` names, with their lines."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from reporter.cli.exits import content
from reporter.cli.output import shown_file
from reporter.inject.files import manifest_files

if TYPE_CHECKING:
    from reporter.common.yaml_lines import Mistake
    from reporter.lint.manifest import Manifest


@dataclass(frozen=True, slots=True)
class File:
    """What a file holds. `name` is its path as it was given, `-` for standard input."""

    name: str
    manifests: "Sequence[Manifest]"
    mistakes: "Sequence[Mistake]"

    @property
    def shown(self) -> str:
        """The name for people."""
        return shown_file(self.name)


def load_manifests(names: Sequence[str]) -> Iterator[File]:
    """Read files, the manifests of directories, and standard input (`-`).

    Raises OSError, with the name, for what cannot be read.
    """
    # PyYAML is imported only when there is something to read.
    from reporter.lint.manifest import MAX_BYTES, read_manifests

    for name in names:
        for path in [name] if name == "-" else map(str, manifest_files(Path(name))):
            yield File(path, *read_manifests(content(path, MAX_BYTES + 1)))
