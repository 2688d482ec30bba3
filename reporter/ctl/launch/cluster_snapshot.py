"""What `run --plugin cluster-snapshot` finds out before it starts: options, resources, rights."""

import argparse
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from reporter.core.launch.request import Request
from reporter.core.launch.snapshot_plugin import PLUGIN, prepared, snapshot_objects
from reporter.core.snapshot.choice import choose
from reporter.core.snapshot.options import read_options
from reporter.ctl.cluster import said
from reporter.ctl.exits import CannotTell
from reporter.errors import KubeError

if TYPE_CHECKING:
    from reporter.kube.api import KubeApi


def with_snapshot(
    wanted: Request,
    options: argparse.Namespace,
    namespace: str,
    api: "KubeApi",
    tell: Callable[[str], None],
) -> tuple[Request, tuple[dict[str, Any], ...]]:
    """Return the request with the snapshot's account in it, and the objects it needs.

    Both as they were where no snapshot is asked for by `--plugin`: a definition of that name in a
    file gets no rights. Raises CannotTell.
    """
    if PLUGIN not in options.built_in:
        return wanted, ()
    chosen, problems = read_options(wanted.environment.get(PLUGIN, {}))
    if problems:
        options.error("\n".join(f"--plugin-env {PLUGIN}.{each}" for each in problems))
    from reporter.kube.discovery import discover

    reading = api.reading()
    try:
        found = discover(reading.document)
    except KubeError as error:
        raise CannotTell(f"what the cluster has cannot be listed: {said(error)}") from None
    finally:
        reading.close()
    for each in found.troubles:
        tell(f"{each.group}/{each.version} is left out of the snapshot: {each.text}")
    resources = choose(found.resources, chosen).chosen
    definitions = tuple(
        prepared(each, wanted.run, resources, chosen) if each.name == PLUGIN else each
        for each in wanted.definitions
    )
    return (
        replace(wanted, definitions=definitions, snapshot=PLUGIN),
        snapshot_objects(wanted.run, namespace, resources, chosen),
    )
