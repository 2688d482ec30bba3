"""`status-ctl results`: the test results of a run, what failed first."""

import argparse
import io
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any, Final, Literal

from reporter.cli import output as show
from reporter.cli.exits import FAILED, GOOD, NOT_OVER
from reporter.cli.junit import Case, junit
from reporter.cli.output import tell
from reporter.cli.table import table, terminal_columns
from reporter.collect.snapshot.rights import PLUGIN
from reporter.common.objects import text
from reporter.common.text import clean
from reporter.results.items import BAD, VERDICT
from reporter.results.run_results import (
    PluginResults,
    Results,
    Test,
    read_results,
    single_results,
)
from reporter.run.plan import GLOBAL
from reporter.run.results import SKIPPED
from reporter.run.view import Row
from reporter.runctl import archive
from reporter.runctl.server import StatusServer

DESCRIPTION = """\
Shows the test results of a run: a line for each plugin, then each test that did not pass, with
its text. FILE is a tarball of a run (also of Sonobuoy) or an unpacked one; without FILE, the
results are downloaded from the run, marked `partial` if it is not over.

exit codes:
  0    all tests passed
  1    a test failed or is unknown, no results were found, or the archive is damaged
  2    usage error
  3    the run is not over, and no test has failed so far
  4    cannot tell: not reachable, forbidden, no such run, no results yet
  130  Ctrl-C"""
FORMS = ("table", "json", "yaml", "junit")
_LINES: Final = 20  # of the text of one test in a report
_LINES_AT_ONCE: Final = 1000
_LINE: Final = 512  # bytes


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    archive.arguments(parser)
    parser.add_argument("--plugin", metavar="NAME", default="", help="only this plugin")
    parser.add_argument("--node", metavar="NAME", default="", help="only this node")
    parser.add_argument(
        "--mode",
        choices=("report", "detailed", "dump"),
        default="report",
        help="`report` (the default): a summary and what did not pass; `detailed`: every test; "
        "`dump`: the plugins' sonobuoy_results.yaml as they are",
    )
    parser.add_argument("--failed", action="store_true", help="only tests that did not pass")
    show.arguments(parser, FORMS)


def run(options: argparse.Namespace) -> int:
    """Read, show, and return the exit code."""
    if options.mode == "dump" and (options.failed or options.node or options.output != "table"):
        options.error("--mode dump cannot be used with --failed, --node or --output")
    found = archive.read(
        options,
        lambda path: _read(path, options),
        lambda server, entries: _read_entries(server, entries, options),
    )
    if found is None:
        return FAILED
    for problem in found.problems:
        tell(problem)
    for plugin in found.plugins:
        if plugin.unlisted:
            tell(
                f"plugin {plugin.name}: {plugin.unlisted} tests are counted but not listed, "
                "the list would be too long; narrow it with --failed or --node"
            )
    if not found.plugins:
        tell(_nothing(options))
        return FAILED
    _show(found, options)
    good = all(plugin.verdict == "passed" for plugin in found.plugins)
    if not good or found.problems:
        return FAILED
    return NOT_OVER if options.partial else GOOD


def _nothing(options: argparse.Namespace) -> str:
    chosen = ("plugin", options.plugin), ("node", options.node)
    wanted = ", ".join(f"{name} {value}" for name, value in chosen if value)
    return f"no results of {wanted} found" if wanted else "no results found"


def _read(path: Path, options: argparse.Namespace) -> Results:
    dumped = options.mode == "dump"
    every = options.mode == "detailed" or options.output == "junit"
    found = read_results(
        path,
        options.plugin,
        options.node,
        every=every and not options.failed,
        written=dumped,
    )
    if any(plugin.name == PLUGIN for plugin in found.plugins):
        for line in archive.snapshot_lines(path):
            tell(line)
    return found


def _read_entries(
    server: StatusServer, entries: Sequence[Row], options: argparse.Namespace
) -> Results | None:
    if options.mode == "dump":
        return None  # the plugins' files are made at the end of the run
    every = options.mode == "detailed" or options.output == "junit"
    found = single_results(server, entries, options.plugin, options.node)
    if found is not None and every and not options.failed:
        tell("tests that passed are listed when the run is over")
    return found


