"""Items as YAML in the shape that Sonobuoy's `sonobuoy_results.yaml` has."""

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from reporter.results.tree import Item
from reporter.run.counting import status_of

_KEY: Final = 256  # characters; YAML allows 1024 bytes
_UNPRINTABLE: Final = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_LONE: Final = re.compile("[\ud800-\udfff]")


def head(name: str, counts: Mapping[str, int], *, counted: bool) -> str:
    """Return the lines of a plugin's summary, but for its items."""
    return (
        f"name: {_quoted(name)}\n"
        f"status: {_quoted(status_of(counts, counted=counted))}\n"
        "meta:\n"
        "  type: summary\n"
    )


def node_head(name: str, counts: Mapping[str, int], *, counted: bool) -> str:
    """Return the lines of a node in the items of a plugin, but for its items."""
    return (
        f"- name: {_quoted(name)}\n"
        f"  status: {_quoted(status_of(counts, counted=counted))}\n"
        "  meta:\n"
        "    type: node\n"
    )


def lines(item: Item, depth: int, *, counted: bool) -> Iterator[str]:
    """Yield the lines of an item in a list that is `depth` levels deep."""
    pad = "  " * depth
    branch = item.items or not item.status
    status = status_of(item.counts, counted=counted) if branch else item.status
    yield f"{pad}- name: {_quoted(item.name)}\n{pad}  status: {_quoted(status)}\n"
    for name, found in (("meta", item.meta), ("details", item.details)):
        if found:
            yield f"{pad}  {name}:\n"
            for key, value in found.items():
                yield f"{pad}    {_quoted(key[:_KEY])}: {_flow(value)}\n"
    if item.items:
        yield f"{pad}  items:\n"
        for each in item.items:
            yield from lines(each, depth + 1, counted=counted)


def _flow(value: Any) -> str:
    match value:
        case str():
            return _quoted(value)
        case dict():
            pairs = (f"{_quoted(key[:_KEY])}: {_flow(each)}" for key, each in value.items())
            return f"{{{', '.join(pairs)}}}"
        case list():
            return f"[{', '.join(map(_flow, value))}]"
        case float() if not math.isfinite(value):
            return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"
        case _:
            return json.dumps(value)


def _quoted(text: str) -> str:
    plain = json.dumps(_LONE.sub("\ufffd", text), ensure_ascii=False)
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", plain)
