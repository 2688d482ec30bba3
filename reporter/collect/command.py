"""`status-ctl gather`: runs gatherers on this machine, as the agent does on a node."""

import argparse
import os
import platform
import signal
import sys
from pathlib import Path

from reporter.cli import output as show
from reporter.cli.exits import FAILED, GOOD, INTERRUPTED, Unusable, reading_input
from reporter.cli.output import tell
from reporter.cli.table import table
from reporter.collect.limits import add_options, chosen_limits
from reporter.collect.record import FAILED as NOT_GATHERED
from reporter.collect.record import GathererRecord
from reporter.collect.run import Gatherer, gatherers, run_all
from reporter.common.lifecycle import Ending, install

DESCRIPTION = """\
Runs gatherers on this machine, without a cluster: the two built-in ones, or the programs in a
directory, in alphabetical order. Each writes to its own directory below --out, where gather.json
describes its outcome. Run the command as root to read all logs.

exit codes:
  0    no gatherer failed; some may be partial
  1    a gatherer failed, or the output cannot be written
  2    usage error, no gatherers, or the directory for the output is not empty
  130  Ctrl-C"""

SHIPPED = ("host", "logs")
FORMS = ("table", "json", "yaml")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--out",
        metavar="DIR",
        type=Path,
        default=Path("gathered"),
        help="output directory; must be empty or not exist (default: %(default)s)",
    )
    parser.add_argument(
        "--gatherers",
        metavar="DIR",
        type=Path,
        help=f"the directory of the programs (default: the built-in {' and '.join(SHIPPED)})",
    )
    parser.add_argument(
        "--host",
        metavar="DIR",
        type=Path,
        default=Path("/"),
        help="root of the machine's file system (default: %(default)s)",
    )
    add_options(parser)
    show.arguments(parser, FORMS)


def run(options: argparse.Namespace) -> int:
    """Run them and show what became of each; return the exit code."""
    stop = install()
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        # Of a terminal that is closed it comes twice, from the shell and from the kernel.
        signal.signal(signal.SIGHUP, lambda *_: stop.request())
    out: Path = options.out
    with reading_input():
        programs = _programs(options)
        if out.is_dir() and any(out.iterdir()):
            raise Unusable(f"{out} is not empty")
    if not programs:
        raise Unusable(f"there are no gatherers in {options.gatherers}")
    environ = {"NODE_NAME": platform.node(), **os.environ}
    if options.gatherers is None:
        # Ours are modules, which may be in the one file that this command is.
        environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    records = []
    try:
        out.mkdir(parents=True, exist_ok=True)
        for record in run_all(
            programs,
            out.absolute(),
            environ,
            options.host.absolute(),
            Ending(stop),
            limits=chosen_limits(options),
        ):
            records.append(record)
    except OSError as error:
        tell(f"cannot write to {out}: {error.strerror}")
        return FAILED
    _show(records, options)
    if stop.requested:
        return INTERRUPTED
    return FAILED if any(each.status == NOT_GATHERED for each in records) else GOOD


def _programs(options: argparse.Namespace) -> list[Gatherer]:
    if options.gatherers is not None:
        return gatherers(options.gatherers, options.host)
    # -P: the directory of the output is no place for modules.
    return [
        Gatherer(name, (sys.executable, "-P", "-m", f"reporter.collect.{name}")) for name in SHIPPED
    ]


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
