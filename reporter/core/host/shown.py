"""What differs between nodes, cut to what a page can show."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from reporter.core.host.compare import Comparison, Difference
from reporter.core.within import within

_FACTS: Final = 2_000
_SIZE: Final = 512 * 2**10  # bytes
_VALUES: Final = 10  # of one fact
_NODES: Final = 5  # that have one value
_TEXT: Final = 200  # characters
_NAMED: Final = 20  # nodes without facts


def differences_document(
    comparison: Comparison, without: Sequence[str], *, unread: int = 0
) -> dict[str, Any]:
    """Write what differs; `without` are the nodes with no facts that could be read.

    `unread` says of how many nodes the facts were not looked at, for want of time.
    """
    found, more = within(map(_difference, comparison.differences()), _FACTS, _SIZE)
    return {
        "nodes": comparison.nodes,
        "differences": found,
        "more_differences": more,
        "complete": not (more or comparison.left_out or unread),
        "without": list(without[:_NAMED]),
        "more_without": max(0, len(without) - _NAMED),
        "unread": unread,
    }


def _difference(found: Difference) -> dict[str, Any]:
    values = list(found.values.items())
    return {
        "fact": _cut(found.name),
        "majority": None if found.majority is None else _cut(found.majority),
        "values": [_value(value, nodes) for value, nodes in values[:_VALUES]],
        "more_values": max(0, len(values) - _VALUES),
    }


def _value(value: str, nodes: Iterable[str]) -> dict[str, Any]:
    named = list(nodes)
    return {"value": _cut(value), "count": len(named), "nodes": named[:_NODES]}


def _cut(text: str) -> str:
    return text if len(text) <= _TEXT else f"{text[:_TEXT]} [truncated]"
