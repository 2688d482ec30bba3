"""Plugin definitions in YAML: bytes to `Definition`s, or every mistake with its line and field.

Both shapes are read: ours, by the published schema `plugin.v1`, and Sonobuoy's.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from reporter.core.run.definition import (
    API_VERSION,
    Definition,
    NodeSelection,
    Place,
    misfits,
    sonobuoy_template,
)
from reporter.core.text import clean
from reporter.wire import schema
from reporter.wire.kubernetes_yaml import Loader

MAX_BYTES: Final = 1024 * 1024  # what an object of the API server can hold
_MOST_VALUES: Final = 20_000  # of a document, each alias counted as what it stands for
_DEEPEST: Final = 100
_SONOBUOY: Final = "sonobuoy-config"
_PLACES: Final[dict[Place, Place]] = {
    ("metadata", "name"): (_SONOBUOY, "plugin-name"),
    ("spec", "driver"): (_SONOBUOY, "driver"),
}
"""Where Sonobuoy's shape has what ours has elsewhere."""


@dataclass(frozen=True, slots=True)
class Mistake:
    """What is wrong in a file. The line counts from 1, the field is empty for a whole document."""

    line: int
    field: str
    text: str

    def __str__(self) -> str:
        return f"{self.field}: {self.text}" if self.field else self.text


@dataclass(frozen=True, slots=True)
class Read:
    """What a file holds: definitions with the lines they begin at, and every mistake."""

    definitions: tuple[tuple[int, Definition], ...]
    mistakes: tuple[Mistake, ...]


def read_definitions(data: bytes) -> Read:
    """Read all documents of a file. Never raises: what cannot be read is a mistake."""
    if len(data) > MAX_BYTES:
        return Read((), (Mistake(1, "", f"larger than {MAX_BYTES} bytes"),))
    found: list[tuple[int, Definition]] = []
    mistakes: list[Mistake] = []
    try:
        loader = Loader(data.decode("utf-8-sig"))
        while (root := _next(loader)) is not None:
            document = _Document(loader, root)
            definition = document.definition()
            mistakes += sorted(document.mistakes, key=lambda mistake: mistake.line)
            if definition is not None and not document.mistakes:
                found.append((root.start_mark.line + 1, definition))
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        mistakes.append(Mistake(line, "", "not UTF-8"))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = 1 if mark is None else mark.line + 1
        mistakes.append(Mistake(line, "", f"invalid YAML: {error.problem}"))
    except yaml.YAMLError as error:
        mistakes.append(Mistake(1, "", f"invalid YAML: {' '.join(str(error).split())}"))
    except RecursionError:
        mistakes.append(Mistake(1, "", f"nested more than {_DEEPEST} levels deep"))
    if not found and not mistakes:
        mistakes.append(Mistake(1, "", "no plugin definition in it"))
    return Read(tuple(found), tuple(mistakes))


def _next(loader: Loader) -> Node | None:
    """Return the next document, if there is one."""
    return loader.get_node() if loader.check_node() else None


class _TooMuch(Exception):
    """A document that is larger or deeper than a definition can be."""


class _Document:
    """One document: its value, the line of each part of it, and what is wrong with it."""

    def __init__(self, loader: Loader, root: Node) -> None:
        self.mistakes: list[Mistake] = []
        self._loader, self._lines = loader, dict[Place, int]()
        self._first = root.start_mark.line + 1
        try:
            self._value = self._build(root, ())
        except _TooMuch as error:
            self._value = None
            self.mistakes.append(Mistake(self._first, "", str(error)))

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
        return self._checked(ours(value), {})

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
            self._say(path, text)
        return bool(found)

    def _say(self, path: Place, text: str) -> None:
        """Tell a mistake with the line of its place, or of what would hold it."""
        known = path
        while known not in self._lines:
            known = known[:-1]
        self.mistakes.append(Mistake(self._lines[known], clean(schema.field(path), 256), text))

    def _build(self, node: Node, path: Place) -> Any:
        """Turn nodes into values. An alias costs as much as what it stands for."""
        if len(self._lines) >= _MOST_VALUES:
            raise _TooMuch(f"more than {_MOST_VALUES} values")
        if len(path) > _DEEPEST:
            raise _TooMuch(f"nested more than {_DEEPEST} levels deep")
        self._lines.setdefault(path, node.start_mark.line + 1)
        if isinstance(node, SequenceNode):
            return [self._build(each, (*path, at)) for at, each in enumerate(node.value)]
        if isinstance(node, MappingNode):
            return dict(self._members(node, path))
        return self._scalar(node, path)

    def _members(self, node: MappingNode, path: Place) -> Iterator[tuple[str, Any]]:
        seen = set()
        for key, value in node.value:
            name = str(key.value) if isinstance(key, ScalarNode) else ""
            self._lines[(*path, name)] = key.start_mark.line + 1
            if key.tag == "tag:yaml.org,2002:merge":
                self._say((*path, name), "merge keys are not supported")
            elif not isinstance(key, ScalarNode):
                self._say(path, "a key that is not text")
            elif name in seen:
                self._say((*path, name), "appears more than once")
            seen.add(name)
            yield name, self._build(value, (*path, name))

    def _scalar(self, node: Node, path: Place) -> Any:
        if node.tag.rpartition(":")[2] not in ("bool", "float", "int", "null", "str"):
            self._say(path, f"the tag {node.tag!r} is not supported")
            return None
        try:
            return self._loader.construct_object(node)
        except (ValueError, yaml.YAMLError):
            self._say(path, "not a valid value of its tag")
            return None


def ours(value: Mapping[str, Any]) -> Definition:
    """Return what a document in our shape defines. It must fit the schema `plugin.v1`."""
    spec = value["spec"]
    contract, nodes = spec["contract"], spec.get("nodes", {})
    made = Definition(
        name=value["metadata"]["name"],
        driver=spec["driver"],
        contract=contract,
        template=spec["template"],
        result_format="adapter" if contract == "result-file" else "raw",
        heartbeats=contract != "link",
        nodes=NodeSelection(nodes.get("selector", ""), nodes.get("includeNotReady", False)),
    )
    given = {
        "order": "order",
        "timeoutSeconds": "timeout_seconds",
        "startTimeoutSeconds": "start_timeout_seconds",
        "resultFormat": "result_format",
        "heartbeats": "heartbeats",
        "cleanup": "cleanup",
        "dispatch": "dispatch",
        "config": "config",
    }
    stated = {name: spec[member] for member, name in given.items() if member in spec}
    return replace(made, result_files=tuple(spec.get("resultFiles", ())), **stated)
