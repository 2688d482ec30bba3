"""`status-ctl facts`: the facts of nodes side by side, and what differs between them."""

import argparse
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

from reporter.cli import output as show
from reporter.cli.exits import FAILED, GOOD, NOT_OVER
from reporter.cli.output import tell
from reporter.cli.table import table, terminal_columns
from reporter.collect.host.facts import FILE
from reporter.common.objects import items, number, section, text
from reporter.results.compare import (
    ABSENT,
    LARGEST,
    Difference,
    differences,
    lines,
    read_facts_file,
)
from reporter.run.plan import GLOBAL
from reporter.run.view import Row
from reporter.runctl import archive
from reporter.runctl.server import StatusServer
from reporter.untar import BadArchive

DESCRIPTION = """\
Shows the facts of nodes that the built-in plugin host-facts (or `status-ctl gather`) has collected:
a line for each node, all facts of one node with --node, or only the differences with --diff. FILE
is a tarball, an unpacked one, or the output of gather; without FILE, the results are downloaded
from the run, marked `partial` if it is not over.

exit codes:
  0    shown
  1    no facts were found, or none of that node, or the archive is damaged
  2    usage error
  3    shown, but the run is not over
  4    cannot tell: not reachable, forbidden, no such run, no results yet
  130  Ctrl-C"""
FORMS = ("table", "json", "yaml")
_NODES_SHOWN = 3
_TRIED: Final = 3  # results without facts, until a plugin has none
_OF_NODE: Final = re.compile(r"(?:^|/)plugins/([^/]+)/(?:results|errors)/([^/]+)(?:/|$)")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    archive.arguments(parser)
    parser.add_argument("--node", metavar="NAME", help="all facts of this node")
    parser.add_argument("--diff", action="store_true", help="only what differs between nodes")
    parser.add_argument(
        "--all",
        action="store_true",
        help="with --diff also what differs on every node: addresses, load, free memory, ...",
    )
    show.arguments(parser, FORMS)


def run(options: argparse.Namespace) -> int:
    """Read, compare, show; return the exit code."""
    if options.node and options.diff:
        options.error("--node and --diff cannot be used together")
    if options.all and not options.diff:
        options.error("--all requires --diff")
    found = archive.read(options, read_facts, _of_entries)
    if found is None:
        return FAILED
    for problem in found.problems:
        tell(problem)
    if not found.nodes:
        tell("no facts of nodes found")
        return FAILED
    if found.without and not options.node:
        tell(f"no facts of these nodes of the run: {', '.join(found.without)}")
    if options.node:
        if options.node not in found.nodes:
            tell(f"there are no facts of node {options.node}; there are: {_some(found.nodes)}")
            return FAILED
        _show_node(found.nodes[options.node], options)
    elif options.diff:
        _show_differences(found.nodes, options)
    else:
        _show_nodes(found.nodes, options)
    return NOT_OVER if options.partial else GOOD


@dataclass
class FactsByNode:
    """Facts by node, and what cannot be read, in words.

    `without` are the nodes of the run of which there are none; their workers have failed.
    """

    nodes: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    without: list[str] = field(default_factory=list)


def read_facts(path: Path) -> FactsByNode:
    """Read every `facts.json` of a tarball or directory, or one file of that kind.

    Raises OSError, and BadArchive for an archive that is damaged.
    """
    return _collected(_files(path))


def _of_entries(server: StatusServer, entries: Sequence[Row]) -> FactsByNode | None:
    """Read those that have arrived of a run that goes on; nothing where none have."""
    found = _collected(_single_files(server, entries))
    return found if found.nodes or found.problems else None


def _single_files(
    server: StatusServer, entries: Sequence[Row]
) -> Iterator[tuple[str, bytes | None]]:
    """Yield the same as of a tarball. Other plugins are not read to their last result."""
    for plugin in dict.fromkeys(row.plugin for row in entries):
        some, tried = False, 0
        for row in entries:
            if row.plugin != plugin or not row.decided:
                continue
            place = f"plugins/{plugin}/results/{row.node or GLOBAL}"
            yield place, None
            if row.bad or (tried >= _TRIED and not some):
                continue
            tried += 1
            with tempfile.NamedTemporaryFile(prefix="results-", suffix=".tar.gz") as file:
                if not archive.fetch_result(server, row, cast("BinaryIO", file)):
                    continue
                with suppress(BadArchive):  # a file of that type
                    for name, data in _files(Path(file.name)):
                        if data is not None:
                            some = True
                            yield f"{place}/{name}", data


