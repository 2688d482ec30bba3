"""`status-ctl run`: from plugin definitions to a run in the cluster, and with --wait to its end."""

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from reporter.cli import cluster
from reporter.cli import output as show
from reporter.cli.exits import FAILED, GOOD, TIME_OVER, USAGE, CannotTell
from reporter.cli.interrupt import at_once
from reporter.cli.options import length
from reporter.cli.output import tell
from reporter.errors import Forbidden
from reporter.run.definition import Definition
from reporter.run.names import is_run_name
from reporter.run.options import RunOptions, UploadTo
from reporter.run.view import over, uploaded
from reporter.runctl import exit_code as run_exit
from reporter.runctl import expose, wait
from reporter.runctl import run_options as asked
from reporter.runctl import upload_options as upload
from reporter.runctl.aggregator import Aggregator
from reporter.runctl.cluster_snapshot import with_snapshot
from reporter.runctl.create import shown
from reporter.runctl.definitions import read_chosen
from reporter.runctl.existing import asked_there, hints, stands
from reporter.runctl.kubectl_apply import too_large_to_apply
from reporter.runctl.platform import gives_users
from reporter.runctl.ready import PATIENCE, wait_ready
from reporter.runctl.request import placed, unmet
from reporter.runctl.run_objects import objects
from reporter.runctl.search import OWN_NAMESPACE
from reporter.runctl.start import against, start

if TYPE_CHECKING:
    from reporter.kube.api import KubeApi

DESCRIPTION = """\
Starts plugins in the cluster: a Job for each, or one for each node, and an aggregator that collects
and judges their results. With --wait it shows the progress and exits when the run is over.

Everything is checked first. If there are problems, all of them are printed and nothing stays in the
cluster. Without -n the run gets its own namespace, status-reporter-RUN. Ctrl-C while waiting does
not stop the run; Ctrl-C or SIGTERM before all objects are created removes those that were created.

exit codes:
  0    started; with --wait: passed
  1    cannot be started, the aggregator is not ready in time; with --wait: a result is missing or
       reports a failed check
  2    usage error, a definition is invalid, or a file cannot be read
  3    timed out
  4    cannot tell: not reachable, forbidden; with --wait: the run was deleted
  130  Ctrl-C (143: SIGTERM)"""

