"""YAML and JSON as the Kubernetes tools read them: values, the lines of their parts, mistakes.

A date is text, and 22:22 no number of base 60. Manifests and plugin definitions are read with it;
what a document means is not known here.
"""

import json
import re
from collections.abc import Iterator, Set
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import yaml
from yaml.composer import Composer
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from reporter.common.objects import Place, field
from reporter.common.text import clean

LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The one in C is ten times faster."""
DEEPEST: Final = 100
NO_KEY: Final = "a key that is not text"
"""A mistake, and what a template's `{{ value }}` looks like."""
_MERGE: Final = "tag:yaml.org,2002:merge"
_KINDS: Final = frozenset({"bool", "float", "int", "null", "str"})
_MARKER = re.compile(r"^(?:---|\.\.\.)(?=\s|$)", re.MULTILINE)
DIRECTIVE: Final = re.compile(r"(?:[ \t]*(?:#[^\r\n]*)?\r?\n)*%")
"""What begins a document whose marker follows."""
_HALF = re.compile(r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_OBJECT = re.compile(r"\s*\{")
_JSON = json.JSONDecoder()
_BASES: Final[tuple[Any, ...]] = (LOADER,) if issubclass(LOADER, Composer) else (Composer, LOADER)


class Loader(*_BASES):  # type: ignore[misc]
    """In C where PyYAML was built with it, but for the nodes.

    Made in C, nodes within nodes have no limit, and end the process when the stack is full.
    """

    def __init__(self, text: str) -> None:
        LOADER.__init__(self, text)
        Composer.__init__(self)


Loader.yaml_implicit_resolvers = {
    first: [
        (tag, pattern)
        for tag, pattern in resolvers
        if tag.rpartition(":")[2] in ("bool", "null", "merge")
    ]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_NUMBERS = {
    "int": r"[-+]?(?:0[0-7]*|[1-9][0-9]*|0x[0-9A-Fa-f]+)\Z",
    "float": r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?\Z",
}
for _kind, _pattern in _NUMBERS.items():
    Loader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_kind}", re.compile(_pattern), list("-+.0123456789")
    )


@dataclass(frozen=True, slots=True)
class Mistake:
    """What is wrong. The line counts from 1, the field is empty for a whole document.

    `place` is where it stands in its document.
    """

    line: int
    field: str
    text: str
    place: Place = ()

    def __str__(self) -> str:
        return f"{self.field}: {self.text}" if self.field else self.text


class Document:
    """One document: its text, its value, the nodes that it is made of, and what is wrong with it.

    The value is None where the document is empty, cannot be read, or is larger than `most` values
    (each alias counted as what it stands for). With `merge`, the key `<<` is obeyed, else it is a
    mistake. `before` lines stand before it in its file.
    """

    def __init__(self, text: str, most: int, *, merge: bool = True, before: int = 0) -> None:
        self.text = text
        self.value: Any = None
        self.root: Node | None = None
        self.repeated: set[int] = set()
        """The ids of nodes that aliases stand for: a change of one is a change of all."""
        self.mistakes: list[Mistake] = []
        self.before = before
        self._loader: Any = None
        self._seen = set[int]()
        self._lines: dict[Place, int] = {(): before + 1}
        self._most, self._left, self._merge = most, most, merge
        self.is_json = _is_json(text)
        # Tabs and halves of characters are YAML's mistakes alone. Every place stays where it was.
        plain = _HALF.sub(r"\\u0020", text.replace("\t", " ")) if self.is_json else text
        try:
            self._loader = Loader(plain)
            self.root = self._loader.get_single_node()
            if self.root is not None:
                self._lines[()] = before + self.root.start_mark.line + 1
                self.value = self._build(self.root, ())
        except yaml.YAMLError as error:
            line, why = _mistake_in(plain, error)
            self.mistakes.append(Mistake(before + line, "", why))
        except _TooMuch as error:
            self.mistakes.append(Mistake(self.first, "", str(error)))
        except RecursionError:
            self.mistakes.append(Mistake(before + 1, "", _TOO_DEEP))
        finally:
            # A loader takes more memory than a document, and a file may have thousands of them.
            self._loader, self._seen = None, set()

    @property
    def first(self) -> int:
        """The line that it begins at, from 1."""
        return self._lines[()]

    def line(self, place: Place) -> int:
        """Return the line of a place, or of what would hold it."""
        while place not in self._lines:
            place = place[:-1]
        return self._lines[place]

    def say(self, place: Place, text: str) -> None:
        """Add a mistake with the line of its place."""
        self.mistakes.append(Mistake(self.line(place), clean(field(place), 256), text, place))

    def _build(self, node: Node, place: Place) -> Any:
        """Turn nodes into values. An alias costs as much as what it stands for."""
        self._spend()
        if len(place) > DEEPEST:
            raise _TooMuch(_TOO_DEEP)
        self._lines.setdefault(place, self.before + node.start_mark.line + 1)
        if id(node) in self._seen:
            self.repeated.add(id(node))
        self._seen.add(id(node))
        if isinstance(node, SequenceNode):
            return [self._build(each, (*place, at)) for at, each in enumerate(node.value)]
        if isinstance(node, MappingNode):
            return dict(self._members(node, place, frozenset()))
        return self._scalar(node, place)

    def _members(
        self, node: MappingNode, place: Place, taken: Set[str]
    ) -> Iterator[tuple[str, Any]]:
        """Yield the members but for those `taken`: first its own, then what it merges."""
        seen, merged = set[str](), list[Node]()
        for key, value in node.value:
            name = self._text(key) if isinstance(key, ScalarNode) else ""
            if self._merge and key.tag == _MERGE:
                merged += value.value if isinstance(value, SequenceNode) else [value]
                continue
            if name in taken:
                self._spend()
                continue
            self._lines[(*place, name)] = self.before + key.start_mark.line + 1
            if key.tag == _MERGE:
                self.say((*place, name), "merge keys are not supported")
            elif not isinstance(key, ScalarNode):
                self.say(place, NO_KEY)
            elif name in seen:
                self.say((*place, name), "appears more than once")
            seen.add(name)
            yield name, self._build(value, (*place, name))
        for each in merged:
            self._spend()
            if isinstance(each, MappingNode):
                for name, built in self._members(each, place, taken | seen):
                    seen.add(name)
                    yield name, built
            else:
                self.say(place, "a merge key whose value is not a mapping")

    def _spend(self) -> None:
        """Count a value, so that aliases of aliases come to an end."""
        if self._left == 0:
            raise _TooMuch(f"more than {self._most} values")
        self._left -= 1

    def _scalar(self, node: Node, place: Place) -> Any:
        kind = node.tag.rpartition(":")[2]
        if kind not in _KINDS:
            self.say(place, f"the tag {node.tag!r} is not supported")
        elif kind != "str":
            try:
                return self._loader.construct_object(node)
            except (ValueError, LookupError, yaml.YAMLError):
                self.say(place, "not a valid value of its tag")
        return self._text(node)

    def _text(self, node: Node) -> str:
        if self.is_json and node.style == '"':  # type: ignore[attr-defined]
            found: str = json.loads(self.text[node.start_mark.index : node.end_mark.index])
            # One half alone is no character.
            return found.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return str(node.value)