def _collected(files: Iterable[tuple[str, bytes | None]]) -> FactsByNode:
    found = FactsByNode()
    seen, told = set(), set()
    for name, data in files:
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


def _files(path: Path) -> Iterator[tuple[str, bytes | None]]:
    """Yield every path, and what is in it where it has our name."""
    if path.is_file() and path.name.endswith(".json"):
        with path.open("rb") as file:
            yield path.name, file.read(LARGEST + 1)
        return
    for name, pieces in archive.members(path, "**/*"):
        if pieces is not None and name.rpartition("/")[2] == FILE:
            yield name, archive.beginning(pieces, LARGEST + 1)
        else:
            yield name, None


def _show_nodes(nodes: Mapping[str, Mapping[str, Any]], options: argparse.Namespace) -> None:
    if options.output in ("json", "yaml"):
        documents = [{**facts, "node": node} for node, facts in sorted(nodes.items())]
        show.put_data(
            options.output,
            {"api_version": "v1", "kind": "Facts", "nodes": documents} | archive.marked(options),
        )
    else:
        header = ["NODE", "OS", "KERNEL", "ARCH", "CPUS", "MEMORY", "RUNTIME", "UNREADABLE"]
        _put_table(header, [[node, *_summary(facts)] for node, facts in sorted(nodes.items())])


def _summary(facts: Mapping[str, Any]) -> list[str]:
    kernel, runtimes = section(facts, "kernel"), facts.get("container_runtimes")
    cpus = number(section(facts, "cpu"), "logical")
    problems = len(list(items(facts, "problems")))
    return [
        text(section(facts, "os"), "pretty_name") or text(section(facts, "os"), "id"),
        text(kernel, "release"),
        text(kernel, "architecture"),
        "" if cpus is None else str(cpus),
        show.size(number(section(facts, "memory"), "total_bytes")),
        ", ".join(map(str, runtimes)) if isinstance(runtimes, list) else "",
        str(problems) if problems else "",
    ]


def _show_node(facts: Mapping[str, Any], options: argparse.Namespace) -> None:
    if options.output in ("json", "yaml"):
        show.put_data(options.output, facts)
    else:
        _put_table(["FACT", "VALUE"], list(lines(facts).items()))


def _show_differences(nodes: Mapping[str, Mapping[str, Any]], options: argparse.Namespace) -> None:
    found = differences(nodes, own=options.all)
    if options.output in ("json", "yaml"):
        documents = [
            {
                "fact": each.name,
                "majority": each.majority,
                "values": [{"value": v, "nodes": list(n)} for v, n in each.values.items()],
            }
            for each in found
        ]
        document = {"api_version": "v1", "kind": "FactsDiff", "nodes": sorted(nodes)}
        show.put_data(
            options.output, {**document, "differences": documents} | archive.marked(options)
        )
    elif len(nodes) == 1:
        tell(f"there are facts of one node only: {_some(nodes)}")
    elif not found:
        tell(f"the facts of {len(nodes)} nodes are the same")
    else:
        rows = [[each.name, _majority(each, len(nodes)), _others(each)] for each in found]
        _put_table(["FACT", "MAJORITY", "DIFFERENT"], rows)


def _majority(difference: Difference, nodes: int) -> str:
    if difference.majority is None:
        return ""
    return f"{difference.majority} ({len(difference.values[difference.majority])} of {nodes})"


def _others(difference: Difference) -> str:
    return "; ".join(
        f"{value}: {_some(nodes)}" if value != ABSENT else f"{ABSENT} on {_some(nodes)}"
        for value, nodes in difference.values.items()
        if value != difference.majority
    )


def _some(names: Mapping[str, Any] | Sequence[str]) -> str:
    shown = sorted(names)[:_NODES_SHOWN]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _put_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    show.put(table(header, rows, columns=terminal_columns(sys.stdout)))
