"""The facts of nodes in a run's results: out of a tarball, a directory, or one file."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reporter.collect.host.compare import FILE, LARGEST, read_facts_file
from reporter.runctl.archive import TARBALL
from reporter.untar.archive import Archive
from reporter.untar.values import Kind

_OF_NODE = re.compile(r"(?:^|/)plugins/([^/]+)/(?:results|errors)/([^/]+)(?:/|$)")


@dataclass
class FactsByNode:
    """Facts by node, and what cannot be read, in words.

    `without` are the nodes of the run of which there are none; their workers have failed.
    """

    nodes: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    without: list[str] = field(default_factory=list)


def read_facts(path: Path) -> FactsByNode:
    """Read every `facts.json`. Raises OSError, and BadArchive for an archive that is damaged."""
    found = FactsByNode()
    seen, told = set(), set()
    for name, data in _in_directory(path) if path.is_dir() else _in_file(path):
        place = match.groups() if (match := _OF_NODE.search(name)) else ("", "")
        seen.add(place)
        if data is None:
            continue
        facts = read_facts_file(data)
        if facts is None:
            found.problems.append(f"{name}: not the facts of a node")
            continue
        node = str(facts.get("node") or facts.get("hostname") or name)
        if node in found.nodes:
            node = f"{node} ({name})"
        found.nodes[node] = facts
        told.add(place)
    gathering, have = ({place[at] for place in told} for at in (0, 1))
    found.without = sorted({node for plugin, node in seen if plugin in gathering} - have)
    return found


def _in_directory(path: Path) -> Iterator[tuple[str, bytes | None]]:
    """Yield every path, and what is in it where it has our name."""
    for each in sorted(path.rglob("*")):
        data = None
        if each.name == FILE and each.is_file():
            with each.open("rb") as file:
                data = file.read(LARGEST + 1)
        yield str(each.relative_to(path)), data


def _in_file(path: Path) -> Iterator[tuple[str, bytes | None]]:
    with path.open("rb") as file:
        if path.name.endswith(".json"):
            yield path.name, file.read(LARGEST + 1)
            return
        archive = Archive(file, path.stat().st_size, TARBALL)
        for member in archive:
            name, data = b"/".join(member.path).decode(errors="replace"), None
            if member.kind is Kind.FILE and member.path[-1] == FILE.encode():
                data = bytearray()
                for piece in archive.content():
                    if len(data) <= LARGEST:
                        data += piece
            yield name, None if data is None else bytes(data)
