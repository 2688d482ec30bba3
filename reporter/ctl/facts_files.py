"""The facts of nodes in a run's results: out of a tarball, a directory, or one file."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from reporter.untar.archive import Archive
from reporter.untar.values import Caps, Kind

NAME: Final = "facts.json"
_MOST: Final = 4 * 1024 * 1024  # bytes of one file
_CAPS: Final = Caps(
    members=10**7, file_bytes=2**50, content_bytes=2**50, ratio=10**6, seconds=3600.0
)
"""For a tarball that may hold a thousand nodes; nothing of it is unpacked."""


@dataclass
class Found:
    """Facts by node, and what cannot be read, in words."""

    nodes: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def read_facts(path: Path) -> Found:
    """Read every `facts.json`. Raises OSError, and BadArchive for an archive that is damaged."""
    found = Found()
    for name, data in _in_directory(path) if path.is_dir() else _in_file(path):
        facts = _facts(data)
        if facts is None:
            found.problems.append(f"{name}: not the facts of a node")
            continue
        node = str(facts.get("node") or facts.get("hostname") or name)
        if node in found.nodes:
            node = f"{node} ({name})"
        found.nodes[node] = facts
    return found


def _in_directory(path: Path) -> Iterator[tuple[str, bytes]]:
    for each in sorted(path.rglob(NAME)):
        if each.is_file():
            with each.open("rb") as file:
                yield str(each.relative_to(path)), file.read(_MOST + 1)


def _in_file(path: Path) -> Iterator[tuple[str, bytes]]:
    with path.open("rb") as file:
        if path.name.endswith(".json"):
            yield path.name, file.read(_MOST + 1)
            return
        archive = Archive(file, path.stat().st_size, _CAPS)
        for member in archive:
            if member.kind is Kind.FILE and member.path[-1] == NAME.encode():
                data = bytearray()
                for piece in archive.content():
                    if len(data) <= _MOST:
                        data += piece
                yield b"/".join(member.path).decode(errors="replace"), bytes(data)


def _facts(data: bytes) -> Mapping[str, Any] | None:
    """Return facts of our format; whatever a plugin of somebody else calls so is none."""
    try:
        facts = json.loads(data) if len(data) <= _MOST else None
    except (ValueError, RecursionError):
        return None
    fits = isinstance(facts, dict) and facts.get("api_version") == "v1" and "collected_at" in facts
    return facts if fits else None
