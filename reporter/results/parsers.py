"""The parser of each format, loaded only where needed: YAML alone costs more than the rest."""

from collections.abc import Callable, Mapping
from typing import Final

from reporter.results.report import Parser
from reporter.results.tree import Tree


def _junit(tree: Tree) -> Parser:
    from reporter.results.junit import JUnit

    return JUnit(tree)


def _gojson(tree: Tree) -> Parser:
    from reporter.results.gojson import GoJson

    return GoJson(tree)


def _manual(tree: Tree) -> Parser:
    from reporter.results.manual import Manual

    return Manual(tree)


PARSERS: Final[Mapping[str, Callable[[Tree], Parser]]] = {
    "junit": _junit,
    "e2e": _junit,
    "gojson": _gojson,
    "manual": _manual,
}
