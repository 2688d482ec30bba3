"""What `run --plugin cluster-snapshot` finds out before it starts: options, resources, rights."""

import argparse
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

from reporter.cli.cluster import TIMEOUT, said
from reporter.cli.exits import CannotTell
from reporter.cli.output import tell
from reporter.collect.snapshot.options import choose, read_options
from reporter.collect.snapshot.rights import (
    PLUGIN,
    prepared,
    remarks,
    rights,
    snapshot_objects,
    without_user,
)
from reporter.common.objects import section, text
from reporter.errors import KubeError, NotFound
from reporter.runctl.preflight import AT_ONCE
from reporter.runctl.spec import RunSpec

if TYPE_CHECKING:
    from reporter.kube.api import KubeApi


def with_snapshot(spec: RunSpec, options: argparse.Namespace, api: "KubeApi") -> RunSpec:
    """Return the run with the snapshot's account in it, and the objects it needs.

    As it was where no snapshot is asked for by `--plugin`: a definition of that name in a file gets
    no rights. Raises CannotTell.
    """
    if PLUGIN not in options.built_in:
        return spec
    chosen, problems = read_options(spec.launch.environment.get(PLUGIN, {}))
    if problems:
        options.error("\n".join(f"--plugin-env {PLUGIN}.{each}" for each in problems))
    if gone := _gone(api, (each for each in chosen.namespaces if each != spec.namespace)):
        options.error(
            "\n".join(f"--plugin-env {PLUGIN}.SNAPSHOT_NAMESPACES: {each}" for each in gone)
        )
    try:
        found = api.discover()
    except KubeError as error:
        raise CannotTell(f"cannot list the cluster's API resources: {said(error)}") from None
    for each in found.troubles:
        tell(f"{each.group}/{each.version} is left out of the snapshot: {each.text}")
    granted = rights(choose(found.resources, chosen).chosen, chosen)
    notes = remarks(granted, chosen)
    definitions = tuple(
        prepared(each if spec.fixed_group else without_user(each), spec.run, notes)
        if each.name == PLUGIN
        else each
        for each in spec.launch.definitions
    )
    return replace(
        spec,
        launch=replace(spec.launch, definitions=definitions, snapshot=PLUGIN),
        extra=snapshot_objects(spec.run, spec.namespace, granted),
    )


def _gone(api: "KubeApi", namespaces: Iterable[str]) -> list[str]:
    """Say which namespaces are not there, a line each.

    Without permission to look, creating the Role in it shows it.
    """

    def look(namespace: str) -> str:
        try:
            found = api.get("Namespace", None, namespace, timeout=TIMEOUT)
        except NotFound:
            return f"there is no namespace {namespace}"
        except KubeError:
            return ""
        going = text(section(found, "metadata"), "deletionTimestamp")
        return f"namespace {namespace} is being deleted" if going else ""

    with ThreadPoolExecutor(AT_ONCE, "namespaces") as pool:
        return [line for line in pool.map(look, namespaces) if line]
