"""`status-ctl run`: from plugin definitions to a run in the cluster, and with --wait to its end."""

import argparse
import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from reporter.cli import cluster
from reporter.cli import output as show
from reporter.cli.exits import FAILED, GOOD, NOT_OVER, USAGE, CannotTell
from reporter.cli.interrupt import at_once
from reporter.cli.output import tell
from reporter.common.objects import Object, View
from reporter.errors import Forbidden, NotFound
from reporter.run.definition import Definition
from reporter.run.names import is_run_name
from reporter.run.tar_upload import read_destination
from reporter.run.view import Document, over, uploaded
from reporter.runctl import expose, resolve, run_options, wait
from reporter.runctl.cluster_run import ByCluster, Maker, has_plan, place_words
from reporter.runctl.cluster_snapshot import with_snapshot
from reporter.runctl.create import start
from reporter.runctl.definitions import read_chosen
from reporter.runctl.follow import Deadline
from reporter.runctl.objects import objects
from reporter.runctl.pod_security import pod_security
from reporter.runctl.preflight import check_unstarted
from reporter.runctl.ready import PATIENCE, wait_ready
from reporter.runctl.spec import RunSpec, UploadTo, display_name

if TYPE_CHECKING:
    from reporter.kube.api import KubeApi

arguments = run_options.arguments

DESCRIPTION = """\
Starts plugins in the cluster: a Job for each, or one for each node, and an aggregator that collects
and judges their results. With --wait it shows the progress and exits when the run is over. Without
-f and --plugin it starts all built-in plugins, for a health report of the cluster.

Without -n the run gets its own namespace, status-reporter-RUN, which is created first. Then
everything is checked: if there are problems, all of them are printed and nothing stays in the
cluster. Ctrl-C while waiting does not stop the run; Ctrl-C or SIGTERM before all objects are
created removes those that were created.

exit codes:
  0    started; with --wait: passed
  1    cannot be started, the aggregator is not ready in time; with --wait: a result is missing or
       reports a failed check
  2    usage error, a definition is invalid, or a file cannot be read
  3    timed out
  4    cannot tell: not reachable, forbidden; with --wait: the run was deleted
  130  Ctrl-C (143: SIGTERM)"""

MOST_ANNOTATIONS: Final = 256 * 1024
"""Bytes that the names and values of all annotations of an object may have."""
_FACTS: Final = "host-facts"  # what it finds is read by a command of its own
_COPY: Final = "kubectl.kubernetes.io/last-applied-configuration"
_AROUND: Final = len('"annotations":{},\n')  # what kubectl adds to the copy
_SIX_BYTES: Final = re.compile("[<>&\u2028\u2029]")  # as kubectl writes them: < is \u003c
_NO_APPLY: Final = (
    "{} is too large for `kubectl apply`; use `kubectl create` or `kubectl apply --server-side`"
)


def run(options: argparse.Namespace) -> int:
    """Read, check, create, wait; return the exit code."""
    run_options.check(options)
    definitions, wrong = read_chosen(options)
    upload, wrong_too = resolve.read_upload(options)
    mistakes = _Mistakes()
    mistakes.add([*wrong, *wrong_too])
    try:
        return _run(options, definitions, upload, mistakes, every=not wrong)
    except CannotTell as error:
        if not mistakes.found:
            raise
        tell(str(error))  # beside what is sure
        return USAGE


class _Mistakes:
    """What is wrong with what was given: told at once, and the command goes on to look for more."""

    found = False

    def add(self, lines: Sequence[str]) -> None:
        if lines:
            tell("\n".join(lines))
            self.found = True


def _run(
    options: argparse.Namespace,
    definitions: Sequence[Definition],
    upload: UploadTo | None,
    mistakes: _Mistakes,
    *,
    every: bool,
) -> int:
    """Go on with the definitions that are right, which may not be `every` one."""
    with at_once():
        api, here = cluster.open_cluster(options)
        spec, wrong = resolve.run_spec(options, definitions, upload, api, every=every)
    mistakes.add(wrong)
    with at_once():
        spec = with_snapshot(spec, options, api)
    mistakes.add(resolve.wrong_log_settings(spec, options))
    mistakes.add(resolve.ends_too_soon(spec))
    if not is_run_name(spec.run):  # of which the API server could only say the same
        return USAGE
    access = None
    if options.expose:
        access = expose.make_access(options, spec)
        spec = replace(spec, expose=options.expose, status_tls=access.tls)
        if options.connection is not None or not options.dry_run:
            mistakes.add(access.in_the_way())
    if options.dry_run:
        return USAGE if mistakes.found else _print(spec, access, options)
    # By its name alone the other commands would take the wrong one of the two.
    double = not options.namespace and _has_run(api, here or "", spec.run)
    if double or mistakes.found:
        found = (
            [f"namespace {here} has a run named {spec.run}; choose another --name"]
            if double
            else []
        )
        with at_once():
            found += check_unstarted(api, spec)
        if found:
            tell("the run cannot be started:\n  " + "\n  ".join(found))
        return USAGE if mistakes.found else FAILED
    for each in spec.launch.definitions:
        for remark in each.remarks:
            tell(f"plugin {each.name}: {remark}")
    if access is not None:
        access.create()
    made = start(api, spec, options, access)
    if made is None:
        return FAILED
    for line in _start_messages(made):
        tell(line)
    if not options.wait and options.output == "name":
        show.put_names([f"run/{made.run}"])
    with at_once():
        return _follow(api, made, options, access)


def _has_run(api: "KubeApi", namespace: str, run: str) -> bool:
    """Return whether that namespace shows a run of that name. Raises CannotTell."""
    with cluster.asking():
        try:
            return has_plan(api, namespace, run)
        except (NotFound, Forbidden):
            return False


