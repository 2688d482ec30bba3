"""Manifests in YAML or JSON: bytes to objects with the lines of their parts."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any, Final

from reporter.common.kubernetes_yaml import template_hint
from reporter.common.objects import Object
from reporter.common.schema import Place, field
from reporter.common.yaml_lines import Document, Mistake, read_documents
from reporter.inject.jobs import objects_in
from reporter.lint.jobs import READ

MAX_BYTES: Final = 16 * 1024 * 1024
_MOST_VALUES: Final = 500_000


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


def read_manifests(data: bytes) -> tuple[list[Manifest], list[Mistake]]:
    """Read all objects of a file, and say what cannot be read. Never raises.

    Documents that are no objects are left out: a directory may have files of any kind. So are
    mistakes in objects that no rule looks at.
    """
    documents, end = read_documents(data, MAX_BYTES, _MOST_VALUES, merge=True)
    found: list[Manifest] = []
    mistakes: list[Mistake] = []
    for document in documents:
        objects = [each for each in objects_in(document.value) if _is_object(each[0])]
        found += [Manifest(value, place, document) for value, place in objects]
        if objects or document.value is None:
            skipped = [place for value, place in objects if value["kind"] not in READ]
            mistakes += [each for each in document.mistakes if not _within(each.place, skipped)]
    lines = data.decode(errors="replace").split("\n")
    said = [_hinted(each, lines[each.line - 1 : each.line]) for each in mistakes]
    if end is not None:
        # The cause is before the place where the parser gave up.
        before = takewhile(lambda line: not line.startswith("---"), lines[end.line - 1 :: -1])
        said.append(_hinted(end, before))
    return found, said


def _hinted(mistake: Mistake, lines: Iterable[str]) -> Mistake:
    return replace(mistake, text=mistake.text + template_hint("\n".join(lines)))


def _within(place: Place, others: Sequence[Place]) -> bool:
    return any(place[: len(each)] == each for each in others)


def _is_object(value: Mapping[str, Any]) -> bool:
    return isinstance(value.get("kind"), str) and isinstance(value.get("apiVersion"), str)
