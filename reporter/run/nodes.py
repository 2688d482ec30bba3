"""On which nodes a plugin runs, decided once, and how its Pods are bound to them."""

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from reporter.common import label_selector
from reporter.common.label_selector import Requirement
from reporter.common.objects import Object, items, section, text
from reporter.common.text import clean
from reporter.run.definition import Definition
from reporter.run.plan import Skipped

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_OS: Final = frozenset({"kubernetes.io/os", "beta.kubernetes.io/os"})
_VIRTUAL: Final = (("type", "virtual-kubelet"), ("eks.amazonaws.com/compute-type", "fargate"))
_KEEPING_OUT: Final = frozenset({"NoSchedule", "NoExecute"})
_SHOWN = 160  # bytes of a node's own words


class Selected(NamedTuple):
    """The names of the nodes that are chosen, and the others with their reasons, both sorted."""

    chosen: tuple[str, ...]
    skipped: tuple[Skipped, ...]


def select(definition: Definition, nodes: Sequence[Object]) -> Selected:
    """Choose from the cluster's nodes, as the API gives them.

    Nodes that the definition's selector does not match were never meant: they are not skipped.
    Raises ValueError for a selector that cannot be read.
    """
    meant = label_selector.parse(definition.nodes.selector)
    chosen, skipped = [], []
    for node in nodes:
        labels = section(node, "metadata", "labels")
        if not all(requirement.matches(labels) for requirement in meant):
            continue
        name = text(section(node, "metadata"), "name")
        if reason := next(_reasons(definition, meant, node), ""):
            skipped.append(Skipped(name, reason))
        else:
            chosen.append(name)
    return Selected(tuple(sorted(chosen)), tuple(sorted(skipped)))


def _reasons(definition: Definition, meant: Sequence[Requirement], node: Object) -> Iterator[str]:
    """Yield why a node is not chosen; what lasts longest comes first."""
    spec = section(definition.template, "spec")
    labels = section(node, "metadata", "labels")
    selector = section(spec, "nodeSelector")
    terms = _terms(spec)
    named = {requirement.key for requirement in meant} | selector.keys() | set(_keys(terms))
    system = labels.get("kubernetes.io/os") or section(node, "status", "nodeInfo").get(
        "operatingSystem"
    )
    if system != "linux" and not named & _OS:
        yield f"its operating system is {system or 'unknown'}"
    yield from (
        f"it is virtual: {key}={value}" for key, value in _VIRTUAL if labels.get(key) == value
    )
    for key, value in selector.items():
        if labels.get(key) != value:
            yield f"the template's nodeSelector has {clean(f'{key}={value}', _SHOWN)}"
    if terms and not any(_matches(term, node) for term in terms):
        yield "the template's node affinity does not match"
    wanted = text(spec, "nodeName")
    if wanted and wanted != text(section(node, "metadata"), "name"):
        yield f"the template's nodeName is {clean(wanted, _SHOWN)}"
    if not definition.nodes.include_not_ready:
        yield from _not_ready(node)
    tolerations = list(items(spec, "tolerations"))
    for taint in items(section(node, "spec"), "taints"):
        # Without any the Pod is given one for everything.
        if tolerations and not _tolerated(taint, tolerations):
            yield f"the template does not tolerate its taint {_taint(taint)}"


def _not_ready(node: Object) -> Iterator[str]:
    conditions = items(section(node, "status"), "conditions")
    ready: Object = next((each for each in conditions if text(each, "type") == "Ready"), {})
    if text(ready, "status") != "True":
        said = clean(text(ready, "message") or text(ready, "reason"), _SHOWN)
        yield f"it is not Ready: {said}" if said else "it is not Ready"


def _terms(spec: Object) -> list[Object]:
    required = section(spec, "affinity", "nodeAffinity", _REQUIRED)
    return list(items(required, "nodeSelectorTerms"))


def _keys(terms: Sequence[Object]) -> Iterator[str]:
    return (text(each, "key") for term in terms for each in items(term, "matchExpressions"))


def _matches(term: Object, node: Object) -> bool:
    """Say whether a node fulfils all of a term; one that asks for nothing matches no node."""
    labels = section(node, "metadata", "labels")
    fields = {"metadata.name": text(section(node, "metadata"), "name")}
    fulfilled = [
        _requirement(each).matches(of)
        for kind, of in (("matchExpressions", labels), ("matchFields", fields))
        for each in items(term, kind)
    ]
    return bool(fulfilled) and all(fulfilled)


def _requirement(found: Object) -> Requirement:
    values = found.get("values")
    listed = tuple(map(str, values)) if isinstance(values, list) else ()
    return Requirement(text(found, "key"), text(found, "operator"), listed)


def _tolerated(taint: Object, tolerations: Sequence[Object]) -> bool:
    if text(taint, "effect") not in _KEEPING_OUT:
        return True
    return any(_tolerates(each, taint) for each in tolerations)


def _tolerates(toleration: Object, taint: Object) -> bool:
    if text(toleration, "effect") not in {"", text(taint, "effect")}:
        return False
    whatever = text(toleration, "operator") == "Exists"
    key = text(toleration, "key")
    if not key:
        return whatever
    same = text(toleration, "value") == text(taint, "value")
    return key == text(taint, "key") and (whatever or same)


def _taint(taint: Object) -> str:
    value = f"={text(taint, 'value')}" if text(taint, "value") else ""
    return clean(f"{text(taint, 'key')}{value}:{text(taint, 'effect')}", _SHOWN)


def affinity(spec: Object, node: str) -> dict[str, Any]:
    """Return a Pod's affinity with the node added to every term that it requires.

    The scheduler still sees that there is room, as with `spec.nodeName` it would not.
    Terms are alternatives, and one without requirements matches no node: such a one stays out, or
    the node would make it match.
    """
    whole = section(spec, "affinity")
    of_nodes = section(whole, "nodeAffinity")
    required = section(of_nodes, _REQUIRED)
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
    return {**whole, "nodeAffinity": {**of_nodes, _REQUIRED: required}}