_NO_APPLY = (
    "{} is too large for `kubectl apply`; use `kubectl create` or `kubectl apply --server-side`"
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    asked.arguments(parser)
    parser.add_argument("--wait", action="store_true", help="wait until the run is over")
    parser.add_argument(
        "--timeout",
        metavar="TIME",
        type=length,
        help="timeout of --wait, from the start of the run, as 90s, 30m or 6h (default: until "
        "the end)",
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="print what would be created (YAML unless -o says otherwise), and create nothing",
    )
    run_exit.arguments(parser)
    show.arguments(parser)
    cluster.cluster_arguments(parser, everywhere=False, default="a new one, status-reporter-RUN")
    parser.add_argument(
        "--create-namespace", action="store_true", help="create the namespace given with -n"
    )


def run(options: argparse.Namespace) -> int:
    """Read, check, create, wait; return the exit code."""
    if options.create_namespace and not options.namespace:
        options.error("--create-namespace requires -n")
    if options.timeout is not None and not options.wait:
        options.error("--timeout requires --wait")
    if options.connection is not None and not options.expose:
        options.error("--connection requires --expose")
    upload.check(options)
    definitions, wrong = read_chosen(options)
    to, wrong_too = upload.read(options)
    mistakes = _Mistakes()
    mistakes.add([*wrong, *wrong_too])
    try:
        return _run(options, definitions, to, mistakes, every=not wrong)
    except CannotTell as error:
        if not mistakes.told:
            raise
        tell(str(error))  # beside what is sure
        return USAGE


class _Mistakes:
    """What is wrong with what was given: told at once, and the command goes on to look for more."""

    told = False

    def add(self, lines: Sequence[str]) -> None:
        if lines:
            tell("\n".join(lines))
            self.told = True


def _run(
    options: argparse.Namespace,
    definitions: Sequence[Definition],
    to: UploadTo | None,
    mistakes: _Mistakes,
    *,
    every: bool,
) -> int:
    """Go on with the definitions that are right, which may not be `every` one."""
    with at_once():
        api, here = cluster.open_cluster(options)
        wanted = asked.request(options, definitions, api, every=every)
    mistakes.add(unmet(wanted))
    wanted = placed(wanted)
    own = not options.namespace or options.create_namespace
    namespace = options.namespace or OWN_NAMESPACE.format(run=wanted.run)
    with at_once():
        fixed = not gives_users(api)
        wanted, extra = with_snapshot(wanted, options, namespace, api, tell, fixed_user=fixed)
    chosen = asked.run_options(wanted, options, namespace, own_namespace=own)
    chosen = replace(chosen, upload=to, exit=options.exit, extra=extra, fixed_group=fixed)
    mistakes.add(upload.too_short(chosen))
    if not is_run_name(wanted.run):  # of which the API server could only say the same
        return USAGE
    kept = None
    if options.expose:
        kept = expose.access(options, chosen)
        chosen = replace(chosen, expose=options.expose, status_tls=kept.tls)
        if options.connection is not None or not options.dry_run:
            mistakes.add(kept.in_the_way())
    if options.dry_run:
        return USAGE if mistakes.told else _print(chosen, kept, options)
    with cluster.asking():
        # By its name alone the other commands would take the wrong one of the two.
        double = not options.namespace and stands(api, wanted.run, here or "")
    if double or mistakes.told:
        found = (
            [f"namespace {here} has a run named {wanted.run}; choose another --name"]
            if double
            else []
        )
        with at_once():
            found += against(api, chosen, options, every=every)
        if found:
            tell("the run cannot be started:\n  " + "\n  ".join(found))
        return USAGE if mistakes.told else FAILED
    for each in wanted.definitions:
        for remark in each.remarks:
            tell(f"plugin {each.name}: {remark}")
    if kept is not None:
        kept.create()
    made = start(api, chosen, wanted, options, kept)
    if made is None:
        return FAILED
    with at_once():
        return _follow(api, made, options, kept)


def _follow(
    api: "KubeApi", chosen: RunOptions, options: argparse.Namespace, kept: expose.Access | None
) -> int:
    """Wait until the aggregator is ready, and with --wait until the end of the run.

    `--timeout` is for all of it.
    """
    began = time.monotonic()
    patience = PATIENCE if options.timeout is None else min(PATIENCE, options.timeout)
    after = hints(chosen.run, chosen.namespace, options, own=chosen.create_namespace)
    try:
        try:
            in_the_way = wait_ready(
                api, chosen.namespace, chosen.run, tell, patience=patience, ends=chosen.exit
            )
        except Forbidden as error:
            raise CannotTell(
                f"cannot tell whether the aggregator is ready: {cluster.words(error)}\n"
                f"the run continues\n{after}"
            ) from None
        if in_the_way:
            out = patience < PATIENCE and time.monotonic() - began >= patience
            late = "timed out: " if out else ""
            tell(f"{late}the aggregator is not ready:\n  " + "\n  ".join(in_the_way))
            tell(after)
            return TIME_OVER if late else FAILED
        tell("the aggregator is ready")
        if kept is not None:
            left = patience - (time.monotonic() - began)
            expose.publish(api, chosen, kept, tell, patience=left)
        if not options.wait:
            tell(after)
            return GOOD
        if options.timeout is not None:
            options.timeout = max(options.timeout - (time.monotonic() - began), 0.0)
        return _wait(chosen, options, after)
    except KeyboardInterrupt:
        tell(f"the run continues\n{after}")
        raise


def _wait(chosen: RunOptions, options: argparse.Namespace, after: str) -> int:
    origin = asked_there(options, chosen.namespace, chosen.run)
    kind = "Job" if chosen.exit else "StatefulSet"
    origin.search.is_known(Aggregator(kind, chosen.namespace, chosen.run, chosen.run))
    code, look = wait.follow(origin, options, more="; it is still running")
    if look.document is not None and over(look.document):
        after = hints(
            chosen.run,
            chosen.namespace,
            options,
            own=chosen.create_namespace,
            ended=True,
            gone=chosen.exit,
            saved=uploaded(look.document),
        )
    tell(after)
    return code


def _print(chosen: RunOptions, access: expose.Access | None, options: argparse.Namespace) -> int:
    """Print the objects as they would be created, for kubectl and others."""
    made = objects(chosen)
    if access is not None:
        if options.connection is not None:
            access.create()
        for line in expose.printed(chosen, access, options):
            tell(line)
    if options.output != "name":
        for each in filter(too_large_to_apply, made):
            tell(_NO_APPLY.format(shown(each)))
    match options.output:
        case "name":
            show.put_names(map(shown, made))
        case "json":
            show.put_data("json", {"apiVersion": "v1", "kind": "List", "items": list(made)})
        case _:
            for each in made:
                sys.stdout.write("---\n")
                show.put_data("yaml", each)
    return GOOD
