"""What the built-in plugin `cluster-snapshot` brings along: an account and its rights.

RBAC cannot say "everything but Secrets". So every resource is named that is collected, and what
comes to the cluster afterwards is not readable. Where namespaces are chosen by name, what is in
namespaces may be read in these alone. The rights reach beyond the run's namespace. So they belong
to an account that nobody else uses, and go with the run.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, Final

from reporter.collect.snapshot.options import SnapshotOptions
from reporter.common.objects import section
from reporter.kube.resources import Resource
from reporter.run import names
from reporter.run.definition import Definition

Rule = dict[str, Any]

PLUGIN: Final = "cluster-snapshot"
_RBAC: Final = "rbac.authorization.k8s.io"
_FIXED: Final = frozenset({"runAsUser", "runAsGroup", "fsGroup"})
_SHOWN: Final = 5  # names of namespaces


@dataclass(frozen=True, slots=True)
class Rights:
    """`cluster` are the rules of a ClusterRole, `inside` those of a Role in each of `namespaces`.

    Where there are no rules, there is no role. The numbers are those of the resources that may be
    listed.
    """

    cluster: tuple[Rule, ...]
    inside: tuple[Rule, ...]
    namespaces: tuple[str, ...]
    listed_in_cluster: int
    listed_inside: int


def rights(resources: Iterable[Resource], options: SnapshotOptions) -> Rights:
    """Return the least rights with which these resources can be collected."""
    chosen = options.namespaces
    in_cluster, inside = set[tuple[str, str]](), set[tuple[str, str]]()
    for each in resources:
        (inside if chosen and each.namespaced else in_cluster).add((each.group, each.plural))
    numbers = len(in_cluster), len(inside)
    # Which namespaces, nodes and Pods there are has to be known, whatever else is collected.
    if options.namespace_selector:
        in_cluster.add(("", "namespaces"))
    if options.kubelet:
        in_cluster.add(("", "nodes"))
    if options.pod_logs:
        (inside if chosen else in_cluster).add(("", "pods"))
    cluster, role = _listing(in_cluster), _listing(inside)
    if options.kubelet:
        cluster.append(_rule("", ["nodes/proxy"], "get"))
    if options.pod_logs:
        (role if chosen else cluster).append(_rule("", ["pods/log"], "get"))
    if chosen and cluster:
        cluster.append(_rule("", ["namespaces"], "get") | {"resourceNames": list(chosen)})
    elif chosen:
        role.append(_rule("", ["namespaces"], "get"))
    return Rights(tuple(cluster), tuple(role), chosen, *numbers)


def _listing(named: Iterable[tuple[str, str]]) -> list[Rule]:
    return [
        _rule(group, [plural for _, plural in members], "list")
        for group, members in groupby(sorted(named), key=lambda each: each[0])
    ]


def _rule(group: str, resources: list[str], verb: str) -> Rule:
    return {"apiGroups": [group], "resources": resources, "verbs": [verb]}


def remarks(granted: Rights, options: SnapshotOptions) -> list[str]:
    """Say what the account may read, and what the rights beyond plain reading mean, a line each."""
    only = "" if options.kubelet else " only"
    said = [f"its account may list {_reach(granted, only)}"]
    if options.namespace_selector:
        secrets = ", the Secrets of all namespaces too" if options.secrets == "metadata" else ""
        said.append(
            "these rights hold in all namespaces, not only in those with the chosen labels"
            f"{secrets}; SNAPSHOT_NAMESPACES limits them"
        )
    if options.secrets == "metadata":
        where = " of these namespaces" if options.namespaces else ""
        said.append(
            f"the snapshot's account may list Secrets{where}: only their metadata is collected, "
            "but this permission also allows reading their values, for everyone who can use the "
            "account"
        )
    if options.kubelet:
        said.append(
            "the snapshot's account may reach the kubelets (nodes/proxy: get): the same right runs "
            "commands in the Pods of every node"
        )
    if options.pod_logs:
        said.append("logs are collected as they are, except for credentials in URLs")
    return said


def _reach(granted: Rights, only: str) -> str:
    if not granted.namespaces:
        return f"{_counted(granted.listed_in_cluster, '')} in the whole cluster"
    more = len(granted.namespaces) - _SHOWN
    spaces = ", ".join(granted.namespaces[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
    several = "namespaces" if len(granted.namespaces) > 1 else "namespace"
    said = f"{_counted(granted.listed_inside, 'namespaced ')} in {several} {spaces}{only}"
    if not granted.listed_in_cluster:
        return said
    return f"{said}, and {_counted(granted.listed_in_cluster, 'cluster-scoped ')}"


def _counted(number: int, sort: str) -> str:
    return f"{number} {sort}resource{'' if number == 1 else 's'}"


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


def prepared(definition: Definition, run: str, more: list[str]) -> Definition:
    """Return the definition with its account and with more remarks: those of `remarks`."""
    spec = {**definition.template["spec"], "serviceAccountName": snapshot_account(run)}
    return replace(
        definition,
        template={**definition.template, "spec": spec},
        remarks=(*definition.remarks, *more),
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