class _TooMuch(Exception):
    """A document that is larger or deeper than it may be."""


_TOO_DEEP: Final = f"nested more than {DEEPEST} levels deep"


def split(text: str) -> list[str]:
    """Cut a stream into its documents' texts; together they are the stream again.

    A marker at the beginning of a line is one wherever it stands: YAML has no other use for it.
    JSON needs none between its documents.
    """
    cuts, begun = [0], False
    for marker in _MARKER.finditer(text):
        at = marker.start()
        if marker[0] == "...":
            cuts.append(text.find("\n", at) + 1 or len(text))
        elif begun or not DIRECTIVE.match(text, cuts[-1]):
            cuts.append(at)
        begun = marker[0] == "---"
    cuts.append(len(text))
    return [each for a, b in pairwise(cuts) if a < b for each in _split_json(text[a:b])]


def read_documents(
    data: bytes, most_bytes: int, most_values: int, *, merge: bool = False
) -> tuple[list[Document], list[Mistake]]:
    """Read all documents of a file; with them, why it cannot be read at all."""
    if len(data) > most_bytes:
        return [], [Mistake(1, "", f"larger than {most_bytes} bytes")]
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return [], [Mistake(data[: error.start].count(b"\n") + 1, "", "not UTF-8")]
    found, before = list[Document](), 0
    for piece in split(text):
        found.append(Document(piece, most_values, merge=merge, before=before))
        found[-1].root = None  # only a change of the text needs the nodes
        before += piece.count("\n")
    return found, []


def template_hint(text: str) -> str:
    """Return what to add to a mistake in a text; nothing where it is no template."""
    hint = " (is this a Helm template? Use the output of `helm template`)"
    return hint if "{{" in text else ""


def _split_json(text: str) -> Iterator[str]:
    """Cut before every JSON object that stands behind another, as `jq '.items[]'` writes them.

    Together the pieces are the text again; where it is no JSON there is one.
    """
    begin, at = 0, _OBJECT.match(text)
    while at:
        try:
            _, end = _JSON.raw_decode(text, at.end() - 1)
        except (ValueError, RecursionError):
            break
        if at := _OBJECT.match(text, end):
            yield text[begin : at.end() - 1]
            begin = at.end() - 1
    yield text[begin:]


def _is_json(text: str) -> bool:
    try:
        return text.lstrip().startswith("{") and bool(json.loads(text))
    except (ValueError, RecursionError):
        return False


def _mistake_in(text: str, error: yaml.YAMLError) -> tuple[int, str]:
    """Return the line of what a loader found wrong in a text, from 1, and what it is."""
    if isinstance(error, yaml.reader.ReaderError):
        line = text.partition(chr(error.character))[0].count("\n") + 1
        return line, f"invalid YAML: it has U+{error.character:04X}, which YAML forbids"
    assert isinstance(error, yaml.MarkedYAMLError)
    mark = error.problem_mark or error.context_mark
    assert mark is not None
    known = f"character {text[mark.index : mark.index + 1]!r} that cannot start"
    problem = (error.problem or "").replace("character that cannot start", known)
    words = f"{error.context or ''} {problem}".partition(";")[0].split()
    return mark.line + 1, f"invalid YAML: {' '.join(words)}"
