"""Plugin definitions in YAML: bytes to `Definition`s, or every mistake with its line and field.

Both shapes are read: ours, by the published schema `plugin.v1`, and Sonobuoy's.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from reporter.common import schema
from reporter.common.kubernetes_yaml import Document, Mistake, read_documents
from reporter.run.definition import (
    API_VERSION,
    Definition,
    Place,
    misfits,
    read_definition,
    sonobuoy_template,
)

MAX_BYTES: Final = 1024 * 1024  # what an object of the API server can hold
_MOST_VALUES: Final = 20_000  # of a document, each alias counted as what it stands for
_SONOBUOY: Final = "sonobuoy-config"
_PLACES: Final[dict[Place, Place]] = {
    ("metadata", "name"): (_SONOBUOY, "plugin-name"),
    ("spec", "driver"): (_SONOBUOY, "driver"),
}
"""Where Sonobuoy's shape has what ours has elsewhere."""
_ONE_JOB: Final = "is unknown: the driver Node always runs one Job for each node"


@dataclass(frozen=True, slots=True)
class Read:
    """What a file holds: definitions with the lines they begin at, and every mistake."""

    definitions: tuple[tuple[int, Definition], ...]
    mistakes: tuple[Mistake, ...]


def read_definitions(data: bytes) -> Read:
    """Read all documents of a file. Never raises: what cannot be read is a mistake."""
    found: list[tuple[int, Definition]] = []
    documents, mistakes = read_documents(data, MAX_BYTES, _MOST_VALUES)
    for document in documents:
        definition = _Reader(document).definition()
        mistakes += sorted(document.mistakes, key=lambda mistake: mistake.line)
        if definition is not None and not document.mistakes:
            found.append((document.first, definition))
    if not found and not mistakes:
        mistakes.append(Mistake(1, "", "no plugin definition found"))
    return Read(tuple(found), tuple(mistakes))


class _Reader:
    """What a document defines, and what is wrong with it."""

    def __init__(self, document: Document) -> None:
        self._value, self._say = document.value, document.say

    def definition(self) -> Definition | None:
        """Return what it defines; nothing if it is empty or has a mistake in its shape."""
        value = self._value
        if value is None:
            return None
        if not isinstance(value, Mapping):
            self._say((), "not an object")
            return None
        if _SONOBUOY in value:
            return self._sonobuoy(value)
        if value.get("apiVersion") != API_VERSION and value.get("kind") != "Plugin":
            self._say(
                (), f"not a plugin definition: neither kind Plugin of {API_VERSION} nor Sonobuoy's"
            )
            return None
        if self._misshapen("plugin.v1", value):
            return None
        return self._checked(read_definition(value), {})

    def _sonobuoy(self, value: Mapping[str, Any]) -> Definition | None:
        if self._misshapen("sonobuoy-plugin", value):
            return None
        config = value[_SONOBUOY]
        driver = config["driver"].lower()
        if driver not in ("job", "daemonset"):
            self._say((_SONOBUOY, "driver"), "must be either 'Job' or 'DaemonSet'")
            return None
        per_node = driver == "daemonset"
        template, remarks = sonobuoy_template(value, per_node=per_node)
        made = Definition(
            name=config["plugin-name"],
            driver="Node" if per_node else "Job",
            contract="done-file",
            template=template,
            order=config.get("order", 0),
            result_format=config.get("result-format") or "raw",
            result_files=tuple(config.get("result-files") or ()),
            cleanup="never" if config.get("skip-cleanup") else "always",
            config=value.get("config-map") or {},
            remarks=remarks,
        )
        inner = len(template["spec"]["containers"]) - 1
        places: dict[Place, Place] = {
            ("spec", "template", "spec", "containers", inner, "name"): ("spec", "name"),
            **_PLACES,
        }
        return self._checked(made, places)

    def _checked(self, made: Definition, places: Mapping[Place, Place]) -> Definition:
        for path, text in misfits(made):
            self._say(places.get(path, path), text)
        return made

    def _misshapen(self, name: str, value: object) -> bool:
        found = list(schema.violations(name, value))
        for path, text in found:
            self._say(path, _ONE_JOB if path == ("spec", "dispatch") else text)
        return bool(found)
