"""YAML as the Kubernetes tools read it: a date is text, and 22:22 no number of base 60."""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

import yaml
from yaml.composer import Composer

from reporter.common.yaml_scalar import LOADER

DEEPEST: Final = 100
MERGE: Final = "tag:yaml.org,2002:merge"
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


_RESOLVERS = {
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
Loader.yaml_implicit_resolvers = _RESOLVERS
for _kind, _pattern in _NUMBERS.items():
    Loader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_kind}", re.compile(_pattern), list("-+.0123456789")
    )


def split_json(text: str) -> Iterator[str]:
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


def template_hint(text: str) -> str:
    """Return what to add to a mistake in a text; nothing where it is no template."""
    hint = " (is this a Helm template? Use the output of `helm template`)"
    return hint if "{{" in text else ""


def mistake_in(text: str, error: yaml.YAMLError) -> tuple[int, str]:
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
