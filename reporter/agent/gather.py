"""`status-agent gather`: runs the gatherers of the image on a node."""

import argparse
from pathlib import Path

from reporter.agent.task import Failure, Work
from reporter.gather.run import gatherers, run
from reporter.runtime import log

DESCRIPTION = """\
Runs every program in a directory, in the order of their names, and delivers what they write as one
archive. Settings come from the environment, as the contract `link` gives them."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--gatherers",
        metavar="DIR",
        type=Path,
        default=Path("/gatherers.d"),
        help="the directory of the gatherers (default: %(default)s)",
    )
    parser.add_argument(
        "--host",
        metavar="DIR",
        type=Path,
        default=Path("/host"),
        help="where the node's file systems are mounted (default: %(default)s)",
    )


def collect(options: argparse.Namespace, work: Work) -> Failure | None:
    """Run them; all of them failing is a failure."""
    try:
        programs = gatherers(options.gatherers)
    except OSError as error:
        return Failure(f"cannot read {options.gatherers}: {error.strerror}", "no_gatherers")
    if not programs:
        return Failure(f"there are no gatherers in {options.gatherers}", "no_gatherers")
    statuses = []
    work.tell("", 0, len(programs))
    for record in run(programs, work.out, work.environ, options.host, work.stop):
        log.get().info("Gatherer ended", gatherer=record.name, status=record.status)
        statuses.append(record.status)
        work.tell(record.name, len(statuses), len(programs))
    if "failed" in statuses and not {"complete", "partial"} & set(statuses):
        return Failure("no gatherer has succeeded", "gatherers_failed")
    return None
