"""What the built-in plugin `cluster-snapshot` brings along: an account and its rights.

The rights reach beyond the run's namespace. So they belong to an account that nobody else uses, and
go with the run.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from reporter.collect.snapshot.rights import Rights, Rule
from reporter.common.objects import section
from reporter.run import names
from reporter.run.definition import Definition

PLUGIN: Final = "cluster-snapshot"
_RBAC: Final = "rbac.authorization.k8s.io"
_FIXED: Final = frozenset({"runAsUser", "runAsGroup", "fsGroup"})


def snapshot_account(run: str) -> str:
    """Return the name of the snapshot's service account."""
    return f"{run}-snapshot"


def without_user(definition: Definition) -> Definition:
    """Return the definition for a platform that gives Pods their users and groups."""
    spec = definition.template["spec"]
    own = section(spec, "securityContext")
    kept = {name: value for name, value in own.items() if name not in _FIXED}
    spec = {**spec, "securityContext": kept}
    return replace(definition, template={**definition.template, "spec": spec})


def prepared(definition: Definition, run: str, remarks: list[str]) -> Definition:
    """Return the definition with its account, and with what a person should know of its rights."""
    spec = {**definition.template["spec"], "serviceAccountName": snapshot_account(run)}
    return replace(
        definition,
        template={**definition.template, "spec": spec},
        remarks=(*definition.remarks, *remarks),
    )


def snapshot_objects(run: str, namespace: str, granted: Rights) -> tuple[dict[str, Any], ...]:
    """Return the account, and each role with its binding.

    The roles have one name everywhere, and labels that say whose they are: no other run has both.
    """
    labels = names.labels(run)
    account = {"name": snapshot_account(run), "namespace": namespace}
    shared = {
        "name": f"status-reporter:{namespace}:{run}:snapshot",
        "labels": {**labels, names.NAMESPACE_LABEL: namespace},
    }
    subject = {"kind": "ServiceAccount", **account}
    made = [_made("v1", "ServiceAccount", {**account, "labels": labels})]
    if granted.cluster:
        made += _bound("ClusterRole", shared, granted.cluster, subject)
    if granted.inside:
        for each in granted.namespaces:
            made += _bound("Role", {**shared, "namespace": each}, granted.inside, subject)
    return tuple(made)


def _bound(
    kind: str, metadata: Mapping[str, Any], rules: tuple[Rule, ...], subject: Mapping[str, str]
) -> list[dict[str, Any]]:
    role = {"apiGroup": _RBAC, "kind": kind, "name": metadata["name"]}
    return [
        _made(f"{_RBAC}/v1", kind, metadata, rules=list(rules)),
        _made(f"{_RBAC}/v1", f"{kind}Binding", metadata, roleRef=role, subjects=[dict(subject)]),
    ]


def _made(version: str, kind: str, metadata: Mapping[str, Any], **rest: Any) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": dict(metadata), **rest}
