"""What the built-in plugin `cluster-snapshot` brings along: an account and its rights.

The rights hold in the whole cluster. So they belong to an account that nobody else uses, and go
with the run.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from reporter.core.launch import names
from reporter.core.resources import Resource
from reporter.core.run.definition import Definition
from reporter.core.snapshot.options import SnapshotOptions
from reporter.core.snapshot.rights import remarks, rules

PLUGIN: Final = "cluster-snapshot"
_RBAC: Final = "rbac.authorization.k8s.io"


def snapshot_account(run: str) -> str:
    """Return the name of the snapshot's service account."""
    return f"{run}-snapshot"


def prepared(
    definition: Definition, run: str, resources: Iterable[Resource], options: SnapshotOptions
) -> Definition:
    """Return the definition with its account, and with what a person should know of its rights."""
    spec = {**definition.template["spec"], "serviceAccountName": snapshot_account(run)}
    count = len({(each.group, each.plural) for each in resources})
    said = [f"its account may list {count} resources in the whole cluster", *remarks(options)]
    return replace(
        definition,
        template={**definition.template, "spec": spec},
        remarks=(*definition.remarks, *said),
    )


def snapshot_objects(
    run: str, namespace: str, resources: Iterable[Resource], options: SnapshotOptions
) -> tuple[dict[str, Any], ...]:
    """Return account, ClusterRole and binding."""
    account = snapshot_account(run)
    name = f"status-reporter:{namespace}:{run}:snapshot"
    subject = {"kind": "ServiceAccount", "name": account, "namespace": namespace}
    role = {"apiGroup": _RBAC, "kind": "ClusterRole", "name": name}
    labels = names.labels(run)
    everywhere = {"name": name, "labels": {**labels, names.NAMESPACE_LABEL: namespace}}
    return (
        _made("v1", "ServiceAccount", {"name": account, "namespace": namespace, "labels": labels}),
        _made(f"{_RBAC}/v1", "ClusterRole", everywhere, rules=rules(resources, options)),
        _made(f"{_RBAC}/v1", "ClusterRoleBinding", everywhere, roleRef=role, subjects=[subject]),
    )


def _made(version: str, kind: str, metadata: Mapping[str, Any], **rest: Any) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": dict(metadata), **rest}