def _start_messages(spec: RunSpec) -> Iterator[str]:
    """Say what was created, and what a person may not expect of it."""
    plugins, entries = len(spec.plan.plugins), len(spec.plan.keys)
    where = f"{'new ' if spec.create_namespace else ''}namespace {spec.namespace}"
    yield f"run {spec.run} created in {where} (plugins: {plugins}, expected results: {entries})"
    level, reasons = pod_security(spec.launch.definitions)
    for reason in reasons if spec.create_namespace else ():
        yield f"the namespace allows Pod Security level {level}: {reason}"
    for each in sorted({each for plugin in spec.plan.plugins for each in plugin.skipped}):
        yield f"node {each.node} is left out: {each.reason}"
    if spec.storage is None:
        also = ", and when they cannot be uploaded" if spec.exit else ""
        yield f"no volume: the results are lost when the aggregator's Pod is replaced{also}"
    if spec.upload is not None:
        host = read_destination(spec.upload.url).shown
        yield f"the results will be uploaded to {host} before the run is over"


def _follow(
    api: "KubeApi", spec: RunSpec, options: argparse.Namespace, access: expose.Access | None
) -> int:
    """Wait until the aggregator is ready, and with --wait until the end of the run.

    `--timeout` is for all of it. Return the exit code.
    """
    limit, after = options.timeout, _hints(spec, options)
    deadline = Deadline(PATIENCE if limit is None else min(PATIENCE, limit))
    try:
        try:
            in_the_way = wait_ready(api, spec, deadline)
        except Forbidden as error:
            raise CannotTell(
                f"cannot tell whether the aggregator is ready: {cluster.words(error)}\n"
                f"the run continues\n{after}"
            ) from None
        if in_the_way:
            out = limit is not None and limit < PATIENCE and deadline.over()
            late = "timed out: " if out else ""
            tell(f"{late}the aggregator is not ready:\n  " + "\n  ".join(in_the_way))
            tell(after)
            return NOT_OVER if late else FAILED
        tell("the aggregator is ready")
        if access is not None:
            expose.publish(api, spec, access, deadline)
        if not options.wait:
            tell(after)
            return GOOD
        left = None if limit is None else max(limit - deadline.elapsed, 0.0)
        return _wait(api, spec, options, Deadline(left))
    except KeyboardInterrupt:
        tell(f"the run continues\n{after}")
        raise


def _wait(api: "KubeApi", spec: RunSpec, options: argparse.Namespace, deadline: Deadline) -> int:
    origin = ByCluster(api, [spec.namespace], spec.run)
    origin.maker = Maker("Job", spec.namespace, spec.run, spec.run)
    goal = wait.Goal(fail_fast=options.fail_fast, delivery_only=options.delivery_only)
    code, look = wait.follow(origin, options, goal, deadline, more="; it is still running")
    ended = look.document is not None and over(look.document)
    tell(_hints(spec, options, look.document if ended else None))
    return code


def _hints(spec: RunSpec, options: argparse.Namespace, end: Document | None = None) -> str:
    """Return what can be done with a run, as commands; `end` is what it says once it is over.

    `delete` asks before anything is lost, on a terminal; elsewhere it needs `--yes`.
    """
    run, ended = spec.run, end is not None
    gone = ended and spec.exit
    where = place_words(spec.namespace, options, own=spec.create_namespace)
    fetched = ended and not gone  # by the command that is named before
    saved = end is not None and uploaded(end)
    sure = "" if fetched or saved or sys.stderr.isatty() else " --yes"
    names = {each.name for each in spec.plan.plugins}
    lines = {
        "look at it": "" if ended else f"status {run}{where}",
        "wait for it": "" if ended else f"wait run/{run}{where}",
        "stop it": "" if ended else f"stop {run}{where}",
        "read the facts": f"facts run/{run}{where}" if fetched and _FACTS in names else "",
        "read the results": f"results run/{run}{where}" if fetched and names != {_FACTS} else "",
        "download the results": "" if gone else f"retrieve {run}{where}",
        "then delete it" if fetched else "delete it": f"delete {run}{where}{sure}",
    }
    shown = {what: how for what, how in lines.items() if how}
    widest = max(map(len, shown))
    told = [f"  {what:<{widest}}  status-ctl {how}" for what, how in shown.items()]
    return "\n".join(["what to do with the run:", *told])


def _print(spec: RunSpec, access: expose.Access | None, options: argparse.Namespace) -> int:
    """Print the objects as they would be created, for kubectl and others."""
    made = objects(spec)
    if access is not None:
        if options.connection is not None:
            access.create()
        for line in expose.dry_run_notes(spec, access, options):
            tell(line)
    if options.output != "name":
        for each in filter(too_large_to_apply, made):
            tell(_NO_APPLY.format(display_name(each)))
    match options.output:
        case "name":
            show.put_names(map(display_name, made))
        case "json":
            show.put_data("json", {"apiVersion": "v1", "kind": "List", "items": list(made)})
        case _:
            for each in made:
                sys.stdout.write("---\n")
                show.put_data("yaml", each)
    return GOOD


def too_large_to_apply(wanted: Object) -> bool:
    """Return whether `kubectl apply` is refused: it keeps a copy of the object in an annotation."""
    copy = json.dumps(wanted, separators=(",", ":"), ensure_ascii=False)
    kept = {**View(wanted).annotations, _COPY: _SIX_BYTES.sub("x" * 6, copy)}
    size = sum(len(f"{name}{value}".encode()) for name, value in kept.items()) + _AROUND
    return size > MOST_ANNOTATIONS
