"""YAML as the Kubernetes tools read it: a date is text, and 22:22 no number of base 60."""

import re
from typing import Final

import yaml

from reporter.wire.yaml_scalar import LOADER

DEEPEST: Final = 100
MERGE: Final = "tag:yaml.org,2002:merge"


class Loader(yaml.SafeLoader):
    """In Python: its marks and its words for mistakes are the same everywhere."""


class FastLoader(LOADER):  # type: ignore[misc,valid-type]
    """In C where PyYAML was built with it: for what others have made, which may be large."""


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
for _loader in (Loader, FastLoader):
    _loader.yaml_implicit_resolvers = {first: list(each) for first, each in _RESOLVERS.items()}
    for _kind, _pattern in _NUMBERS.items():
        _loader.add_implicit_resolver(
            f"tag:yaml.org,2002:{_kind}", re.compile(_pattern), list("-+.0123456789")
        )


def line_of(error: yaml.MarkedYAMLError) -> int:
    """Return the line of a mistake, from 1."""
    mark = error.problem_mark or error.context_mark
    return 1 if mark is None else int(mark.line) + 1
