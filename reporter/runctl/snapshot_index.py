"""What a tarball says of the cluster's snapshot in it: what is missing, and what was blanked."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from reporter.collect.snapshot.files import INDEX
from reporter.common.objects import items, number, section, text
from reporter.runctl.archive import TARBALL, beginning, members
from reporter.untar import BadArchive

_MOST: Final = 32 * 1024 * 1024  # bytes of the index
_NAMED: Final = 5
_CAPS: Final = replace(TARBALL, seconds=5.0)
"""These lines are a courtesy: a tarball that takes longer is shown without them."""


def snapshot_lines(path: Path) -> tuple[str, ...]:
    """Return two lines at most; none without a snapshot, or where it has everything."""
    try:
        index = json.loads(_read(path))
    except (OSError, BadArchive, ValueError, RecursionError):
        return ()
    return tuple(index_lines(index)) if isinstance(index, dict) else ()


def index_lines(index: Mapping[str, Any]) -> Iterator[str]:
    """Yield the same from the index of a snapshot."""
    parts = [(_name(each), each) for each in items(index, "resources")]
    parts += [(name, section(index, name)) for name in ("hosts", "podlogs")]
    groups = (text(each, "group") for each in items(index, "groupErrors"))
    gone = (text(each, "namespace") for each in items(index, "namespaceErrors"))
    missing = (
        ("truncated", [name for name, part in parts if text(part, "truncated")]),
        ("failed", [name for name, part in parts if text(part, "error")]),
        ("API groups that did not answer", list(groups)),
        ("namespaces that failed", list(gone)),
    )
    said = [text(index, "stopped") or text(index, "error")]
    said += [f"{what}: {_several(names)}" for what, names in missing if names]
    if index.get("complete") is not True:
        yield f"the snapshot is not complete: {'; '.join(filter(None, said)) or f'see {INDEX}'}"
    if blanked := sum(number(part, "redacted") or 0 for _, part in parts):
        yield f"values redacted in the snapshot: {blanked}"


def _several(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _name(resource: Mapping[str, Any]) -> str:
    return ".".join(filter(None, (text(resource, "resource"), text(resource, "group"))))


def _read(path: Path) -> bytes:
    for name, pieces in members(path, INDEX, _CAPS):
        if name == INDEX and pieces is not None:
            return beginning(pieces, _MOST)
    return b""
