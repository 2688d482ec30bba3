"""Manifests in YAML or JSON: bytes to objects with the lines of their parts."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any, Final

from reporter.core.inject.edits import get
from reporter.core.inject.jobs import manifests, objects_in
from reporter.core.inject.placeholders import masked, unmasked, unmasked_value
from reporter.core.lint.jobs import READ, Object
from reporter.core.objects import section, text
from reporter.wire.kubernetes_yaml import template_hint
from reporter.wire.schema import Place, field
from reporter.wire.yaml_lines import Document, Mistake, read_documents

MAX_BYTES: Final = 16 * 1024 * 1024
_MOST_VALUES: Final = 500_000
_ABOUT: Final = "status-reporter"
"""In the manifest of a Job with a reporter, or with the label that asks for one."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """One object of a file, and its place in its document.

    For a manifest that an object has as a text, `owner` is the name of that object, and `elsewhere`
    its namespace. Both are empty for others.
    """

    value: Object
    place: Place
    _document: Document
    owner: str = ""
    elsewhere: str = ""
    _around: tuple[Document, Place] | None = None

    def line(self, place: Place) -> int:
        """Return the line of a place in the document, or of what would hold it."""
        line = self._document.line(place)
        return line if self._around is None else _line_around(self._around, line)

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


def read_texts(manifest: Manifest) -> Iterator[Manifest | Mistake | str]:
    """Yield the objects that a workflow of Argo has as texts, and what is wrong in these.

    A text that speaks of a reporter and that nobody can read before Argo has put values in place of
    its placeholders gives its owner's name.
    """
    elsewhere = text(section(manifest.value, "metadata"), "namespace")
    for path, owner in manifests(manifest.value):
        around = (manifest._document, (*manifest.place, *path))
        written = get(manifest.value, path)
        plain, names = masked(written)
        found, mistakes = read_manifests(plain.encode(errors="replace"))
        # Expressions with braces or of several lines are not masked.
        if ("{{" in plain and mistakes) or (names and any(not each.field for each in mistakes)):
            if _ABOUT in written:
                yield owner
            continue
        for each in found:
            value = unmasked_value(each.value, names)
            yield replace(each, value=value, owner=owner, elsewhere=elsewhere, _around=around)
        for wrong in mistakes:
            yield replace(
                wrong,
                line=_line_around(around, wrong.line),
                field="",
                text=f"{owner}: {unmasked(str(wrong), names)}",
            )


def _line_around(around: tuple[Document, Place], line: int) -> int:
    document, place = around
    return document.line_of_text(place, line)


def _hinted(mistake: Mistake, lines: Iterable[str]) -> Mistake:
    return replace(mistake, text=mistake.text + template_hint("\n".join(lines)))


def _within(place: Place, others: Sequence[Place]) -> bool:
    return any(place[: len(each)] == each for each in others)


def _is_object(value: Mapping[str, Any]) -> bool:
    return isinstance(value.get("kind"), str) and isinstance(value.get("apiVersion"), str)
