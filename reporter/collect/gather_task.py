"""`status-agent gather`: runs the gatherers of the image on a node."""

import argparse
import re
from pathlib import Path

from reporter.collect.limits import add_options, chosen_limits
from reporter.collect.record import FAILED, NOT_APPLICABLE
from reporter.collect.run import gatherers, run_all
from reporter.collect.task import TaskFailure, Work
from reporter.common import log

DESCRIPTION = """\
Runs every program in a directory, in alphabetical order, and delivers what they write as one
archive. Settings come from the environment, as the contract `link` gives them."""

_OF_LINK = re.compile(
    "AGGREGATOR_.*|CA_CERT.*|CLIENT_(CERT|KEY).*|RESULT_TYPE|SONOBUOY_.*|WORKER_.*"
).fullmatch
"""Variables that no gatherer needs; among them may be a key."""


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
    add_options(parser)


def collect(options: argparse.Namespace, work: Work) -> TaskFailure | None:
    """Run them; all of them failing is a failure."""
    try:
        programs = gatherers(options.gatherers, options.host)
    except OSError as error:
        return TaskFailure(f"cannot read {options.gatherers}: {error.strerror}", "no_gatherers")
    if not programs:
        return TaskFailure(f"there are no gatherers in {options.gatherers}", "no_gatherers")
    environ = {name: value for name, value in work.environ.items() if not _OF_LINK(name)}
    records = []
    work.tell(f"gathering: {programs[0].name}", 0, len(programs))
    for record in run_all(
        programs, work.out, environ, options.host, work.stop, limits=chosen_limits(options)
    ):
        document = record.document()
        del document["api_version"], document["name"]
        write = log.get().warning if record.status == FAILED else log.get().info
        write("Gatherer ended", gatherer=record.name, **document)
        records.append(record)
        work.tell(f"gathered: {record.name}", len(records), len(programs))
    if len(records) < len(programs) or any(each.stopped for each in records):
        return TaskFailure(f"terminated before {programs[-1].name} had ended", "terminated")
    failed = [each.name for each in records if each.status == FAILED]
    applicable = [each.name for each in records if each.status != NOT_APPLICABLE]
    if failed and failed == applicable:
        return TaskFailure(f"every gatherer has failed: {', '.join(failed)}", "gatherers_failed")
    return None
