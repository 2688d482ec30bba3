"""The agent's life: settings, heartbeats, one task, and the delivery of what it has collected."""

import argparse
import re
import sys
from collections.abc import MutableMapping, Sequence
from functools import partial
from pathlib import Path

from reporter import __version__
from reporter.collect.delivery import Link, TaskFailure
from reporter.collect.gatherers import (
    FAILED,
    NOT_APPLICABLE,
    add_options,
    chosen_limits,
    gatherers,
    run_all,
)
from reporter.collect.snapshot.options import read_options
from reporter.common import log
from reporter.common.lifecycle import Stop
from reporter.errors import SettingsError
from reporter.link import ConfigError, WorkerConfig

DESCRIPTION = "Collects data on a node or in the cluster and delivers it to the run's aggregator."
_GATHER = """\
Runs every program in a directory, in alphabetical order, and delivers what they write as one
archive. Settings come from the environment, as the contract `link` gives them."""
_SNAPSHOT = """\
Writes the objects of the cluster to files and delivers them as one archive: of every resource that
the server offers and that may be read, page by page. Values that may be secrets are blanked.
Settings come from the environment: those of the contract `link`, and SNAPSHOT_* for what to
collect."""
DELIVERED, NOT_DELIVERED, BAD_USAGE = 0, 1, 2
_OF_LINK = re.compile(
    "AGGREGATOR_.*|CA_CERT.*|CLIENT_(CERT|KEY).*|RESULT_TYPE|SONOBUOY_.*|WORKER_.*"
).fullmatch
"""Variables that no gatherer needs; among them may be a key."""


def main(arguments: Sequence[str], environ: MutableMapping[str, str], stop: Stop) -> int:
    """Do what the arguments say and return the exit code.

    0 when the aggregator has a result of this agent, 1 when it has none or a report of failure,
    2 for arguments or settings that do not fit.
    """
    try:
        options = _options(arguments)
    except SystemExit as ended:
        return int(ended.code or 0)
    log.report_crashes()
    log.configure()
    try:
        scope = environ.get("AGGREGATOR_SCOPE")
        config = WorkerConfig.from_env(
            environ, scope="node" if scope == "node" else "global", drop_key=True
        )
    except ConfigError as error:
        log.get().error("Invalid settings", problems=error.problems)
        return BAD_USAGE
    for warning in config.warnings:
        log.get().warning("Setting ignored", problem=warning)
    log.get().info(
        "Agent started",
        version=__version__,
        task=options.task,
        aggregator=config.aggregator_url,
        plugin=config.plugin,
        node=config.node,
    )
    collect = gather if options.task == "gather" else snapshot
    failure: TaskFailure | None
    with Link(config, stop) as link:
        try:
            options.out.mkdir(parents=True, exist_ok=True)
            failure = collect(options, environ, link, stop)
        except Exception as error:
            # The run is told at once, instead of waiting for the deadline.
            log.get().exception("Unexpected error")
            why = f"the agent failed: {type(error).__name__}: {error}"
            failure = TaskFailure(why, "agent_failed")
        code = DELIVERED if link.deliver(options.out, failure) else NOT_DELIVERED
    log.get().info("Agent exits", exitCode=code)
    return code


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="status-agent", description=DESCRIPTION, allow_abbrev=False
    )
    parser.add_argument("--version", action="version", version=__version__)
    tasks = parser.add_subparsers(metavar="TASK", dest="task", required=True)
    for name, summary, description in (
        ("gather", "run gatherers on this node and deliver what they write", _GATHER),
        ("snapshot", "collect the objects of the cluster and deliver them", _SNAPSHOT),
    ):
        own = tasks.add_parser(
            name,
            help=summary,
            description=description,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        directory = partial(own.add_argument, metavar="DIR", type=Path)
        directory(
            "--out",
            default=Path("/results"),
            help="an empty directory for the output (default: %(default)s)",
        )
        if name == "gather":
            directory(
                "--gatherers",
                default=Path("/gatherers.d"),
                help="the directory of the gatherers (default: %(default)s)",
            )
            directory(
                "--host",
                default=Path("/host"),
                help="where the node's file systems are mounted (default: %(default)s)",
            )
            add_options(own)
    if not arguments:
        parser.print_help(sys.stderr)
        raise SystemExit(BAD_USAGE)
    return parser.parse_args(arguments)


def gather(
    options: argparse.Namespace, environ: MutableMapping[str, str], link: Link, stop: Stop
) -> TaskFailure | None:
    """Run the gatherers of the image on a node; all of them failing is a failure."""
    try:
        programs = gatherers(options.gatherers, options.host)
    except OSError as error:
        return TaskFailure(f"cannot read {options.gatherers}: {error.strerror}", "no_gatherers")
    if not programs:
        return TaskFailure(f"there are no gatherers in {options.gatherers}", "no_gatherers")
    variables = {name: value for name, value in environ.items() if not _OF_LINK(name)}
    limits, records = chosen_limits(options), []
    link.tell(f"gathering: {programs[0].name}", 0, len(programs))
    for record in run_all(programs, options.out, variables, options.host, stop, limits=limits):
        document = record.document()
        del document["api_version"], document["name"]
        write = log.get().warning if record.status == FAILED else log.get().info
        write("Gatherer ended", gatherer=record.name, **document)
        records.append(record)
        link.tell(f"gathered: {record.name}", len(records), len(programs))
    if len(records) < len(programs) or any(each.stopped for each in records):
        return TaskFailure(f"terminated before {programs[-1].name} had ended", "terminated")
    failed = [each.name for each in records if each.status == FAILED]
    applicable = [each.name for each in records if each.status != NOT_APPLICABLE]
    if failed and failed == applicable:
        return TaskFailure(f"every gatherer has failed: {', '.join(failed)}", "gatherers_failed")
    return None


def snapshot(
    options: argparse.Namespace, environ: MutableMapping[str, str], link: Link, stop: Stop
) -> TaskFailure | None:
    """Collect what the environment asks for, from the API server of the cluster we run in."""
    chosen, problems = read_options(environ)
    if problems:
        return TaskFailure("; ".join(problems), "invalid_settings")
    # The client costs a quarter of a second, which gatherers and wrong settings should not.
    from reporter.collect.snapshot.snapshot import take_snapshot
    from reporter.kube.api import KubeApi

    try:
        # Some clusters' CAs lack the extensions that Python 3.13 asks for by default.
        api = KubeApi.in_cluster(relax_x509_strict=True)
    except SettingsError as error:
        return TaskFailure(str(error), "no_cluster")
    return take_snapshot(chosen, api, options.out, link.tell, stop)
