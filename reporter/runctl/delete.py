"""`status-ctl delete`: takes a run out of the cluster, and leaves nothing of it."""

import argparse
import sys
from typing import TYPE_CHECKING, Final

from reporter.cli import cluster
from reporter.cli.exits import FAILED, GOOD, CannotTell
from reporter.cli.options import wait_time
from reporter.cli.output import tell
from reporter.common.objects import text
from reporter.run.view import over, uploaded
from reporter.runctl import origin
from reporter.runctl.cluster_run import ByCluster, exists, is_gone, named_run
from reporter.runctl.expose import file_of, remove_connection
from reporter.runctl.follow import Deadline
from reporter.runctl.remove import Removal, RightsElsewhere
from reporter.runctl.spec import status_name

if TYPE_CHECKING:
    from reporter.kube.api import KubeApi

DESCRIPTION = """\
Deletes a run: its aggregator with the results, its Jobs, and everything else that has its label,
and waits until everything is gone. The namespace is deleted too if the run created it and nothing
else is in it. The command can be repeated.

A run that is still running, or whose results were neither downloaded nor uploaded, is deleted only
with --yes or after confirmation on the terminal.

exit codes:
  0    nothing of the run is left; with --yes, except rights in namespaces that you cannot see and
       that may no longer exist
  1    not deleted, or something is left; the output says what and why
  2    usage error
  4    cannot tell: not reachable, forbidden, no such run
  130  Ctrl-C"""

_PATIENCE: Final = 120.0  # seconds until everything is gone


def arguments(parser: argparse.ArgumentParser) -> None:
    origin.run_arguments(parser)
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask for confirmation")
    parser.add_argument(
        "--timeout",
        metavar="TIME",
        type=wait_time,
        default=_PATIENCE,
        help="how long to wait until everything is gone (default: 2m)",
    )


def run(options: argparse.Namespace) -> int:
    """Ask, delete, say what stays; return the exit code."""
    with cluster.asking():
        api, found, name = named_run(options, _has_rights)
        if not options.yes and (doubt := _doubt(api, found, name)) and not _confirmed(name, doubt):
            tell(f"run {name} was not deleted: {doubt}; use --yes to delete it anyway")
            return FAILED
    kept, left = file_of(api, found, name), ""
    removal = Removal(api, found, name, Deadline(options.timeout), unseen_too=options.yes)
    try:
        stays = removal.aggregator() or removal.rest() or removal.namespace()
    finally:
        # The file is known to be this run's only as long as its Secret is there.
        if kept is not None and is_gone(api, "Secret", found, status_name(name)):
            left = remove_connection(kept)
            tell(f"not removed: {left}" if left else f"connection file {kept} deleted")
    gone = ", ".join(f"{kind} {count}" for kind, count in sorted(removal.removed.items()))
    if stays:
        tell(f"something of run {name} is left:\n  " + "\n  ".join(stays))
        if stays == removal.unseen():
            tell("if these namespaces no longer exist, use --yes to delete the run")
        return FAILED
    if unseen := removal.unseen():
        tell("rights may remain if these namespaces still exist:\n  " + "\n  ".join(unseen))
    tell(f"run {name} deleted from namespace {found}: {gone or 'nothing was left'}")
    return FAILED if left else GOOD


def _has_rights(api: "KubeApi", namespace: str, run: str) -> bool:
    """Say whether a run has rights elsewhere: its namespace may be deleted, and they not."""
    return bool(RightsElsewhere(api, namespace, run).listed())


def _doubt(api: "KubeApi", namespace: str, name: str) -> str:
    """Say why nobody may want to lose it; empty where there is no reason."""
    run = ByCluster(api, [namespace], name)
    try:
        document = run.look(entries=False).document
    except CannotTell as error:
        return str(error)
    finally:
        run.close()  # its aggregator is to end
    if document is None:
        if exists(api, "Job", namespace, name):
            return "its aggregator does not answer"
        if exists(api, "PersistentVolumeClaim", namespace, name):
            return "its results are on a volume that would be deleted"
        return ""
    if not over(document):
        return "it is still running"
    if not (text(document, "retrieved_at") or uploaded(document)):
        return "its results were not downloaded"
    return ""


def _confirmed(name: str, doubt: str) -> bool:
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    sys.stderr.write(f"Delete run {name}? {doubt[:1].upper()}{doubt[1:]}. [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}
