"""The objects of files in YAML or JSON, with the lines of their parts, and what cannot be read."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from reporter.cli.output import shown_file
from reporter.common.kubernetes_yaml import Document, Mistake, read_documents, template_hint
from reporter.common.objects import Object, Place, field
from reporter.inject.files import contents
from reporter.inject.jobs import objects_in

MAX_BYTES: Final = 16 * 1024 * 1024
_MOST_VALUES: Final = 500_000
_READ: Final = frozenset(
    {"Job", "CronJob", "JobSet", "ServiceAccount"}
    | {"Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"}
)
"""The kinds of objects that rules look at."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """One object of a file, and its place in its document."""

    value: Object
    place: Place
    _document: Document

    def line(self, place: Place) -> int:
        """Return the line of a place in the document, or of what would hold it."""
        return self._document.line(place)

    def field(self, place: Place) -> str:
        """Return a place as people write it, from the object on."""
        return field(place[len(self.place) :])


@dataclass(frozen=True, slots=True)
class File:
    """What a file holds. `shown` is its name for people."""

    shown: str
    manifests: Sequence[Manifest]
    mistakes: Sequence[Mistake]


def load_manifests(names: Sequence[str]) -> Iterator[File]:
    """Read files, the manifests of directories, and standard input (`-`).

    Raises OSError, with the name, for what cannot be read.
    """
    for name, data in contents(names, MAX_BYTES + 1):
        yield File(shown_file(name), *read_manifests(data))


def read_manifests(data: bytes) -> tuple[list[Manifest], list[Mistake]]:
    """Read all objects of a file, and say what cannot be read. Never raises.

    Documents that are no objects are left out: a directory may have files of any kind. So are
    mistakes in objects that no rule looks at.
    """
    documents, mistakes = read_documents(data, MAX_BYTES, _MOST_VALUES, merge=True)
    found: list[Manifest] = []
    for document in documents:
        objects = [each for each in objects_in(document.value) if _is_object(each[0])]
        found += [Manifest(value, place, document) for value, place in objects]
        if objects or document.value is None:
            skipped = [place for value, place in objects if value["kind"] not in _READ]
            mistakes += _hinted(
                document,
                [
                    each
                    for each in document.mistakes
                    if not any(each.place[: len(place)] == place for place in skipped)
                ],
            )
    return found, mistakes


def _hinted(document: Document, mistakes: Sequence[Mistake]) -> Iterator[Mistake]:
    """Look for a template in the line of a mistake, or where the document cannot be read, in all.

    Where the parser gave up says little about the cause.
    """
    lines = document.text.split("\n") if mistakes else []
    for each in mistakes:
        whole = document.value is None
        at = each.line - document.before - 1
        # The loader also counts other line breaks than these.
        text = document.text if whole else "".join(lines[at : at + 1])
        yield replace(each, text=each.text + template_hint(text))


def _is_object(value: Mapping[str, Any]) -> bool:
    return isinstance(value.get("kind"), str) and isinstance(value.get("apiVersion"), str)
