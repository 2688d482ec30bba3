"""The agent's life: settings, heartbeats, one task, and the delivery of what it has collected.

A new task is a module here and a line below. It has `DESCRIPTION` and `arguments(parser)` for its
options, and `collect(options, work)`, which returns nothing or a `TaskFailure`. Only the chosen
module is imported.
"""

import argparse
import sys
from collections.abc import Callable, MutableMapping, Sequence
from importlib import import_module
from pathlib import Path

from reporter import __version__
from reporter.collect.delivery import Link
from reporter.collect.task import TaskFailure, Work
from reporter.common import log
from reporter.common.lifecycle import Ending, Stop
from reporter.link import ConfigError, WorkerConfig

DESCRIPTION = "Collects data on a node or in the cluster and delivers it to the run's aggregator."
DELIVERED, NOT_DELIVERED, BAD_USAGE = 0, 1, 2
TASKS = {
    "gather": "run gatherers on this node and deliver what they write",
    "snapshot": "collect the objects of the cluster and deliver them",
}


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
    ending = Ending(stop)
    with Link(config, ending) as link:
        work = Work(options.out, environ, link.tell, ending)
        code = DELIVERED if link.deliver(options.out, _collected(options, work)) else NOT_DELIVERED
    log.get().info("Agent exits", exitCode=code)
    return code


def _collected(options: argparse.Namespace, work: Work) -> TaskFailure | None:
    collect: Callable[[argparse.Namespace, Work], TaskFailure | None] = options.collect
    try:
        options.out.mkdir(parents=True, exist_ok=True)
        return collect(options, work)
    except Exception as error:
        # The run is told at once, instead of waiting for the deadline.
        log.get().exception("Unexpected error")
        return TaskFailure(f"the agent failed: {type(error).__name__}: {error}", "agent_failed")


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="status-agent", description=DESCRIPTION, allow_abbrev=False
    )
    parser.add_argument("--version", action="version", version=__version__)
    tasks = parser.add_subparsers(metavar="TASK", required=True)
    for name, summary in TASKS.items():
        own = tasks.add_parser(name, help=summary, allow_abbrev=False)
        if list(arguments[:1]) == [name]:
            module = import_module(f"reporter.collect.{name}_task")
            own.description = module.DESCRIPTION
            own.formatter_class = argparse.RawDescriptionHelpFormatter
            own.set_defaults(collect=module.collect, task=name)
            own.add_argument(
                "--out",
                metavar="DIR",
                type=Path,
                default=Path("/results"),
                help="an empty directory for the output (default: %(default)s)",
            )
            module.arguments(own)
    if not arguments:
        parser.print_help(sys.stderr)
        raise SystemExit(BAD_USAGE)
    return parser.parse_args(arguments)