def _show(found: Results, options: argparse.Namespace) -> None:
    if options.mode == "dump":
        for plugin in found.plugins:
            _dump(plugin)
    elif options.output == "junit":
        # A case's class is the path to it.
        suites = [(plugin.name, [*map(_case, plugin.tests)]) for plugin in found.plugins]
        if options.partial:
            suites.append(("partial", [Case("partial", "the run is not over", "skipped")]))
        show.put(junit(suites))
    elif options.output != "table":
        plugins = [_document(plugin) for plugin in found.plugins]
        document = {"api_version": "v1", "kind": "Results", "plugins": plugins}
        show.put_data(options.output, document | archive.marked(options))
    elif options.mode == "detailed":
        for plugin in found.plugins:
            show.put(_one_line(test) for test in plugin.tests)
    else:
        _report(found, options)


def _dump(plugin: PluginResults) -> None:
    """Write the lines as they are, indentation included, but for what a terminal would obey."""
    assert plugin.written is not None, "read without its file"
    plugin.written.seek(0)
    lines = io.TextIOWrapper(plugin.written, "utf-8", "replace")
    while batch := [line.removesuffix("\n") for line in islice(lines, _LINES_AT_ONCE)]:
        show.put(_safe(line) for line in batch)


def _safe(line: str) -> str:
    indented = len(line) - len(line.lstrip(" "))
    return " " * indented + clean(line, 1 << 20)


def _report(found: Results, options: argparse.Namespace) -> None:
    header = ["PLUGIN", "RESULT", "TESTS", "PASSED", "FAILED", "SKIPPED", "OTHER"]
    rows = []
    for plugin in found.plugins:
        counts = plugin.counts
        bad = sum(counts[word] for word in BAD)
        told = [counts["passed"], bad, counts[SKIPPED]]
        numbers = [counts.total(), *told, counts.total() - sum(told)]
        rows.append([plugin.name, plugin.status, *map(str, numbers)])
    columns = terminal_columns(sys.stdout)
    show.put(table(header, rows, columns=columns, colours=show.colours(options)))
    for plugin in found.plugins:
        for test in plugin.tests:
            show.put(("", *_told(test)))


def _told(test: Test) -> Iterator[str]:
    """Yield what is said of a test that did not pass."""
    yield clean(f"{test.status}: {' > '.join((*test.path, test.name))}", 4096)
    lines = test.said.splitlines()
    if lines == [test.name]:  # an error without a report: its words are its name
        return
    for line in lines[:_LINES]:
        yield f"    {clean(line, _LINE)}".rstrip()
    if more := lines[_LINES:]:
        yield f"    ... {len(more)} more lines"


def _one_line(test: Test) -> str:
    return show.safe_json(json.dumps(asdict(test), ensure_ascii=False))


def _document(plugin: PluginResults) -> dict[str, Any]:
    return {
        "name": plugin.name,
        "status": plugin.status,
        "counts": dict(sorted(plugin.counts.items())),
        "tests": [asdict(test) for test in plugin.tests],
    }


def _case(test: Test) -> Case:
    group, name, message, reason = ".".join(test.path), test.name, test.status, ""
    if text(test.meta, "type") == VERDICT:
        # Its name is its reason, and another reason is no other test case.
        path = text(test.meta, "path") or text(test.meta, "file")
        group, file = test.path[0], path.split("/")
        name = "/".join([group, *(node for node in file[1:2] if node != GLOBAL)])
        reason = "" if test.name == file[-1] else test.name
        message = ": ".join(filter(None, dict.fromkeys((reason, test.said)))) or test.status
    if test.status == "passed":
        return Case(group, name, reason=reason)
    if test.status == SKIPPED:
        return Case(group, name, "skipped")
    outcome: Literal["failure", "error"] = "failure" if test.status in BAD else "error"
    return Case(group, name, outcome, message, test.said, reason)
