"""`status-ctl stop`: a run goes on no longer; what came is kept and packed."""

import argparse
from typing import Final
from urllib.parse import quote

from reporter.cli.exits import GOOD, CannotTell
from reporter.cli.output import tell
from reporter.common.objects import json_object, number
from reporter.common.text import clean
from reporter.run.view import over
from reporter.runctl import origin
from reporter.runctl.server import RequestFailed

DESCRIPTION = """\
Stops a run: removes its plugins and does not wait for missing results. Results that have arrived
are kept and packed, so the run is over soon. Entries without a result fail with the cause
`stopped`, so the run does not pass. With --plugin only that plugin is stopped; the others
continue. Jobs of entries that failed before are kept if the plugin's `cleanup` says so, until
`status-ctl delete`. You can repeat the command.

exit codes:
  0    stopped, or there was nothing left to stop
  2    usage error
  4    cannot tell: not reachable, forbidden, no such run or plugin
  130  Ctrl-C"""

_NOTHING: Final = "nothing to stop; Jobs that `cleanup` keeps remain until `status-ctl delete`"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    origin.run_arguments(parser)
    parser.add_argument("--plugin", metavar="NAME", help="only this plugin")


def run(options: argparse.Namespace) -> int:
    """Ask the aggregator, say what it has stopped, and return the exit code."""
    name, plugin = options.run_name, options.plugin
    chosen = origin.by_cluster(options, name)
    look = chosen.look(entries=False)
    if look.document is None:
        raise CannotTell(look.trouble)
    if over(look.document):
        tell(f"run {name} is already over")
        return GOOD
    which = "" if plugin is None else f"?plugin={quote(plugin, safe='')}"
    try:
        answer = chosen.server.post(f"/stop{which}", b"")
    except RequestFailed as error:
        raise CannotTell(f"{error}; it may have been stopped; repeat the command") from None
    if answer.status != 200:
        why = answer.body[:300].decode(errors="replace")
        raise CannotTell(f"not stopped: {clean(why, 300, f'answered {answer.status}')}")
    what = f"run {name}" if plugin is None else f"plugin {plugin} of run {name}"
    count = number(json_object(answer.body) or {}, "stopped")
    tell(f"{what} stopped, entries without a result: {count}" if count else f"{what}: {_NOTHING}")
    return GOOD
