"""`status-ctl gather`: runs gatherers on this machine, as the agent does on a node."""

import argparse
import os
import platform
import signal
import sys
from functools import partial
from pathlib import Path

from reporter.cli import output as show
from reporter.cli.exits import FAILED, GOOD, INTERRUPTED, Unusable, reading_input
from reporter.cli.output import tell
from reporter.cli.table import table
from reporter.collect import gatherers
from reporter.collect.gatherers import Gatherer, GathererRecord, add_options, chosen_limits, run_all
from reporter.common.lifecycle import install

DESCRIPTION = """\
Runs gatherers on this machine, without a cluster: the two built-in ones, or the programs in a
directory, in alphabetical order. Each writes to its own directory below --out, where gather.json
describes its outcome. Run the command as root to read all logs.

exit codes:
  0    no gatherer failed; some may be partial
  1    a gatherer failed, or --out cannot be written
  2    usage error, no gatherers, or the directory for the output is not empty
  130  Ctrl-C"""

SHIPPED = {"host": "reporter.collect.host.facts", "logs": "reporter.collect.logs"}


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    directory = partial(parser.add_argument, metavar="DIR", type=Path)
    directory(
        "--out",
        default=Path("gathered"),
        help="output directory; must be empty or not exist (default: %(default)s)",
    )
    directory(
        "--gatherers",
        help=f"the directory of the programs (default: the built-in {' and '.join(SHIPPED)})",
    )
    directory(
        "--host",
        default=Path("/"),
        help="root of the machine's file system (default: %(default)s)",
    )
    add_options(parser)
    show.arguments(parser, ("table", "json", "yaml"))


def run(options: argparse.Namespace) -> int:
    """Run them and show what became of each; return the exit code."""
    stop = install()
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        # Of a terminal that is closed it comes twice, from the shell and from the kernel.
        signal.signal(signal.SIGHUP, lambda *_: stop.request())
    out, host = options.out.absolute(), options.host.absolute()
    environ = {"NODE_NAME": platform.node(), **os.environ}
    with reading_input():
        if options.gatherers is None:
            # -P: the directory of the output is no place for modules.
            programs = [
                Gatherer(name, (sys.executable, "-P", "-m", module))
                for name, module in SHIPPED.items()
            ]
            # The modules may be in the one file that this command is.
            environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
        else:
            programs = gatherers.gatherers(options.gatherers, options.host)
        if out.is_dir() and any(options.out.iterdir()):
            raise Unusable(f"{options.out} is not empty")
    limits = chosen_limits(options)
    if not programs:
        raise Unusable(f"there are no gatherers in {options.gatherers}")
    try:
        out.mkdir(parents=True, exist_ok=True)
        records = list(run_all(programs, out, environ, host, stop, limits=limits))
    except OSError as error:
        tell(f"cannot write to {options.out}: {error.strerror}")
        return FAILED
    _show(records, options)
    if stop.requested:
        return INTERRUPTED
    return FAILED if any(each.status == gatherers.FAILED for each in records) else GOOD


def _show(records: list[GathererRecord], options: argparse.Namespace) -> None:
    if options.output != "table":
        documents = [each.document() for each in records]
        show.put_data(options.output, {"api_version": "v1", "gatherers": documents})
        return
    rows = [
        [
            each.name,
            each.status,
            f"{each.seconds:.1f}s",
            str(each.files),
            show.size(each.bytes),
            each.why,
        ]
        for each in records
    ]
    header = ["GATHERER", "STATUS", "TIME", "FILES", "SIZE", "NOTE"]
    show.put(table(header, rows, colours=show.colours(options)))
    tell(f"written to {options.out}")
