"""Starting a run: all is checked and created, or nothing stays; then it is said what there is."""

import argparse
import secrets
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from reporter.cli import cluster
from reporter.cli import output as show
from reporter.cli.interrupt import termination_too
from reporter.cli.output import tell
from reporter.common.objects import text
from reporter.errors import KubeError
from reporter.run.destination import read_destination
from reporter.run.options import RunOptions
from reporter.runctl import expose
from reporter.runctl.create import Creation, NotCreated, place
from reporter.runctl.existing import place_words
from reporter.runctl.pod_security import pod_security
from reporter.runctl.preflight import Checked, check, check_namespace, wait_for_account
from reporter.runctl.request import Request, make_launch
from reporter.runctl.run_objects import objects
from reporter.runctl.templates import templates

if TYPE_CHECKING:
    from reporter.kube.api import KubeApi


def start(
    api: "KubeApi",
    chosen: RunOptions,
    wanted: Request,
    options: argparse.Namespace,
    kept: expose.Access | None,
) -> RunOptions | None:
    """Check and create everything; nothing if it cannot be. Nothing that was made stays then.

    SIGTERM and SIGHUP end it as Ctrl-C does: a pipeline that is cancelled, or a terminal that is
    closed, leaves nothing behind.
    """
    with termination_too() as tidy:
        made = _create(api, chosen, wanted, options, kept, tidy=tidy)
    if made is not None:
        _announce(made, options)
    return made


def against(
    api: "KubeApi", chosen: RunOptions, options: argparse.Namespace, *, every: bool
) -> list[str]:
    """Say what else speaks against a run that is not started; create nothing.

    So of a namespace that it would make, it is not known what is refused in it. Unless these are
    `every` plugin, any may run on nodes.
    """
    nodes = options.node if _on_nodes(chosen) or not every else ()
    if not chosen.create_namespace:
        return _checked(api, chosen, nodes).problems
    (namespace,) = (each for each in objects(chosen) if text(each, "kind") == "Namespace")
    trouble, free = check_namespace(api, namespace)
    found = _outside(api, chosen, nodes, chosen.launch.pull_secrets if free else ())
    return [*filter(None, [trouble]), *found]


def _outside(
    api: "KubeApi", chosen: RunOptions, nodes: Sequence[str], pull_secrets: Sequence[str]
) -> list[str]:
    """Say what is wrong without regard to the namespace that the run would make."""
    inside = chosen.namespace
    rest = [
        each
        for each in objects(chosen)
        if text(each, "kind") != "Namespace" and place(each, inside) != inside
    ]
    return check(api, inside, rest, (), pull_secrets, nodes=nodes, shared=False).problems


def _create(
    api: "KubeApi",
    chosen: RunOptions,
    wanted: Request,
    options: argparse.Namespace,
    kept: expose.Access | None,
    *,
    tidy: Callable[[], None],
) -> RunOptions | None:
    creation = Creation(api, chosen.namespace, secrets.token_hex(8), tell=tell)
    complete = False
    try:
        nodes = options.node if _on_nodes(chosen) else ()
        if chosen.create_namespace:
            own = [each for each in objects(chosen) if text(each, "kind") == "Namespace"]
            try:
                creation.create(own)
            except NotCreated as error:
                also = _outside(api, chosen, nodes, ())
                raise NotCreated("\n  ".join([str(error), *also])) from None
            wait_for_account(api, chosen.namespace)
        found = _checked(api, chosen, nodes)
        if found.problems:
            tell("the run cannot be started:\n  " + "\n  ".join(found.problems))
            return None
        if not found.conditions:
            launch = make_launch(replace(wanted, write_conditions=False))
            chosen = replace(chosen, launch=launch)
            tell("no permission to grant jobs/status: verdicts are not written on the Jobs")
        for remark in found.remarks:
            tell(remark)
        creation.create([each for each in objects(chosen) if text(each, "kind") != "Namespace"])
        if creation.deleted():
            tell("the run was deleted meanwhile; what was created is removed")
            return None
        complete = True
    except NotCreated as error:
        tell(f"the run cannot be started:\n  {error}")
        return None
    except KubeError as error:
        tell(f"the run cannot be started:\n  {cluster.words(error)}")
        return None
    except KeyboardInterrupt:
        tell("interrupted; what was created is removed")
        raise
    finally:
        if not complete:
            tidy()
            _undo(creation, chosen, options, kept)
    return chosen


def _undo(
    creation: Creation,
    chosen: RunOptions,
    options: argparse.Namespace,
    kept: expose.Access | None,
) -> None:
    try:
        file = "" if kept is None else kept.remove()
        left = creation.undo()
    except KeyboardInterrupt:
        where = place_words(chosen.namespace, options, own=chosen.create_namespace)
        tell(f"to remove the rest: status-ctl delete {chosen.run}{where}")
        raise
    for line in filter(None, (file, *left)):
        tell(f"not removed: {line}")


def _on_nodes(chosen: RunOptions) -> bool:
    return any(each.nodes for each in chosen.plan.plugins)


def _checked(api: "KubeApi", chosen: RunOptions, nodes: Sequence[str]) -> Checked:
    made = objects(chosen)
    return check(
        api,
        chosen.namespace,
        [each for each in made if text(each, "kind") != "Namespace"],
        templates(chosen, made),
        chosen.launch.pull_secrets,
        nodes=nodes,
        shared=not chosen.create_namespace,
    )


def _announce(chosen: RunOptions, options: argparse.Namespace) -> None:
    """Say what was created, and what a person may not expect of it."""
    plugins, entries = len(chosen.plan.plugins), len(chosen.plan.keys)
    where = f"{'new ' if chosen.create_namespace else ''}namespace {chosen.namespace}"
    tell(f"run {chosen.run} created in {where} (plugins: {plugins}, expected results: {entries})")
    level, reasons = pod_security(chosen.launch.definitions)
    for reason in reasons if chosen.create_namespace else ():
        tell(f"the namespace allows Pod Security level {level}: {reason}")
    skipped = {each for plugin in chosen.plan.plugins for each in plugin.skipped}
    for each in sorted(skipped):
        tell(f"node {each.node} is left out: {each.reason}")
    if chosen.storage is None:
        also = ", and when they cannot be uploaded" if chosen.exit else ""
        tell(f"no volume: the results are lost when the aggregator's Pod is replaced{also}")
    if chosen.upload is not None:
        host = read_destination(chosen.upload.url).shown
        tell(f"the results will be uploaded to {host} before the run is over")
    if not options.wait and options.output == "name":
        show.put_names([f"run/{chosen.run}"])
