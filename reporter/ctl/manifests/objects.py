"""The objects that `-f` names, with their lines."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from reporter.ctl.content import content
from reporter.ctl.manifests.files import manifest_files
from reporter.ctl.show.tell import shown_file

if TYPE_CHECKING:
    from reporter.wire.manifest import Manifest
    from reporter.wire.yaml_lines import Mistake


@dataclass(frozen=True, slots=True)
class File:
    """What a file holds. `name` is its path as it was given, `-` for standard input.

    Texts in Argo's workflows are included; `unread` are the owners of such texts that
    cannot be read because of their placeholders.
    """

    name: str
    manifests: "Sequence[Manifest]"
    mistakes: "Sequence[Mistake]"
    unread: Sequence[str] = ()

    @property
    def shown(self) -> str:
        """The name for people."""
        return shown_file(self.name)


def load_manifests(names: Sequence[str]) -> Iterator[File]:
    """Read files, the manifests of directories, and standard input (`-`).

    Raises OSError, with the name, for what cannot be read.
    """
    # PyYAML is imported only when there is something to read.
    from reporter.wire.manifest import MAX_BYTES

    for name in names:
        if name == "-":
            yield _file(name, content(name, MAX_BYTES + 1))
            continue
        for path in manifest_files(Path(name)):
            yield _file(str(path), content(str(path), MAX_BYTES + 1))


def _file(name: str, data: bytes) -> File:
    from reporter.wire.manifest import Manifest, read_manifests, read_texts

    own, mistakes = read_manifests(data)
    found, unread = list[Manifest](), list[str]()
    for manifest in own:
        found.append(manifest)
        for each in read_texts(manifest):
            if isinstance(each, Manifest):
                found.append(each)
            elif isinstance(each, str):
                unread.append(each)
            else:
                mistakes.append(each)
    return File(name, found, mistakes, unread)
