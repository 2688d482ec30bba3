"""`status-ctl status`: one look at a run."""

import argparse

from reporter.cli import output as show
from reporter.cli.exits import CannotTell
from reporter.cli.output import tell
from reporter.runctl import origin
from reporter.runctl.follow import delivery_option, exit_code
from reporter.runctl.table import put_run

DESCRIPTION = """\
Shows the status of a run, with a line for each plugin and node. The status is read from the
aggregator's status listener, or from the annotation on its Pod.

exit codes:
  0    the run has not failed (it may be running)
  1    it has failed: a result is missing or reports a failed check
  2    usage error
  4    cannot tell: not reachable, forbidden, no such run
  130  Ctrl-C"""


def arguments(parser: argparse.ArgumentParser) -> None:
    delivery_option(parser)
    show.arguments(parser)
    origin.arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Look once, show it, and return the exit code."""
    look = origin.choose(options).look()
    if look.warning:
        tell(look.warning)
    if look.document is None:
        raise CannotTell(look.trouble)
    put_run(look.document, options)
    return exit_code(look.document, delivery_only=options.delivery_only)
