"""Binding a Pod to a node through the scheduler, which still sees that there is room."""

from collections.abc import Mapping
from typing import Any, Final

from reporter.common.objects import items, section

REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
EVERYTHING: Final = ({"operator": "Exists"},)


def affinity(spec: Mapping[str, Any], node: str) -> dict[str, Any]:
    """Return a Pod's affinity with the node added to every term that it requires.

    Terms are alternatives, and one without requirements matches no node: such a one stays out, or
    the node would make it match.
    """
    whole = section(spec, "affinity")
    of_nodes = section(whole, "nodeAffinity")
    required = section(of_nodes, REQUIRED)
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    terms = list(items(required, "nodeSelectorTerms"))
    if terms:
        bound = [
            {**term, "matchFields": [*items(term, "matchFields"), field]}
            for term in terms
            if term.get("matchExpressions") or term.get("matchFields")
        ]
    else:
        bound = [{"matchFields": [field]}]
    required = {**required, "nodeSelectorTerms": bound or terms}
    return {**whole, "nodeAffinity": {**of_nodes, REQUIRED: required}}
