"""Binding a Pod to a node through the scheduler, which still sees that there is room."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from reporter.core.objects import items, section, text

REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
EVERYTHING: Final = ({"operator": "Exists"},)
_NAME: Final = "metadata.name"


def affinity(spec: Mapping[str, Any], nodes: Sequence[str]) -> dict[str, Any]:
    """Return a Pod's affinity with these nodes added to every term that it requires.

    Terms are alternatives, and one without requirements matches no node: such a one stays out, or
    the node would make it match. A field takes one value, so that each node has terms of its own.
    """
    whole = section(spec, "affinity")
    of_nodes = section(whole, "nodeAffinity")
    required = section(of_nodes, REQUIRED)
    fields = [{"key": _NAME, "operator": "In", "values": [node]} for node in nodes]
    terms = list(items(required, "nodeSelectorTerms"))
    if terms:
        bound = [
            {**term, "matchFields": [*items(term, "matchFields"), field]}
            for term in terms
            if term.get("matchExpressions") or term.get("matchFields")
            for field in fields
        ]
    else:
        bound = [{"matchFields": [field]} for field in fields]
    required = {**required, "nodeSelectorTerms": bound or terms}
    return {**whole, "nodeAffinity": {**of_nodes, REQUIRED: required}}


def node_of(spec: Mapping[str, Any]) -> str:
    """Return the node of a Pod: where it is, else the only one to which it is bound; else empty."""
    if found := text(spec, "nodeName"):
        return found
    required = section(spec, "affinity", "nodeAffinity", REQUIRED)
    named = {
        str(value)
        for term in items(required, "nodeSelectorTerms")
        for field in items(term, "matchFields")
        if text(field, "key") == _NAME and isinstance(field.get("values"), list)
        for value in field["values"]
    }
    return named.pop() if len(named) == 1 else ""
