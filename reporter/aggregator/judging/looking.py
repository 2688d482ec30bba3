"""The process that looks for one file in archives: facts of nodes, or a snapshot's index.

Standard input has a line for each archive, JSON: its node, path and size. The argument says what is
looked for; standard output gets the document, `null` where there is nothing of the kind. Of several
archives one that is damaged costs only its own node.
"""

import contextlib
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from reporter.aggregator.judging.child import limit
from reporter.core.host.compare import Comparison
from reporter.core.host.facts_file import LARGEST, NAME, read_facts_file
from reporter.core.host.shown import differences_document
from reporter.core.objects import json_object
from reporter.core.snapshot.contents import contents_document
from reporter.core.snapshot.paths import INDEX
from reporter.untar import ACCEPTED, Archive, BadArchive, Kind

MEMORY: Final = 64 * 2**20  # address space beyond what is there at the start
FACTS, SNAPSHOT = "facts", "snapshot"
_COMPARED: Final = 16 * 2**20  # bytes of the values of all nodes
_INDEX: Final = 4 * 2**20  # bytes
_SECONDS: Final = 40.0  # of the processor; the archives that are left then are not read
_WITHOUT: Final = 3  # whole archives without a file of facts, after which nobody expects any


class _Source(NamedTuple):
    node: str
    path: str
    size: int


def main() -> None:
    """Look, answer, end. An error ends it."""
    limit(MEMORY)
    sources = (_Source(*json.loads(line)) for line in sys.stdin)
    found = {FACTS: _facts, SNAPSHOT: _snapshot}[sys.argv[1]](sources)
    written = json.dumps(found, ensure_ascii=False, separators=(",", ":"))
    sys.stdout.buffer.write(written.encode("utf-8", "replace"))


def _facts(sources: Iterator[_Source]) -> dict[str, Any] | None:
    comparison, without, none, unread = Comparison(most=_COMPARED), list[str](), 0, 0
    for source in sources:
        if time.process_time() > _SECONDS:
            unread += 1
            continue
        compared = _compared(source, comparison)
        if not compared:
            without.append(source.node)
        none += compared is None
        if none == _WITHOUT and not comparison.nodes:
            return None
    return differences_document(comparison, without, unread=unread) if comparison.nodes else None


def _compared(source: _Source, comparison: Comparison) -> bool | None:
    """Compare the facts of one more node; false if they cannot be read, None if it has none."""
    there = False

    def has_facts(path: tuple[bytes, ...]) -> bool:
        nonlocal there
        wanted = path[-1] == NAME.encode()
        there = there or wanted
        return wanted

    try:
        facts = _first(source, has_facts, LARGEST, read_facts_file)
        if facts is not None:
            comparison.add(source.node, facts)
            return True
    except (OSError, BadArchive, MemoryError, RecursionError):
        return False
    return False if there else None


def _snapshot(sources: Iterator[_Source]) -> dict[str, Any] | None:
    for source in sources:
        index = None
        with contextlib.suppress(OSError, BadArchive, MemoryError):
            index = _first(source, _is_index, _INDEX, json_object)
        return None if index is None else contents_document(index)
    return None


def _first(
    source: _Source,
    wanted: Callable[[tuple[bytes, ...]], bool],
    largest: int,
    read: Callable[[bytes], Mapping[str, Any] | None],
) -> Mapping[str, Any] | None:
    """Return the first file of an archive whose path is wanted and that can be read.

    Raises OSError, `BadArchive` and MemoryError.
    """
    with Path(source.path).open("rb") as body:
        archive = Archive(body, source.size, ACCEPTED)
        for member in archive:
            if member.kind is Kind.FILE and wanted(member.path) and member.size <= largest:
                found = read(b"".join(map(bytes, archive.content())))
                if found is not None:
                    return found
    return None


def _is_index(path: tuple[bytes, ...]) -> bool:
    return path == tuple(INDEX.encode().split(b"/"))
